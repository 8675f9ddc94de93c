"""Prompts of one's own in an experiment: planned, asked by, part of what a result depends on, told in the report."""

import pytest
from small_plans import install_doubles, run_in_process, write_plan

from rag_lab._kit.module_files import modules_from
from rag_lab.experiment.designs.factors import ExperimentError
from rag_lab.experiment.manifest import VariantState, build_manifest, now, run_identities
from rag_lab.experiment.run.outputs import merge_scores
from rag_lab.memory.ledger import Ledger
from rag_lab.report.page.report_page import write_report
from rag_lab.runs.run_folder import MANIFEST_FILE, write_json

SHORT = "[system]\nAnswer in <three> words.\n[user]\n{{ context }}\n\n{{ question }}\n"
FACTORS = {"prompts.answer": ["builtin", "short.j2"]}


@pytest.fixture
def doubles(monkeypatch):
    return install_doubles(monkeypatch)


def test_a_sweep_asks_in_both_and_its_report_shows_the_text(tmp_path, doubles, monkeypatch):
    (tmp_path / "short.j2").write_text(SHORT)
    checked = write_plan(tmp_path, factors=FACTORS, metrics=["retrieval.mrr@10", "answer.abstention"])
    run = checked.run_folder(tmp_path / "run")
    run.write_plan()
    states = []
    with modules_from(checked.folder):
        for variant, done in run_in_process(checked, Ledger(tmp_path / "ledger.sqlite"), monkeypatch):
            done.out = run.variant_dir(variant)
            done.out.mkdir(parents=True)
            done.save()
            states.append(VariantState(variant, "ok", record=done.record()))
    merge_scores(run, [variant.variant_id for variant in checked.variants])
    write_json(run.path / MANIFEST_FILE, build_manifest(checked, states, {}, now()))
    own = {trace.prompt for trace in run.traces("answer-short.j2")}
    assert all(text.startswith("system: Answer in <three> words.\n\nuser: [1] (") for text in own)
    assert not own & {trace.prompt for trace in run.traces("baseline")}
    assert run.manifest()["prompts"] == {"answer": [{"file": "short.j2", "text": SHORT}]}
    page = write_report(run.path).read_text()
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
