import json

import pytest

from rag_lab.errors import RagLabError
from rag_lab.experiment.run_folder import RunFolder, VariantPlan, write_json
from rag_lab.records import Question, Trace
from rag_lab.trace_file import write_traces


@pytest.fixture
def run(tmp_path):
    variants = (VariantPlan("baseline", "baseline", {}), VariantPlan("final_k-3", "final_k = 3", {"rerank.final_k": 3}))
    asked, answered = ("a", "b"), ("a",)
    run = RunFolder(
        tmp_path / "run", "n", "q?", "d", "baseline", ("cost.seconds",), 2, variants, asked, answered, "document"
    )
    run.write_plan()
    return run


def test_what_is_written_is_opened(run):
    assert RunFolder.open(run.path) == run
    assert RunFolder.open(str(run.path)) == run


def test_traces_of_a_variant_that_has_not_run_are_none(run):
    assert run.traces("baseline") == []
    run.variant_dir("baseline").mkdir(parents=True)
    trace = Trace(Question("a", "why?"))
    write_traces(run.variant_dir("baseline") / "traces.jsonl", [trace])
    assert run.traces("baseline") == [trace]


def test_an_unfinished_run_has_no_manifest_and_may_have_no_scores(run):
    assert run.manifest() == {}
    with pytest.raises(RagLabError, match=r"scores\.parquet"):
        run.scores()
    write_json(run.path / "manifest.json", {"name": "n"})
    assert run.manifest() == {"name": "n"}


@pytest.mark.parametrize("content", [None, "", "[]", "{}", "nonsense", json.dumps({"name": "n", "variants": 3})])
def test_what_is_no_run_folder_is_one_sentence(tmp_path, content):
    if content is not None:
        (tmp_path / "plan.json").write_text(content)
    with pytest.raises(RagLabError, match="is no run folder"):
        RunFolder.open(tmp_path)
    with pytest.raises(RagLabError, match="no such folder"):
        RunFolder.open(tmp_path / "missing")
