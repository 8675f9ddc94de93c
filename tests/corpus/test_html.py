from __future__ import annotations

from pathlib import Path

import pytest

from rag_lab.corpus.base import LoadError
from rag_lab.corpus.html import load_html

PAGE = """<!DOCTYPE html><html><head><title> Press
manual </title><style>p {color: red}</style></head><body>
<nav><a href="/">Home</a></nav>
<h1>Press <em>P-11</em></h1><p>The hy<b>drau</b>lic oil<br>is changed.</p>
<script>alert("no")</script>
<ul><li>one</li><li>two &amp; three</li></ul>
<table><caption>Torques</caption><thead><tr><th>Bolt</th><th>Nm</th></tr></thead>
<tr><td>M6</td><td>9<p>or 10</p></td></tr><tr><td>M8</td><td><table><tr><td>a</td><td>b</td></tr></table></td></tr>
</table>
<pre>keep
  this</pre><!-- not this -->after</body></html>"""


def load(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "a.html"
    path.write_bytes(data)
    return load_html(path, "a.html").documents[0].text


def test_a_page_becomes_markdown(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE)
    (document,) = load_html(tmp_path / "a.html", "a.html").documents
    assert document.title == "Press manual"
    assert document.text.split("\n\n") == [
        "# Press P-11",
        "The hydraulic oil is changed.",
        "- one",
        "- two & three",
        "Torques",
        "| Bolt | Nm |\n| --- | --- |\n| M6 | 9 or 10 |\n| M8 | a, b |",
        "keep\n  this",
        "after",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "shift_jis", "utf-16"])
def test_the_declared_encoding_is_used(tmp_path: Path, encoding: str) -> None:
    text = "取扱説明書" if encoding == "shift_jis" else "Schläuche für Öl"
    page = f'<html><head><meta charset="{encoding}"></head><body><p>{text}</p></body></html>'
    assert load(tmp_path, page.encode(encoding)) == text


def test_an_encoding_declared_wrongly_is_found_out(tmp_path: Path) -> None:
    page = '<meta http-equiv="Content-Type" content="text/html; charset=utf-8"><p>Schläuche</p>'
    assert load(tmp_path, page.encode("cp1252")) == "Schläuche"


def test_a_frame_of_one_column_is_no_table(tmp_path: Path) -> None:
    assert (
        load(tmp_path, b"<table><tr><td>All of it</td></tr><tr><td>and more</td></tr></table>") == "All of it\nand more"
    )


def test_deep_nesting_is_no_obstacle(tmp_path: Path) -> None:
    assert "deep" in load(tmp_path, b"<div>" * 200 + b"deep" + b"</div>" * 200)
    load(tmp_path, b"<p>top</p>" + b"<div>" * 50_000 + b"deep")


@pytest.mark.parametrize("data", [b"<html><body></body></html>", b"<script>x</script>", b"<!-- x -->"])
def test_a_page_without_text_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(LoadError, match="empty|damaged"):
        load(tmp_path, data)
