"""Custom metrics and prompts in an experiment: planned, asked by, part of what a result depends on, in the report."""

import json

import pytest
from small_plans import CHAT, install_doubles, run_in_process, run_jobs_here, write_plan

from rag_lab._kit.registry import modules_from
from rag_lab.comparison.comparison import read_comparison
from rag_lab.experiment.design import ExperimentError
from rag_lab.experiment.forecast.caveats import not_applicable_sentences
from rag_lab.experiment.forecast.cost_estimate import estimate
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.manifest import run_identities
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import run_plan, sweep
from rag_lab.memory.ledger import Ledger
from rag_lab.report.page.report_page import write_report
from rag_lab.runs.run_folder import RunFolder

MINE = '''
from dataclasses import dataclass
from typing import ClassVar

from rag_lab.models.protocols import ChatRequest, Message

def hits(trace):
    """How many passages the ranking holds."""
    return len(trace.ranked)

hits.fields = ("ranked",)
hits.higher_is_better = False

@dataclass(frozen=True)
class Within:
    """1 where the answer has at most so many words."""
    words: int = 10
    version: ClassVar[int] = 1
    needs: ClassVar[str] = "answer"
    low: ClassVar[float] = 0
    high: ClassVar[float] = 1

    def __call__(self, trace):
        return len(trace.answer.text.split()) <= self.words

def seconds_of_two(trace):
    return sum(stage.seconds for stage in trace.stages)

seconds_of_two.is_cost = True

def asks(trace, judge):
    (reply,) = judge.generate([ChatRequest((Message("user", trace.question.text),))])
    return len(reply.text)

def asks_twice(trace, judge):
    return 1.0

asks_twice.calls = 2
'''
NAMES = ["mine:hits", "mine:Within?words=3", "retrieval.mrr@10", "mine:seconds_of_two"]
SILENT = {"query": {"rewrite": "none", "hyde": "none"}, "answer": {"name": "none"}, "retrieval": {"mode": "bm25"}}


@pytest.fixture
def doubles(monkeypatch):
    return install_doubles(monkeypatch)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def test_a_plan_knows_the_metrics_beside_its_file(folder, doubles):
    checked = write_plan(folder, metrics=NAMES, limits={"answers": 1})
    run = checked.run_folder(folder / "run")
    assert run.metrics == ("hits", "Within?words=3", "retrieval.mrr@10", "seconds_of_two")
    assert list(run.own_metrics) == ["hits", "Within?words=3", "seconds_of_two"]
    assert any(
        "Metric Within?words=3 is not applicable to 2 of 3 questions" in one
        for one in not_applicable_sentences(checked)
    )
    assert "mine:Within?words=3" in describe(checked)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine:hit", "'mine' has no 'hit'"),
        ("nowhere:hits", r"put nowhere\.py into"),
        ("mine:Within?words=few", "words: must be a valid integer"),
        ("mine:asks", "needs a judge and has none"),
    ],
)
def test_what_is_wrong_with_one_is_said_with_all_else(folder, doubles, name, said):
    with pytest.raises(ExperimentError, match=rf"(?s){said}.*no_such|no_such.*{said}"):
        write_plan(folder, metrics=[name, "no_such"])


def test_an_edited_metric_is_not_taken_for_the_one_that_ran(folder, doubles):
    checked = write_plan(folder, metrics=NAMES)
    notebook = folder / "notebook.ipynb"
    notebook.write_text("{}")
    before = run_identities(checked, notebook)
    (folder / "mine.py").write_text(MINE.replace("<=", "<"))
    assert run_identities(checked, notebook) != before


def test_a_run_shows_them_where_their_file_is_gone(folder, doubles, monkeypatch):
    checked = write_plan(folder, metrics=NAMES)
    run_jobs_here(monkeypatch)
    run = run_plan(checked, folder / "run", RunOptions(progress=False, check=False))
    (folder / "mine.py").write_text("raise SystemExit('was run')")
    tables = read_comparison(RunFolder.open(run.path).path)
    assert tables.quality_metrics == ("hits", "Within?words=3", "retrieval.mrr@10")
    assert tables.cost_metrics == ("seconds_of_two",)
    assert not tables.scales["hits"].higher_is_better
    assert (tables.scales["Within?words=3"].low, tables.scales["Within?words=3"].high) == (0.0, 1.0)
    assert "hits (lower is better)" in write_report(run.path).read_text()


