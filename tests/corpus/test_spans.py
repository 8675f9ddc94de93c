"""Pages as one text: what is joined can be taken apart again."""

from hypothesis import given
from hypothesis import strategies as st

from rag_lab.corpus.spans import joined, page_at, page_span
from rag_lab.records import Document

PAGES = st.lists(st.tuples(st.integers(1, 9), st.text("ab \n", min_size=1)), min_size=1, unique_by=lambda page: page[0])


@given(PAGES)
def test_every_page_stands_where_its_start_says(pages: list[tuple[int, str]]) -> None:
    found = joined([Document("m.pdf", number, text) for number, text in sorted(pages)])
    assert found is not None
    whole, starts = found
    assert whole.page is None
    for number, text in pages:
        span = page_span(starts, number, len(whole.text))
        assert span is not None and whole.text[slice(*span)] == text
        assert {page_at(starts, place) for place in range(*span)} == {number}


def test_what_has_no_pages_is_not_joined() -> None:
    assert joined([Document("notes.txt", None, "A note.")]) is None
    assert joined([Document("b.xlsx", 1, "| a |", section="Sheet 1")]) is None


def test_there_is_no_page_that_is_not_there() -> None:
    assert page_span(((1, 0), (3, 10)), 2, 20) is None
    assert page_at((), 5) is None
