import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.data.importers import file_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Sky (United Kingdom)", "Sky_United_Kingdom"),
        ("../../etc/passwd", "etc_passwd"),
        ("黑豹队：防守", "黑豹队_防守"),
        ("हिन्दी", "हिन्दी"),
        ("Пэнтерс?", "Пэнтерс"),
        (".hidden", "hidden"),
        ("a\x00b\n", "a_b"),
        ("***", "document"),
    ],
)
def test_safe_names(text: str, name: str) -> None:
    assert file_name(text, "document", {}) == name


def test_names_are_distinct_whatever_the_case() -> None:
    taken: dict[str, int] = {}
    assert [file_name(text, "document", taken) for text in ("a/b", "A.B", "a_b", "", "?")] == [
        *("a_b", "A_B_2", "a_b_3", "document", "document_2")
    ]


def test_many_long_ids_that_begin_alike_are_named_at_once() -> None:
    taken: dict[str, int] = {}
    start = time.process_time()
    found = [file_name(f"{'a' * 60}/{n}", "document", taken) for n in range(20_000)]
    assert found[-1] == f"{'a' * 60}_20000"
    assert time.process_time() - start < 5  # each name from the first number on would take minutes


@given(st.lists(st.text(max_size=80), max_size=8))
def test_every_name_can_be_a_file(texts: list[str]) -> None:
    taken: dict[str, int] = {}
    found = [file_name(text, "document", taken) for text in texts]
    assert len({name.casefold() for name in found}) == len(texts)
    for name in found:
        assert name and len(f"{name}.txt".encode()) <= 255
        assert not set(name) & set('/\\.:*?"<>|\x00\n')
