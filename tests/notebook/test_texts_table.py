"""A table of texts shows them whole, and takes none of them for HTML."""

import pandas as pd

from rag_lab.notebook.display import texts_table
from rag_lab.redaction import NO_FORMULAS


def test_texts_stand_whole_and_do_nothing():
    long, hostile = "word " * 100 + "end", "<img src=http://evil.example/x.png onerror=alert(1)>\x1b[2J"
    frame = pd.DataFrame({"text": [long, hostile, None], "<b>": [0.123456, 1.0, float("nan")]}, index=[5, 5, 7])
    page = texts_table(frame)._repr_html_()
    assert long in page
    assert "<img" not in page and "&lt;img src=http://evil.example" in page and "\x1b" not in page
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert "0.123<" in page and "0.1234" not in page
    assert page.count("–") == 2
    assert f'class="{NO_FORMULAS}"' in page
