"""Margins are checked, and post hoc for good where they came late; a choice is appended, and can be taken back."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from rag_lab.errors import ConfigError
from rag_lab.evaluation.registry import find_info
from rag_lab.runs.human_input import (
    PREFERENCES_FILE,
    Preference,
    add_record,
    dated,
    margin_problems,
    parse_margins,
    post_hoc_sentence,
    read_preferences,
    with_margins,
)
from rag_lab.runs.run_folder import RunFolder, VariantPlan

NDCG, MRR, SECONDS = "retrieval.ndcg@5", "retrieval.mrr@5", "cost.seconds"


def folder(path, **margins):
    named = {{"ndcg": NDCG, "mrr": MRR}[name]: margin for name, margin in margins.items()}
    variants = (VariantPlan("a", "a"), VariantPlan("b", "b"))
    return RunFolder(path, "n", "q", "d", "a", (NDCG, MRR), 1, variants, margins=named)


def score(run, variant, under=""):
    done = run.path / under / "variants" / variant / "done.json"
    done.parent.mkdir(parents=True)
    done.write_text("{}")


def start(run):
    """Return the plan as a start of the sweep writes it."""
    written = dated(run)
    written.write_plan()
    return RunFolder.open(run.path)


@pytest.mark.parametrize("margin", [0, -0.05, -1e-300, math.nan, math.inf])
def test_a_margin_is_a_loss(margin):
    (told,) = margin_problems({NDCG: margin}, {NDCG: find_info(NDCG)})
    assert told.endswith("is no loss that could be borne; give a number above 0 and at most 1.")


def test_a_margin_is_no_wider_than_the_range_of_its_metric_where_it_has_one():
    infos = {NDCG: find_info(NDCG), SECONDS: find_info(SECONDS), "mine": None}
    assert margin_problems({NDCG: 1.0, SECONDS: 1e6, "mine": 7.0}, infos) == []
    (told,) = margin_problems({NDCG: 1.01}, infos)
    assert "wider than the metric's range, 0 to 1" in told
    (told,) = margin_problems({SECONDS: -1.0}, infos)
    assert told == "margin: cost.seconds = -1 is no loss that could be borne; give a number above 0."


def test_a_margin_of_a_metric_that_is_not_measured_is_refused_with_the_nearest_name():
    (told,) = margin_problems({"retrieval.ndgc@5": 0.05}, {NDCG: find_info(NDCG)})
    assert told == f"margin: Unknown metric 'retrieval.ndgc@5': allowed are {NDCG}; did you mean {NDCG!r}?"


def test_a_margin_that_was_declared_before_the_first_score_stays_declared(tmp_path):
    run = folder(tmp_path, ndcg=0.05)
    assert start(run).post_hoc_margins == ()
    assert start(folder(tmp_path, ndcg=0.02)).post_hoc_margins == ()  # nothing was scored yet
    score(run, "a")
    assert start(folder(tmp_path, ndcg=0.02)).post_hoc_margins == ()


@pytest.mark.parametrize("under", ["", "earlier"])  # what a killed attempt has set aside was seen, too
def test_a_margin_that_came_or_changed_after_a_score_is_post_hoc_and_stays_so(tmp_path, under):
    run = folder(tmp_path, ndcg=0.05)
    start(run)
    score(run, "b", under)
    assert start(folder(tmp_path, ndcg=0.05, mrr=0.1)).post_hoc_margins == (MRR,)
    assert start(folder(tmp_path, ndcg=0.06, mrr=0.1)).post_hoc_margins == (NDCG, MRR)
    found = start(folder(tmp_path, ndcg=0.05, mrr=0.1))
    assert found.post_hoc_margins == (NDCG, MRR)
    assert found.margins == {NDCG: 0.05, MRR: 0.1}
    assert start(folder(tmp_path)).post_hoc_margins == ()
    assert start(folder(tmp_path, ndcg=0.05)).post_hoc_margins == (NDCG,)


def test_where_no_one_knows_what_was_declared_every_margin_is_post_hoc(tmp_path):
    run = folder(tmp_path, ndcg=0.05)
    score(run, "a")
    (tmp_path / "plan.json").write_text("{")
    assert start(run).post_hoc_margins == (NDCG,)


def test_a_margin_for_showing_is_post_hoc_unless_it_is_the_declared_one(tmp_path):
    run = folder(tmp_path, ndcg=0.05)
    assert with_margins(run, {NDCG: 0.05}) == run
    found = with_margins(run, {MRR: 0.1})
    assert (found.margins, found.post_hoc_margins) == ({NDCG: 0.05, MRR: 0.1}, (MRR,))
    assert replace(found, margins=run.margins, post_hoc_margins=()) == run
    with pytest.raises(ConfigError, match="wider than the metric's range"):
        with_margins(run, {NDCG: 3})


def test_margins_are_read_from_the_last_sign_on():
    assert parse_margins([f"{NDCG}=0.05", "retrieval.RBP(p=0.8)=.1"]) == {NDCG: 0.05, "retrieval.RBP(p=0.8)": 0.1}
    with pytest.raises(ConfigError) as error:
        parse_margins([NDCG, "=0.1", f"{NDCG}=much"])
    assert str(error.value).count("--margin takes METRIC=VALUE") == 3


def test_post_hoc_margins_are_told(tmp_path):
    assert post_hoc_sentence(folder(tmp_path)) == ""
    told = post_hoc_sentence(with_margins(folder(tmp_path), {NDCG: 0.05, MRR: 0.1}))
    assert told.startswith(f"The margin of {NDCG} and the margin of {MRR} are post hoc")


def test_a_primary_metric_that_was_changed_after_a_score_is_post_hoc_and_stays_so(tmp_path):
    run = folder(tmp_path)
    start(run)
    turned = replace(run, metrics=run.metrics[::-1], strict=True)
    assert start(turned).changed_late == ()
    score(run, "b")
    found = start(run)
    assert found.changed_late == ("the primary metric", "strict")
    assert post_hoc_sentence(found).startswith("The primary metric and strict are post hoc: declared or changed when")
    assert start(run).changed_late == ("the primary metric", "strict")


def test_labels_that_were_added_after_a_run_without_any_are_no_change_of_the_primary_metric(tmp_path):
    run = folder(tmp_path)
    start(replace(run, metrics=("cost.seconds",)))
    score(run, "b")
    labelled = start(folder(tmp_path, ndcg=0.05))
    assert post_hoc_sentence(labelled) == (
        "Labels, or a metric of quality, were added after a first run, which had none. That is fine for exploring; "
        "confirm on new questions."
    )
    assert post_hoc_sentence(start(replace(labelled, metrics=run.metrics[::-1]))).startswith(
        "The primary metric is post hoc"
    )


def test_a_further_variant_changes_no_pair_that_was_declared(tmp_path):
    run = folder(tmp_path)
    start(run)
    score(run, "b")
    more = replace(run, variants=(*run.variants, VariantPlan("z", "z")), pairs=())
    assert start(more).changed_late == ()
    first, second = run.variants[:2]
    turned = replace(run, pairs=((first.variant_id, second.variant_id),))
    assert "the pairs" in start(turned).changed_late


def choice(name: str, chosen: str = "left", right: str = "b") -> Preference:
    return Preference(name, "a", right, chosen, "digest", "2026-11-22T21:00:00+00:00")  # type: ignore[arg-type]


def test_choices_are_read_in_their_order(tmp_path: Path) -> None:
    assert read_preferences(tmp_path) == []
    made = [choice("q1"), choice("q2", "right"), choice("q3", "same"), choice("q4", "skip")]
    for one in made:
        add_record(tmp_path, one)
    assert read_preferences(tmp_path) == made
    assert [one.preferred for one in made] == ["a", "b", None, None]


def test_the_last_choice_on_a_question_and_pair_counts(tmp_path: Path) -> None:
    swapped = Preference("q1", "b", "a", "left", "digest")
    for one in (choice("q1"), choice("q1", right="c"), swapped):
        add_record(tmp_path, one)
    assert read_preferences(tmp_path) == [choice("q1", right="c"), swapped]


def test_an_undone_choice_is_none_and_its_line_stays(tmp_path: Path) -> None:
    for one in (choice("q1"), choice("q2"), choice("q1", "undo"), choice("q9", "undo")):
        add_record(tmp_path, one)
    assert read_preferences(tmp_path) == [choice("q2")]
    assert len((tmp_path / PREFERENCES_FILE).read_text().splitlines()) == 4


def test_a_line_that_a_crash_has_cut_costs_itself_alone(tmp_path: Path) -> None:
    add_record(tmp_path, choice("q1"))
    with (tmp_path / PREFERENCES_FILE).open("ab") as file:
        file.write(b'{"question_id": "q2", "le')
    add_record(tmp_path, choice("q3"))
    with (tmp_path / PREFERENCES_FILE).open("ab") as file:
        file.write(b'[]\n{"question_id": 3}\n\xff\n')
    assert read_preferences(tmp_path) == [choice("q1"), choice("q3")]
