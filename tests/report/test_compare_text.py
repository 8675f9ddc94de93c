"""A run on one screen: nothing is wider than a terminal, and what is left out is named."""

import re

import numpy as np
import pytest
from run_folder_fixture import build_unlabelled
from synthetic_run import GRID, MAIN, factorial, write_run

from rag_lab.comparison.comparison import read_comparison
from rag_lab.errors import ConfigError
from rag_lab.report.compare_text import compare_screen, compare_text, screen

OTHERS = [f"retrieval.{name}@{k}" for name in ("mrr", "evidence_recall", "precision", "ndcg") for k in (1, 3, 10, 20)]


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run", GRID, {MAIN: factorial(), "cost.tokens": dict.fromkeys(GRID, np.ones(60))})


def test_variants_stand_beside_metrics_with_interval_count_and_mark(run):
    told = compare_screen(run.path)
    (line,) = [line for line in told.splitlines() if line.startswith("C always-none")]
    assert "▲" in line and "[" in line
    assert "n 60, lower is better" in told
    differences = told.partition("can be told from chance")[2]
    assert re.search(rf"▲ C always-none +{MAIN} +\+0\.\d{{3}}", differences)


def test_the_family_of_the_differences_is_said_and_in_a_grid_it_is_the_secondary_one(run, tmp_path):
    assert "from chance (all secondary; correction: max-T)" in compare_screen(run.path)
    plans = {name: {} for name in ("baseline", "other")}
    listed = write_run(tmp_path / "list", plans, {MAIN: dict.fromkeys(plans, np.linspace(0, 1, 30))})
    told = " ".join(compare_screen(listed.path).split())
    assert f"(primary: {MAIN}; all others secondary; correction: max-T)" in told


def test_a_run_that_is_not_finished_says_how_much_of_it_is_here(run):
    (run.path / "manifest.json").unlink()
    for name in list(GRID)[:2]:
        (run.variant_dir(name) / "done.json").write_text("{}")
    assert "The run is not finished: 2 of 4 variants have scores." in compare_screen(run.path)


def test_a_wide_run_fits_the_screen_and_names_what_is_not_on_it(tmp_path):
    run = write_run(tmp_path, GRID, {metric: factorial() for metric in [MAIN, *OTHERS]})
    lines = compare_screen(run.path).splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 60
    left_out = " ".join(lines).partition("Not on this screen: ")[2]
    shown = [metric for metric in [MAIN, *OTHERS] if metric in " ".join(lines).partition("Not on this screen")[0]]
    assert len(shown) >= 6 and OTHERS[-1] in left_out


def test_long_names_are_told_by_letter(tmp_path):
    plans = {name: {} for name in ("baseline", "a-very-long-name-of-a-variant-that-nobody-would-type")}
    run = write_run(tmp_path, plans, {MAIN: dict.fromkeys(plans, np.linspace(0, 1, 30))})
    lines = compare_screen(run.path).splitlines()
    assert "B a-very-long-name-of-a-variant-that-nobody-would-type" in lines
    assert any(line.startswith("B  0.500 [") for line in lines)


def test_metrics_of_few_questions_stand_apart_and_failures_are_counted(tmp_path):
    few = {name: np.where(np.arange(60) < 5, 1.0, np.nan) for name in GRID}
    some = factorial()
    some["always-none"] = np.where(np.arange(60) < 3, np.nan, some["always-none"])
    told = compare_screen(write_run(tmp_path, GRID, {MAIN: some, "answer.abstention": few}).path)
    assert "can be told: answer.abstention (5)." in told.replace("\n", " ")
    assert " n 57 ▲" in told and " n 60" in told


def test_two_runs_stand_in_one_table(run, tmp_path):
    other = write_run(tmp_path / "other", GRID, {MAIN: {name: v + 0.2 for name, v in factorial().items()}})
    told = compare_screen(run.path, other.path)
    assert "run: none-none" in told and "other: none-none" in told and "▲" in told
    assert max(map(len, told.splitlines())) <= 100


def test_one_table_is_printed_alone_and_an_unknown_one_refused(run):
    told = compare_text(run.path, only=["effects"])
    assert told.startswith("main effects") or "effect" in told.splitlines()[0]
    assert "questions are asked" not in told
    assert compare_text(run.path, only=["scores"], form="latex").startswith(r"\begin{table}")
    assert compare_text(run.path, only=["scores"], form="markdown").startswith("**synthetic")
    with pytest.raises(ConfigError, match="did you mean 'scores'"):
        compare_text(run.path, only=["score"])
    with pytest.raises(ConfigError, match="nothing to say there"):
        compare_text(run.path, only=["noise"])
    with pytest.raises(ConfigError, match="leave out --table"):
        compare_text(run.path, only=["scores"], form="csv")


def test_without_labels_it_says_what_changed_and_calls_nothing_better(tmp_path):
    told = " ".join(screen(read_comparison(build_unlabelled(tmp_path / "run", 24, 3).path)).split())
    assert "None of the 24 questions has a label" in told and "changes the ranking of" in told
    assert "rag_lab.prefer(" in told and "reliably better" not in told.replace("▲ ▼: reliably better", "")
