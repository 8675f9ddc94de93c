import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.statistics.per_question import per_question, unit_places, with_failures_at


def test_failures_count_at_an_end_or_are_left_out() -> None:
    rows = [("v", "q1", 0.4, "scored"), ("v", "q1", None, "failed"), ("v", "q2", None, "failed")]
    rows += [("v", "q3", None, "not_applicable")]
    columns = ["variant_id", "question_id", "value", "status"]
    questions = per_question(pd.DataFrame(rows, columns=columns).assign(metric="m", reason=""))
    assert with_failures_at(questions, 1.0).tolist()[:2] == [0.7, 1.0]
    assert with_failures_at(questions, None).tolist()[0] == 0.4
    assert with_failures_at(questions, None).isna().tolist() == [False, True, True]
    assert with_failures_at(questions, 0.0).isna().tolist() == [False, False, True]


@given(st.permutations(["q3", "q1", "q10", "q2"]))
def test_units_are_numbered_by_the_ids_whatever_their_order(ids: list[str]) -> None:
    assert unit_places([*ids, "q1"], {"q3": "doc", "q1": "doc"}) == {"q1": 0, "q10": 1, "q2": 2, "q3": 0}
    assert unit_places(ids, None) == {"q1": 0, "q10": 1, "q2": 2, "q3": 3}
