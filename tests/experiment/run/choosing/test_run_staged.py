"""Searches stage by stage from plan to proof, their variants run in this process with doubles for models."""

import pytest
from in_process import run_in_process
from raced import race_plan
from whole_plan import install_doubles

from rag_lab.comparison.race_sentences import race_sentences
from rag_lab.experiment.experiment_error import ExperimentError
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import run_plan
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.race_record import cost_of, read_race
from rag_lab.runs.run_folder import RunFolder

SILENT = RunOptions(progress=False, check=False)
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
    monkeypatch.setattr("rag_lab.report.page.report_page.write_report", lambda path: path)
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


def test_the_best_of_each_stage_is_carried_on_and_the_last_is_proven_on_other_questions(planned, tmp_path, monkeypatch):
    done = run_in_process(monkeypatch)
    run = run_plan(planned, tmp_path / "run", options=SILENT)
    race = read_race(run.path)
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

    again = run_plan(planned, tmp_path / "run", options=SILENT)
    assert read_race(again.path).rounds == race.rounds


def test_the_dry_run_shows_the_stages_in_the_order_of_the_pipeline(planned):
    told = describe(planned)
    assert "Stages and proof:" in told and "The means that choose prove nothing" in told
    rows = [line.split()[:2] for line in told.splitlines() if line[:2] in ("1 ", "2 ", "3 ")]
    assert rows == [["1", "corpus"], ["2", "retrieval"], ["3", "rerank"]]
    assert "what is chosen against the baseline, one comparison on questions that chose nothing" in told


@pytest.mark.slow
def test_where_no_stage_finds_better_the_runner_up_is_proven(tmp_path, scripted, monkeypatch):
    run_in_process(monkeypatch)
    planned = race_plan(
        tmp_path, design="staged", factors={"retrieval.mode": ["bm25", "dense", "tfidf"]}, race=None, choose=20
    )
    run = run_plan(planned, tmp_path / "run", options=SILENT)
    race = read_race(run.path)
    assert race.winner == "mode-tfidf"
    assert "no stage found anything better" in race_sentences(race, cost_of(run))[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"factors": {"retrieval.mode": ["dense", "bm25"]}}, "staged chooses among at least three variants"),
        ({"choose": 40}, "choose: 40 questions choose and the proof needs 30 others, 70 in all"),
        ({"n": 4}, "n: belongs to the design fractional, random or optuna, got staged"),
        ({"race": {"rounds": [12]}}, "race: belongs to the design racing, got staged"),
    ],
)
def test_what_no_search_can_do_is_one_sentence(tmp_path, scripted, changes, said):
    with pytest.raises(ExperimentError, match=said):
        race_plan(tmp_path, **{"design": "staged", "factors": FACTORS, "race": None} | changes)
