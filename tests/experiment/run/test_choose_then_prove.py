"""Races and searches stage by stage: who stays, what stops them, what another start does, and their proof."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from small_plans import install_doubles, race_plan, run_jobs_here

from rag_lab.comparison.findings.search_sentences import race_sentences
from rag_lab.experiment.design import ExperimentError
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.race import ELSEWHERE, round_plan
from rag_lab.experiment.run.outputs import failures
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import run_plan, to_try_again
from rag_lab.report.compare_text import compare_text
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.run_manifest import cost_of, read_race

SILENT = RunOptions(progress=False, check=False)


@pytest.fixture
def doubles(monkeypatch):
    return install_doubles(monkeypatch)


@pytest.fixture
def without_reports(monkeypatch):
    """Reports take most of the time, and one test reads them."""
    monkeypatch.setattr("rag_lab.report.page.report_page.write_report", lambda path, **_: path)


@pytest.fixture
def checked(tmp_path, doubles):
    return race_plan(tmp_path)


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Run a plan in one folder; return the run, its record, and the (folder, variant) that were run in this start."""

    def run_here(planned, after=lambda job: ""):
        done = run_jobs_here(monkeypatch, after)
        run = run_plan(planned, tmp_path / "run", options=SILENT)
        return run, read_race(run.path), done

    return run_here


@pytest.fixture(scope="module")
def raced(tmp_path_factory):
    """A race that has ended, with its reports: its plan, run, record and the (folder, variant) that were run."""
    folder = tmp_path_factory.mktemp("raced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAG_LAB_HOME", str(folder / "home"))
        install_doubles(patch)
        planned, done = race_plan(folder), run_jobs_here(patch)
        run = run_plan(planned, folder / "run", options=SILENT)
    return planned, run, read_race(run.path), done


@pytest.mark.slow
def test_a_race_drops_in_rounds_and_proves_the_winner_on_other_questions(raced):
    checked, run, race, done = raced
    assert RunFolder.open(run.path) == run

    assert [(one.n_questions, len(one.standings), len(one.dropped)) for one in race.rounds] == [(12, 4, 0), (20, 4, 0)]
    assert sorted(done) == sorted([
        *((folder, one.variant_id) for folder in ("1", "2") for one in checked.variants),
        *(("run", name) for name in ("baseline", race.winner)),
    ])  # fmt: skip
    assert [folder for folder, _ in done] == sorted(folder for folder, _ in done)
    chose = {name for n in (1, 2) for name in RunFolder.open(run.path / f"rounds/{n}").questions}
    assert len(chose) == 20 and len(run.questions) == 41 and not chose & set(run.questions)
    best = next(one.variant_id for one in race.rounds[-1].standings if one.variant_id != "baseline")
    assert race.winner == best and [one.variant_id for one in run.variants] == ["baseline", race.winner]
    assert run.pairs == ((race.winner, "baseline"),)
    assert race.n_full == 4 * 61 and race.n_asked == 4 * 20 + 2 * 41

    first = RunFolder.open(run.path / "rounds/1")
    assert set(first.scores()["metric"]) == {"retrieval.mrr@1"}  # the others decide nothing
    assert set(run.scores()["metric"]) == {"retrieval.mrr@1", "retrieval.ndcg@5"}
    found = compare(run.path).differences.set_index("metric").loc["retrieval.mrr@1"]
    assert found["p_corrected"] in (None, found["p_value"])  # one comparison, however many were dropped
    assert failures(run) == []


@pytest.mark.slow
def test_the_report_shows_the_race_with_its_rounds_and_what_was_given_up(raced):
    _, run, _, _ = raced
    page = (run.path / "report.html").read_text()
    told = ("The race", 'href="rounds/1/report.html"', "162 times", "244 times", "34% were saved", "Neither dropped")
    assert [said for said in told if said not in page] == []
    assert (run.path / "rounds/1/report.html").is_file()
    assert "## The race" in (run.path / "report.md").read_text()
    assert "rounds of the race" in compare_text(run.path, only=["race"])
    assert "4 variants raced in 2 rounds" in str(compare(run.path))
    assert "The race" not in (run.path / "rounds/1/report.html").read_text()


@pytest.mark.slow
def test_a_race_that_was_ended_goes_on_and_runs_nothing_twice(checked, start, tmp_path, without_reports):
    def stop(job):
        ended.append((Path(job.parameters["QUESTIONS"]).parent.name, job.name))
        if len(ended) == 6:
            raise KeyboardInterrupt
        return ""

    ended = []
    with pytest.raises(KeyboardInterrupt):
        start(checked, stop)
    assert len(read_race(tmp_path / "run").rounds) == 1
    _, _, again = start(checked)
    assert not set(ended[:5]) & set(again)
    _, race, more = start(checked)
    assert more == [] and race.winner
    assert to_try_again(checked, tmp_path / "run").keys() == {one.variant_id for one in checked.variants}


