"""What a design is called: a full grid, a nested one, single changes, or none of these."""

import pytest
from nested_grid import BASE, HYDE, RERANK, RULE, RUN, SAME

from rag_lab.statistics.effects.factors import read_factors


def test_a_grid_whose_other_combinations_are_the_same_pipelines_is_nested():
    found = read_factors(RUN, BASE, planned="grid", same=SAME)
    assert found.kind == "nested"
    assert found.reason == "2 of the 8 combinations are the same pipelines as others by construction"
    assert found.same == {("none", "b", "off"): BASE, ("none", "b", "on"): "none-a-on"}
    short = [({RULE: "b"}, BASE), SAME[1]]  # what is not named has the baseline's level
    assert read_factors(RUN, BASE, planned="grid", same=short) == found


@pytest.mark.parametrize("planned", ["list", "one_factor", "mine:design", ""])
def test_what_was_planned_as_no_grid_lacks_no_combination(planned):
    found = read_factors(RUN, BASE, planned=planned)
    assert (found.kind, found.reason) == ("other", "the variants differ in several settings at once")


def test_a_grid_lacks_what_has_no_scores_and_not_what_is_the_same_pipeline():
    lost = {name: cell for name, cell in RUN.items() if name != "classified-b-on"}
    found = read_factors(lost, BASE, planned="grid", same=SAME)
    assert found.kind == "other" and found.same == {}
    assert found.reason == "the grid lacks 1 of 8 combinations (such as hyde=classified, rule=b, rerank=on)"
    without_twin = {name: cell for name, cell in RUN.items() if name != "none-a-on"}
    assert "lacks 2 of 8" in read_factors(without_twin, BASE, planned="grid", same=SAME).reason


def test_a_factor_that_never_means_anything_is_none():
    runs = {name: cell for name, cell in RUN.items() if cell[HYDE] == "none"} | {
        "other": {HYDE: "always", RULE: "a", RERANK: "off"},
        "other-on": {HYDE: "always", RULE: "a", RERANK: "on"},
    }
    same = [*SAME, ({HYDE: "always", RULE: "b", RERANK: "off"}, "other")]
    found = read_factors(runs, BASE, planned="grid", same=same)
    assert found.kind == "grid" and list(found.levels) == [HYDE, RERANK]
