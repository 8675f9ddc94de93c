"""Trials of optuna: what they choose, how a killed search goes on."""

import subprocess
import sys
from importlib.util import find_spec

import pytest
from postgres import needs_postgres, postgres_server
from small_plans import install_doubles, race_plan, run_jobs_here

from rag_lab.comparison.findings.search_sentences import race_sentences
from rag_lab.experiment.design import ExperimentError
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import run_plan
from rag_lab.experiment.run.trials import STUDY_FILE, open_trials
from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.run_manifest import cost_of, read_race

pytestmark = [pytest.mark.slow, needs_postgres]

STUDY_FACTORS = {"rerank.final_k": [5, 3], "retrieval.mode": ["dense", "bm25"], "retrieval.base_k": [20]}
BEGINS = """
import sys
from pathlib import Path
from rag_lab.experiment.run.trials import open_trials
factors = {"rerank.final_k": [5, 3], "retrieval.mode": ["dense", "bm25"], "retrieval.base_k": [20]}
trials = open_trials(Path(sys.argv[1]), sys.argv[2], "small", [True, False], factors, "tpe", 0)
asked = trials.asked()
number, _ = next(asked)
trials.finish(number, (0.5, 2.0))
next(asked)
"""


def test_a_search_that_another_process_began_goes_on(tmp_path):
    with postgres_server() as server:
        store = server.address()
        subprocess.run([sys.executable, "-c", BEGINS, str(tmp_path), store], check=True)
        trials = open_trials(tmp_path, store, "small", [True, False], STUDY_FACTORS, "tpe", 0)
        assert trials.completed() == [
            ({"rerank.final_k": 5, "retrieval.mode": "dense", "retrieval.base_k": 20}, (0.5, 2.0))
        ]
        ((number, choice),) = trials.open_ones()
        assert number == 1 and choice["retrieval.base_k"] == 20
        trials.finish(number, None)
        assert trials.open_ones() == [] and next(trials.asked())[0] == 2
        other = open_trials(tmp_path, store, "other", [True, False], STUDY_FACTORS, "tpe", 0)
        assert other.completed() == [] and not (tmp_path / STUDY_FILE).exists()


SILENT = RunOptions(jobs=2, progress=False)
FACTORS = {"rerank.final_k": [5, 3, 8, 2], "retrieval.mode": ["bm25", "tfidf"], "retrieval.base_k": [20, 10]}
TRIALS = {"design": "optuna", "race": None, "choose": 20, "n": 5, "factors": FACTORS}


@pytest.fixture(autouse=True)
def doubles(monkeypatch):
    install_doubles(monkeypatch)
    monkeypatch.setattr("rag_lab.report.page.report_page.write_report", lambda path, **_: path)


@pytest.mark.parametrize("sampler", ["tpe", "nsga2"])
def test_trials_improve_the_first_metrics_and_the_best_is_proven(tmp_path, monkeypatch, sampler):
    done = run_jobs_here(monkeypatch)
    planned = race_plan(tmp_path, **TRIALS, sampler=sampler)
    run = run_plan(planned, tmp_path / "run", options=SILENT)
    race = read_race(run.path)
    trials = RunFolder.open(run.path / "rounds/1")
    names = [one.variant_id for one in trials.variants]
    assert len(names) == len(set(names)) == 5 and names[0] == "baseline"
    assert trials.metrics == ("retrieval.mrr@1", "retrieval.ndcg@5") == race.objectives
    assert [name for folder, name in done if folder == "1"] == names  # each once
    assert race.winner in names and not set(trials.questions) & set(run.questions)
    told = race_sentences(race, cost_of(run))
    assert told[0].startswith("5 variants were tried, each chosen by the results of those before it to improve ")
    assert told[1].startswith("Exploratory:")


def test_a_search_that_was_killed_goes_on_in_its_study_and_runs_nothing_twice(tmp_path, monkeypatch):
    planned, ended = race_plan(tmp_path, **TRIALS), []

    def kill(job):
        if len(ended) == 3:
            raise KeyboardInterrupt
        ended.append(job.name)
        return ""

    run_jobs_here(monkeypatch, kill)
    with pytest.raises(KeyboardInterrupt):
        run_plan(planned, tmp_path / "run", options=SILENT)
    again = run_jobs_here(monkeypatch)
    run = run_plan(planned, tmp_path / "run", options=SILENT)
    assert not set(ended) & {name for folder, name in again if folder == "1"}
    more = run_jobs_here(monkeypatch)
    run_plan(planned, tmp_path / "run", options=SILENT)
    assert more == []
    found = read_race(run.path)
    wanted = read_race(run_plan(planned, tmp_path / "undisturbed", options=SILENT).path)
    order, wanted_order = ([one.variant_id for one in race.rounds[0].standings] for race in (found, wanted))
    assert (order, found.winner) == (wanted_order, wanted.winner)


def test_a_small_space_is_tried_out_and_ends(tmp_path, monkeypatch):
    run_jobs_here(monkeypatch)
    factors = {"retrieval.mode": ["bm25", "tfidf"], "retrieval.base_k": [20, 10]}
    planned = race_plan(tmp_path, **TRIALS | {"factors": factors, "n": 40})
    run = run_plan(planned, tmp_path / "run", options=SILENT)
    assert len(RunFolder.open(run.path / "rounds/1").variants) == 4


def test_the_dry_run_says_that_trials_are_not_known_before(tmp_path):
    told = describe(race_plan(tmp_path, **TRIALS))
    assert "The trials are to improve retrieval.mrr@1 and retrieval.ndcg@5; which they are depends on their" in told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n": None}, "n: missing; say how many trials the design optuna makes"),
        ({"objectives": ["retrieval.ndcg@3"]}, "objectives: retrieval.ndcg@3 is none of the metrics"),
        (
            {"objectives": ["retrieval.ndcg@5"]},
            "objectives: retrieval.mrr@1 decides what is proven, so that it must be",
        ),
        ({"sampler": "grid"}, "sampler: "),
        ({"design": "grid", "n": None, "choose": None, "sampler": "tpe"}, "sampler: belongs to the design optuna, got"),
    ],
)
def test_what_no_trials_can_do_is_one_sentence(tmp_path, changes, said):
    with pytest.raises(ExperimentError, match=said):
        race_plan(tmp_path, **TRIALS | changes)


def test_where_optuna_is_missing_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("rag_lab._kit.registry.find_spec", lambda name: None if name == "optuna" else find_spec(name))
    with pytest.raises(ExperimentError, match=r"The design optuna can not be used here: The package optuna is not"):
        race_plan(tmp_path, **TRIALS)
