from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rag_lab.report.page.anchors import anchors

NAMES = st.one_of(
    st.text(max_size=90), st.sampled_from(["a b", "a-b", "a-b-c8687a08", "A-B", "../x", "..", "ä", "é", "con"])
)


def test_a_plain_id_is_kept() -> None:
    assert anchors(["pd-001", "q_2.b"]) == {"pd-001": "q-pd-001", "q_2.b": "q-q_2.b"}


@given(st.lists(NAMES, unique=True, max_size=12))
def test_no_two_are_alike_and_all_are_safe_in_addresses_and_file_names(ids: list[str]) -> None:
    found = anchors(ids)
    assert list(found) == ids
    assert len({name.lower() for name in found.values()}) == len(ids)
    assert all(re.fullmatch(r"q-[A-Za-z0-9._-]{0,90}", name) for name in found.values())


def test_ids_that_a_file_system_may_not_tell_apart_are_told_apart() -> None:
    upper, lower = anchors(["Press", "press"]).values()
    assert upper.lower() != lower.lower()


def test_a_name_does_not_depend_on_the_questions_beside_it() -> None:
    assert anchors(["a b"])["a b"] == anchors(["x", "a b", "y"])["a b"]
