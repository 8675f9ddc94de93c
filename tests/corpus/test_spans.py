"""Pages as one text: what is joined can be taken apart again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.corpus.spans import headings, joined, page_at, page_span, path_at
from rag_lab.corpus.splitters import section_spans
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


TEXT = """Preface

# Press P-11
## Hydraulics ##
Oil.
```sh
# a comment
```
#hashtag
### Relief valve
# Oven
"""


def test_headings_have_the_path_above_them() -> None:
    assert [(item.level, item.path) for item in headings(TEXT)] == [
        (1, ("Press P-11",)),
        (2, ("Press P-11", "Hydraulics")),
        (3, ("Press P-11", "Hydraulics", "Relief valve")),
        (1, ("Oven",)),
    ]
    assert all(TEXT[item.start] == "#" for item in headings(TEXT))


def test_a_place_has_the_path_of_the_headings_above_it() -> None:
    found = headings(TEXT)
    assert path_at(found, 0) == ""
    assert path_at(found, TEXT.index("Oil")) == "Press P-11 > Hydraulics"
    assert path_at(found, TEXT.index("# Oven")) == "Oven"


def test_a_line_of_hashes_is_no_heading_and_sharp_is_a_letter() -> None:
    assert [item.title for item in headings("####\n# C#\n####### seven\n#  \n")] == ["C#"]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("Title\n=====\n\ntext\n\nSub\n  ---\nmore", ["Title", "Sub"]),
        ("A title\nof two lines\n===", ["A title of two lines"]),
        ("text\n\n---\n\nmore\n***\n---", []),
        ("- item\n---\n> quote\n---\n| a |\n---\n    code\n---", []),
        ("5 bar\n-\nValue\n--", []),
        ("   ## Lead\n    # code", ["Lead"]),
        ("---\n# comment\ntitle: X\n---\n# Real", ["Real"]),
        ("---\ntitle: X\n...\nReal\n---", ["Real"]),
        ("---\n\n# Between rules\n\n---\n", ["Between rules"]),
        ("---\ntitle: never closed\n\n# Real", ["Real"]),
        ("```x``` is code\n\n# After", ["After"]),
        ("````\n```\n# no\n```\n# no\n`````\n# yes", ["yes"]),
        ("```\n# no\n```py\n# no\n    ```\n# no\n  ```\n# yes", ["yes"]),
        ("~~~ a`b\n# no\n```\n# no\n~~~\n# yes", ["yes"]),
        ("text\n\n    ```\n# yes", ["yes"]),
        ("- ```\n  # no\n\n  # no\n  ```\n# yes", ["yes"]),
        ("1. ```\n   # no\n# yes", ["yes"]),
        ("> ```\n> # no\n\n# yes", ["yes"]),
        ("Title\n```\n---\n```", []),
    ],
)
def test_the_rules_are_those_of_commonmark(text: str, titles: list[str]) -> None:
    assert [item.title for item in headings(text)] == titles


def test_an_underlined_heading_has_a_level_and_all_its_lines() -> None:
    text = "Preface\n\nPress P-11\n===\n\nOil\n---\ntext"
    found = headings(text)
    assert [(item.level, item.path) for item in found] == [(1, ("Press P-11",)), (2, ("Press P-11", "Oil"))]
    assert [text[item.start : item.end] for item in found] == ["Press P-11\n===", "Oil\n---"]
    assert [text[start:end] for start, end in section_spans(text)] == [
        "Preface\n\n",
        "Press P-11\n===\n\nOil\n---\ntext",
    ]
