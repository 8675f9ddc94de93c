from itertools import combinations

import pytest

from rag_lab.experiment.designs.design_keys import PAIRS_RULE, pair_problems, primary_pairs, read_pairs

NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("given", [7, "some", [], ["a", "b"], [["a"]], [["a", "b", "c"]], [["a", 1]], {"a": "b"}])
def test_pairs_are_a_rule_or_pairs_of_names(given):
    with pytest.raises(ValueError, match="must be `all`") as error:
        read_pairs(given)
    assert str(error.value) == PAIRS_RULE


def test_only_a_list_has_pairs_to_name():
    assert pair_problems(None, "grid", []) == []
    assert pair_problems("all", "grid", []) == [
        "pairs: names variants of the design list, got the design grid; take it out."
    ]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ((("a", "d"),), "Unknown variant 'd'"),
        ((("b", "b"),), "b is paired with itself"),
        ((("a", "b"), ("c", "a"), ("b", "a")), "b and a are named twice"),
    ],
)
def test_a_wrong_pair_is_one_sentence(pairs, said):
    (told,) = pair_problems(pairs, "list", NAMES)
    assert said in told


def test_a_list_declares_every_pair_the_later_against_the_earlier():
    found = primary_pairs(NAMES, "list")
    assert [(a, b) for b, a in combinations(NAMES, 2)] == sorted(found, key=lambda pair: (pair[1], pair[0]))
    assert primary_pairs(NAMES, "list", "all") == found
    assert primary_pairs(NAMES, "list", "baseline") == primary_pairs(NAMES, "grid") == (("b", "a"), ("c", "a"))


def test_named_pairs_are_what_is_declared_each_by_what_is_run_for_it():
    assert primary_pairs(NAMES, "list", (("b", "c"),)) == (("b", "c"),)
    same = {"d": "b", "gone": "nowhere"}
    assert primary_pairs(NAMES, "list", (("d", "c"), ("b", "c"), ("d", "b"), ("c", "gone")), same) == (("b", "c"),)
    assert primary_pairs(["a", "b"], "list", (("c", "b"),)) == (("b", "a"),)
    assert primary_pairs(["a"], "list") == ()
