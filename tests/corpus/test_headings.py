from __future__ import annotations

from rag_lab.corpus.headings import headings, path_at

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
