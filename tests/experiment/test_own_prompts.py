"""Prompts of one's own in an experiment: planned, asked by, part of what a result depends on, told in the report."""

import pytest
from small_plans import install_doubles, run_jobs_here, write_plan

from rag_lab.experiment.design import ExperimentError
from rag_lab.experiment.manifest import run_identities
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import run_plan

SHORT = "[system]\nAnswer in <three> words.\n[user]\n{{ context }}\n\n{{ question }}\n"
FACTORS = {"prompts.answer": ["builtin", "short.j2"]}


@pytest.fixture
def doubles(monkeypatch):
    return install_doubles(monkeypatch)


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