def test_a_run_folder_whose_metrics_are_damaged_is_refused_in_one_sentence(folder, doubles):
    run = write_plan(folder, metrics=NAMES).run_folder(folder / "run")
    run.write_plan()
    plan = json.loads((run.path / "plan.json").read_text())
    plan["own_metrics"]["hits"]["low"] = "deep"
    (run.path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(Exception, match=r"its plan\.json is not a plan"):
        RunFolder.open(run.path)


def test_the_dry_run_counts_the_calls_that_a_metric_names_and_says_where_none_does(folder, doubles, monkeypatch):
    checked = write_plan(folder, metrics=["mine:asks", "mine:asks_twice"], judge=CHAT, factors={})
    rows = {row.purpose: row for row in estimate(checked).rows}
    assert (rows["asks"].unit, rows["asks"].n, rows["asks"].calls, rows["asks"].minutes) == ("score", 4, 0, None)
    assert (rows["asks_twice"].unit, rows["asks_twice"].n) == ("call", 8)
    text = describe(checked)
    assert "Nobody knows how often asks asks the judge" in text
    (line,) = (line for line in text.splitlines() if line.startswith("asks "))
    assert line.split()[-4:] == ["scores", "?", "?", "0.00"]  # a server on this machine is free
    with modules_from(checked.folder):
        list(run_in_process(checked, Ledger(folder / "ledger.sqlite"), monkeypatch))
    rows = {row.purpose: row for row in estimate(checked).rows}
    assert (rows["asks"].remembered, rows["asks"].n) == (4, 0)


@pytest.mark.slow
def test_a_sweep_measures_with_a_file_beside_the_experiment(folder, monkeypatch):
    checked = write_plan(folder, base=SILENT, metrics=["mine:hits", "mine:Within", "retrieval.mrr@10"])
    assert checked.folder == folder
    monkeypatch.chdir(folder.parent)  # the file is found beside the experiment, not where the command was started
    run = sweep(folder / "experiment.yaml", folder / "run", progress=False)
    scores = run.scores()
    assert {state["status"] for state in run.manifest()["variants"].values()} == {"ok"}
    hits = scores[scores["metric"] == "hits"]
    assert set(hits["status"]) == {"scored"}
    assert sorted(hits.groupby("variant_id")["value"].max()) == [2.0, 4.0]
    within = scores[scores["metric"] == "Within"]
    assert set(within["reason"]) == {"no answer was asked for"}
    again = sweep(folder / "experiment.yaml", folder / "run", progress=False)
    assert all(state["resumed"] for state in again.manifest()["variants"].values())
    assert "hits (lower is better)" in (run.path / "report.html").read_text()


SHORT = "[system]\nAnswer in <three> words.\n[user]\n{{ context }}\n\n{{ question }}\n"
FACTORS = {"prompts.answer": ["builtin", "short.j2"]}


def test_a_sweep_asks_in_both_and_its_report_shows_the_text(tmp_path, doubles, monkeypatch):
    (tmp_path / "short.j2").write_text(SHORT)
    checked = write_plan(tmp_path, factors=FACTORS, metrics=["retrieval.mrr@10", "answer.abstention"])
    run_jobs_here(monkeypatch)
    run = run_plan(checked, tmp_path / "run", RunOptions(progress=False, check=False))
    own = {trace.prompt for trace in run.traces("answer-short.j2")}
    assert all(text.startswith("system: Answer in <three> words.\n\nuser: [1] (") for text in own)
    assert not own & {trace.prompt for trace in run.traces("baseline")}
    assert run.manifest()["prompts"] == {"answer": [{"file": "short.j2", "text": SHORT}]}
    page = (run.path / "report.html").read_text()
    assert "The prompt short.j2 (answer)" in page and "Answer in &lt;three&gt; words." in page


def test_an_edited_prompt_is_not_taken_for_the_one_that_ran(tmp_path, doubles):
    (tmp_path / "short.j2").write_text(SHORT)
    checked = write_plan(tmp_path, factors=FACTORS)
    notebook = tmp_path / "notebook.ipynb"
    notebook.write_text("{}")
    before = run_identities(checked, notebook)
    (tmp_path / "short.j2").write_text(SHORT.replace("three", "four"))
    after = run_identities(checked, notebook)
    assert before["baseline"] == after["baseline"]
    assert before["answer-short.j2"] != after["answer-short.j2"]


def test_a_prompt_that_is_not_there_is_told_before_anything_runs(tmp_path, doubles):
    with pytest.raises(ExperimentError, match=r"(?s)no_such.*prompts.answer: Cannot read the prompt .*short\.j2"):
        write_plan(tmp_path, factors=FACTORS, metrics=["no_such"])
