"""What is said of a front: who is on it, who leaves or joins it by chance, and who has no place."""

from dataclasses import replace

import pytest
from priced_run import certain, uncertain

from rag_lab.comparison.front.front_sentences import against_told, fronts_told, share_of_resamples
from rag_lab.comparison.front.pareto_front import CostFronts, Front


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return certain(tmp_path_factory.mktemp("certain") / "run")


def with_front(comparison, found):
    changed = replace(comparison)
    changed.__dict__["front"] = found
    return changed


def test_a_certain_front_and_an_uncertain_one_say_which_they_are(planted, tmp_path):
    told = fronts_told(planted)
    assert told[0] == (
        "On the front of retrieval.ndcg@5 against seconds: A and B; no variant leaves or joins it in 5% of resamples "
        "or more."
    )
    assert "against seconds, tokens and dollars together: A and B" in told[3] and len(told) == 4
    assert against_told(planted) == told[:3]
    (sentence,) = fronts_told(uncertain(tmp_path / "run"))
    assert sentence.startswith("On the front of retrieval.ndcg@5 against seconds: B; A joins it in 3")
    assert sentence.endswith("% of resamples, so the front is not certain.")


def test_who_leaves_and_who_joins_stand_in_one_sentence(planted):
    front = Front(("seconds",), ("a", "c"), {"a": 0.99, "b": 0.07, "c": 0.62})
    assert fronts_told(with_front(planted, CostFronts(fronts=(front,), n_units=60))) == [
        "On the front of retrieval.ndcg@5 against seconds: A and C; C leaves it in 38%, and B joins it in 7% of "
        "resamples, so the front is not certain."
    ]


def test_few_questions_and_who_is_left_out_are_named(planted, tmp_path):
    assert fronts_told(certain(tmp_path / "run", 9))[0].endswith(
        "A and B; 9 questions cannot tell how certain that is."
    )
    found = CostFronts(left_out={"a": "no scores", "c": "no scores"}, note="There is nothing.")
    assert fronts_told(with_front(planted, found)) == ["Without a place: A and C (no scores).", "There is nothing."]


@pytest.mark.parametrize(
    ("share", "told"), [(0, "0%"), (0.0005, "< 1%"), (0.38, "38%"), (0.9995, "> 99%"), (1.0, "100%")]
)
def test_what_is_not_always_is_not_written_as_always(share, told):
    assert share_of_resamples(share) == told
