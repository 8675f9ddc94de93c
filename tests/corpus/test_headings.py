import pytest

from rag_lab.corpus.spans import headings, path_at
from rag_lab.corpus.splitters import section_spans

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
