import pytest

from rag_lab.config import PipelineConfig
from rag_lab.experiment.run.earlier import resumed
from rag_lab.records import Question, Score, Trace
from rag_lab.runs.run_folder import RunFolder, VariantPlan, write_json
from rag_lab.runs.score_file import write_scores
from rag_lab.runs.trace_file import write_traces


@pytest.fixture
def run(tmp_path):
    found = RunFolder(tmp_path, "n", "q", "d", "a", (), 1, (VariantPlan("a", "a"),), questions=("q1", "q2"))
    folder = found.variant_dir("a")
    folder.mkdir(parents=True)
    write_traces(folder / "traces.jsonl", [Trace(Question(name, "why?")) for name in found.questions])
    write_scores(folder / "scores.parquet", {"a": [Score("q1", "cost.seconds", 0, 1.0, "scored")]})
    config = PipelineConfig().override({"rerank.final_k": 3, "answer.name": "none"})
    (folder / "config.yaml").write_text(config.to_yaml())
    write_json(folder / "passages.json", {"p1": "The valve"})
    write_json(folder / "record.json", {"config_identity": config.identity})
    write_json(folder / "done.json", {"identity": "same", "seconds": 3.0})
    return found


def test_what_is_whole_and_the_same_is_kept(run):
    state = resumed(run, "a", "same")
    assert (state.status, state.resumed, state.seconds) == ("ok", True, 3.0)
    assert set(state.record) == {"config_identity"}
    assert resumed(run, "a", "another") is None


@pytest.mark.parametrize(
    "name", ["config.yaml", "traces.jsonl", "scores.parquet", "passages.json", "record.json", "done.json"]
)
@pytest.mark.parametrize("part", [0, 0.5])
def test_what_was_cut_in_a_crash_runs_again_and_is_said(run, caplog, name, part):
    path = run.variant_dir("a") / name
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    assert resumed(run, "a", "same") is None
    (said,) = caplog.messages
    assert said.startswith(f"Variant a runs again: {path} is damaged (")


def test_a_variant_with_a_trace_missing_runs_again(run, caplog):
    path = run.variant_dir("a") / "traces.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert resumed(run, "a", "same") is None
    assert "it holds 1 traces where 2 are planned" in caplog.text