@pytest.mark.slow
def test_limits_hold_for_the_race_as_a_whole(tmp_path, doubles, start, without_reports):
    changes = {
        "factors": {"query.rewrite": ["llm"], "retrieval.mode": ["dense", "bm25", "tfidf"]},
        "limits": {"calls": 70},
    }
    checked = race_plan(tmp_path, **changes)
    run, _, _ = start(checked)
    assert failures(run) and "limits.calls = 70" in failures(run)[0]
    first = len(doubles.chat.requests)
    assert first <= 70
    limits = checked.experiment.limits.model_copy(update={"calls": 500})
    run, race, _ = start(replace(checked, experiment=checked.experiment.model_copy(update={"limits": limits})))
    assert failures(run) == [] and race.winner and not race.stopped
    spent = race.cost.calls + sum(row["calls_spent"] for row in run.manifest()["spent"])
    assert spent == len(doubles.chat.requests) == run.manifest()["limits"]["calls"]["used"]
    assert race.full.calls >= spent


@pytest.mark.slow
def test_what_an_outage_took_drops_nobody_until_it_was_tried_again(checked, start, without_reports):
    run, _, done = start(checked, _outage_in("mode-tfidf"))
    (told,) = [one for one in failures(run) if "race" in one]
    assert "stops after round 1, as 3 failures in it" in told and {folder for folder, _ in done} == {"1"}
    _, race, again = start(checked, _outage_in("mode-tfidf"))  # no better: they count as failed
    assert again[0] == ("1", "mode-tfidf") and race.winner


def _outage_in(variant):
    def spoil(job):
        path = Path(job.parameters["OUT"]) / "record.json"
        if job.name == variant and path.parents[2].name == "1":
            record = json.loads(path.read_text())
            path.write_text(json.dumps(record | {"curable": {"questions": 3, "scores": 0}}))
        return ""

    return spoil


@pytest.mark.slow
def test_a_variant_that_fails_is_dropped_and_told(checked, start, without_reports):
    run, race, _ = start(checked, lambda job: "The kernel died." if job.name == "mode-bm25" else "")
    assert race.rounds[0].standings[-1].variant_id == "mode-bm25" and race.winner != "mode-bm25"
    assert any(one.startswith("rounds/1: Variant mode-bm25 failed: The kernel died.") for one in failures(run))
    assert "Dropped without any score: mode-bm25." in race_sentences(race, cost_of(run))


@pytest.mark.slow
def test_a_race_of_named_pipelines(tmp_path, doubles, start, without_reports):
    variants = {mode: {"retrieval.mode": mode} for mode in ("dense", "bm25", "tfidf")}
    run, race, _ = start(race_plan(tmp_path, factors={}, variants=variants))
    assert [one.variant_id for one in run.variants] == ["dense", race.winner]


@pytest.mark.slow
def test_a_damaged_record_is_made_anew_and_what_ran_is_kept(raced, start, doubles, tmp_path, caplog, without_reports):
    checked, run, before, _ = raced
    shutil.copytree(run.path, tmp_path / "run")
    (tmp_path / "run" / "race.json").write_text("{")
    _, race, done = start(checked)
    assert "race.json is damaged" in caplog.text
    assert done == [] and race.rounds == before.rounds


def test_a_round_says_that_it_proves_nothing_and_why(checked):
    left = [one.variant_id for one in checked.variants[1:]]
    first, second = (round_plan(checked, number, left[:3]) for number in (1, 2))
    assert first.experiment.question == "Round 1 of a race, which drops variants and proves nothing: Does it help?"
    assert "as its variants were chosen on some of its questions" in second.experiment.question
    assert set(first.questions) < set(second.questions) and not set(second.questions) & set(checked.questions)
    assert first.answered == () and first.left_out == {ELSEWHERE: 49}


def test_a_metric_of_answers_lets_the_rounds_answer_and_the_limit_counts_them(tmp_path, doubles):
    checked = race_plan(tmp_path, metrics=["answer.token_f1", "retrieval.mrr@1"], limits={"answers": 55})
    part = round_plan(checked, 1, ["mode-bm25"])
    assert part.answered == part.questions and len(part.questions) == 12
    assert len(checked.answered) == 35 and [one.variant_id for one in part.variants] == ["baseline", "mode-bm25"]


