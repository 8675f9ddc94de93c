from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.data.formats.squad import quote_around


@pytest.mark.parametrize(
    ("text", "answer", "quote"),
    [
        ("It rained for 3.5 hours. The roof leaked in 12 places! We left.", "12", "The roof leaked in 12 places!"),
        ("黑豹队的防守只丢了三百零八分，在联赛中排名第六。他们的队友贡献了六次擒杀，令人惊讶。", "六次", None),
        ("“He came back from the sea.” She waited for him there.", "sea", "“He came back from the sea.”"),
        ("First heading\nThe body of the text goes on", "body", "The body of the text goes on"),
        ("No end in this text at all", "end", "No end in this text at all"),
    ],
)
def test_the_sentence_of_the_answer(text: str, answer: str, quote: str | None) -> None:
    start = text.index(answer)
    expected = quote or "他们的队友贡献了六次擒杀，令人惊讶。"
    found = quote_around(text, start, start + len(answer))
    assert found == expected or (quote is None and found == text)  # 18 characters are too short to stand alone


def test_a_sentence_that_stands_twice_takes_its_neighbours() -> None:
    text = "The pump must be off. Then open the lid. The pump must be off. Then close it."
    assert quote_around(text, text.rindex("off"), text.rindex("off") + 3) == (
        "Then open the lid. The pump must be off. Then close it."
    )


@given(st.text(st.sampled_from("ab .。\n!"), min_size=1, max_size=60), st.data())
def test_the_quote_is_verbatim_holds_the_answer_and_stands_once(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    quote = quote_around(text, start, end)
    assert quote in text
    assert text[start:end].strip() in quote
    assert not quote or text.count(quote) == 1