FACTORS = {
    "answer.temperature": [0.0, 0.5],
    "rerank.final_k": [5, 3, 8],
    "retrieval.mode": ["dense", "bm25", "tfidf"],
    "corpus.chunk_size": [800, 400],
}
# What a stage's scorer likes: dense search is best beside small chunks, which a greedy search never sees.
LIKED = {"corpus.chunk_size": {800: 0.2, 400: 0.1}, "retrieval.mode": {"dense": 0.0, "bm25": 0.3, "tfidf": 0.2}}


@pytest.fixture
def scripted(monkeypatch):
    """Let means be those of a script, by the configuration of each variant."""
    install_doubles(monkeypatch)
    monkeypatch.setattr("rag_lab.report.page.report_page.write_report", lambda path, **_: path)
    original = RunFolder.scores

    def scores(run):
        frame = original(run)
        for name in frame["variant_id"].unique():
            flat = run.config(name).flat()
            value = sum(values.get(flat[key], 0.0) for key, values in LIKED.items())
            value += 0.01 * flat["rerank.final_k"]
            frame.loc[(frame["variant_id"] == name) & (frame["metric"] == "retrieval.mrr@1"), "value"] = value
        return frame

    monkeypatch.setattr(RunFolder, "scores", scores)


@pytest.fixture
def planned(tmp_path, scripted):
    return race_plan(tmp_path, design="staged", factors=FACTORS, race=None, choose=20)


def test_the_best_of_each_stage_is_carried_on_and_the_last_is_proven_on_other_questions(planned, start):
    run, race, done = start(planned)
    assert [(one.title, one.standings[0].variant_id) for one in race.rounds] == [
        ("corpus", "baseline"),
        ("retrieval", "mode-bm25"),
        ("rerank", "mode-bm25__final_k-8"),
    ]
    assert [one.variant_id for one in race.rounds[2].standings] == [
        "mode-bm25__final_k-8", "mode-bm25", "mode-bm25__final_k-3"
    ]  # fmt: skip
    assert race.winner == "mode-bm25__final_k-8" and set(done[-2:]) == {("run", "baseline"), ("run", race.winner)}
    chose = set(RunFolder.open(run.path / "rounds/1").questions)
    assert len(chose) == 20 and not chose & set(run.questions)
    told = race_sentences(race, cost_of(run))
    assert "better was found in retrieval and rerank" in told[0]
    assert told[1].startswith("Exploratory: the best means on the 20 questions that chose are too good")
    assert "one comparison, whose p-value needs no correction" in told[2]
    assert compare(run.path).run.pairs == ((race.winner, "baseline"),)

    assert start(planned)[1].rounds == race.rounds


def test_the_dry_run_shows_the_stages_in_the_order_of_the_pipeline(planned):
    told = describe(planned)
    assert "Stages and proof:" in told and "The means that choose prove nothing" in told
    rows = [line.split()[:2] for line in told.splitlines() if line[:2] in ("1 ", "2 ", "3 ")]
    assert rows == [["1", "corpus"], ["2", "retrieval"], ["3", "rerank"]]
    assert "what is chosen against the baseline, one comparison on questions that chose nothing" in told


@pytest.mark.slow
def test_where_no_stage_finds_better_the_runner_up_is_proven(tmp_path, scripted, start):
    factors = {"retrieval.mode": ["bm25", "dense", "tfidf"]}
    run, race, _ = start(race_plan(tmp_path, design="staged", factors=factors, race=None, choose=20))
    assert race.winner == "mode-tfidf"
    assert "no stage found anything better" in race_sentences(race, cost_of(run))[0]


STAGED = {"design": "staged", "factors": FACTORS, "race": None}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_asked": 40}, "and the proof needs 30 others"),
        ({"design": "grid"}, "race: belongs to the design racing, got grid"),
        ({"race": {"round": [5]}}, "race.rounds"),
        ({"factors": {"retrieval.mode": ["dense", "bm25"]}}, "take the design one_factor"),
        (STAGED | {"factors": {"retrieval.mode": ["dense", "bm25"]}}, "staged chooses among at least three variants"),
        (STAGED | {"choose": 40}, "choose: 40 questions choose and the proof needs 30 others, 70 in all"),
        (STAGED | {"n": 4}, "n: belongs to the design fractional, random or optuna, got staged"),
        (STAGED | {"race": {"rounds": [12]}}, "race: belongs to the design racing, got staged"),
    ],
)
def test_what_cannot_be_run_is_one_sentence_before_anything_does(tmp_path, doubles, changes, said):
    with pytest.raises(ExperimentError, match=said):
        race_plan(tmp_path, **changes)
