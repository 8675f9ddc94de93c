"""Sweeps with real kernels and the packaged embedding model; the chat model is a server on loopback."""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from loopback_chat import loopback_chat
from small_plans import values, write_machines_sweep

from rag_lab.config import PipelineConfig
from rag_lab.errors import RagLabError
from rag_lab.experiment.run import run_variants
from rag_lab.experiment.run.outputs import failures
from rag_lab.experiment.run.sweep import sweep
from rag_lab.models import shared
from rag_lab.models.providers import EMBEDDERS
from rag_lab.runs.run_folder import RunFolder

COMMAND = [sys.executable, "-c", "from rag_lab.cli import main; main()"]
METRICS = ["retrieval.mrr@10", "citations.precision", "cost.tokens"]


def write_experiment(folder, chat, **changes):
    models = dict.fromkeys(("generation", "understanding", "hyde"), chat.spec())
    data = {"base": {"models": models, "answer": {"name": "llm"}}, "factors": {"rerank.final_k": [2, 1]}}
    return write_machines_sweep(folder, **data | {"metrics": METRICS, "limits": {"answers": 2}} | changes)


def damaged_model(folder):
    """A reranker that is there, and cannot be loaded."""
    path = folder / "damaged_model"
    path.mkdir()
    for name in ("config.json", "model.safetensors"):
        (path / name).write_text("{}")
    return path


def essence(trace):
    """A trace without what differs between two runs: time, and whether a result was remembered."""
    stages = tuple(replace(record, seconds=0.0, remembered=False) for record in trace.stages)
    return replace(trace, stages=stages)


@pytest.fixture(scope="module")
def chat():
    with loopback_chat() as chat:
        yield chat


@pytest.mark.slow
def test_a_sweep_from_file_to_report_and_again(tmp_path, chat):
    with loopback_chat(broken=True) as broken:
        factors = {
            "rerank.final_k": [2, 1],
            "rerank.name": ["none", "cross_encoder"],
            "models.cross_encoder": [f"sentence_transformers:{damaged_model(tmp_path)}"],
            "models.generation": [chat.spec(), broken.spec()],
        }
        path = write_experiment(tmp_path, chat, factors=factors)
        run = sweep(path, tmp_path / "run", jobs=2, progress=False)
        broken_id = run.variants[-1].variant_id

        assert run == RunFolder.open(tmp_path / "run")
        check_manifest(run, broken_id)
        check_traces(run)
        check_scores(run, broken_id)

        asked = len(chat.prompts)
        again = sweep(path, tmp_path / "run", progress=False)
    assert len(chat.prompts) == asked
    resumed = {name for name, state in again.manifest()["variants"].items() if state["resumed"]}
    assert resumed == {"baseline", "final_k-1"}  # the broken server may answer by now


@pytest.mark.slow
def test_a_first_sweep_by_vectors_loads_their_model_ahead(tmp_path, monkeypatch):
    loaded = []
    monkeypatch.setattr(run_variants, "load_ahead", lambda *what: loaded.append(what))
    base = {"answer": {"name": "none"}, "retrieval": {"mode": "bm25"}}
    plain = {"metrics": METRICS[:1], "base": base, "factors": {"rerank.final_k": [2, 1]}}
    sweep(write_machines_sweep(tmp_path, **plain), tmp_path / "by_words", progress=False)
    assert loaded == []
    by_vectors = write_machines_sweep(tmp_path, **plain | {"factors": {"retrieval.mode": ["bm25", "dense"]}})
    for name in ("first", "again"):  # whose vectors are remembered
        run = sweep(by_vectors, tmp_path / name, progress=False)
        assert failures(run) == []
    ((folder, kind, name, made),) = loaded
    assert (kind, name, made) == (EMBEDDERS, "sentence_transformers:minilm", shared.embedder(name))
    assert Path(folder).name.startswith("rag_lab_models_")


def check_manifest(run, broken_id):
    manifest = run.manifest()
    variants = manifest["variants"]
    assert {name: state["status"] for name, state in variants.items()} == {
        "baseline": "ok",
        "final_k-1": "ok",
        "rerank-cross_encoder": "failed",
        broken_id: "ok",
    }
    assert "damaged_model" in variants["rerank-cross_encoder"]["reason"]
    assert variants["baseline"]["failed_stages"] == {}
    assert variants[broken_id]["failed_stages"] == {"generate": 2}
    told = "\n".join(failures(run))
    assert "Variant rerank-cross_encoder failed" in told
    assert "2 of 4 questions failed at generate" in told
    assert manifest["dataset"]["digest"]
    assert manifest["versions"]["python"].startswith("3.")
    assert len(manifest["models"]["generate"]) == 2


def check_traces(run):
    for variant in ("baseline", "final_k-1"):
        traces = run.traces(variant)
        assert [trace.question.question_id for trace in traces] == ["q1", "q2", "q3", "q4"]
        assert sum(trace.answer is not None for trace in traces) == 2
        assert traces[0].question.evidence[0].context
        ran = PipelineConfig.load(run.variant_dir(variant) / "config.yaml")
        assert ran.identity == run.manifest()["variants"][variant]["config_identity"]
    assert {len(trace.passages) for trace in run.traces("final_k-1") if trace.answer} == {1}
    assert run.traces("rerank-cross_encoder") == []
    kept = nbformat.read(run.variant_dir("rerank-cross_encoder") / "notebook.ipynb", as_version=4)
    assert any(output.output_type == "error" for cell in kept.cells for output in cell.get("outputs", []))


def check_scores(run, broken_id):
    scores = run.scores()
    assert set(scores["variant_id"]) == {"baseline", "final_k-1", broken_id}
    assert len(scores) == 3 * 4 * len(METRICS)
    counts = {status: int((scores["status"] == status).sum()) for status in ("scored", "failed", "not_applicable")}
    assert run.manifest()["counts"] == counts
    assert counts["failed"] > 0
    report = (run.path / "report.html").read_text()
    assert "damaged_model" in report


@pytest.mark.slow
def test_a_killed_sweep_goes_on_with_the_same_results_and_pays_for_nothing_twice(tmp_path, monkeypatch):
    with loopback_chat(delay_s=0.5) as chat:
        path = write_experiment(tmp_path, chat, limits={})
        killed_dir = tmp_path / "killed"
        command = [*COMMAND, "sweep", str(path), "--out", str(killed_dir), "--jobs", "1"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(chat.prompts) < 6 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (killed_dir / "manifest.json").exists()
        chat.delay_s = 0.0
        killed = sweep(path, killed_dir, jobs=1, progress=False)
        asked = [json.dumps(prompt) for prompt in chat.prompts]
        repeated = len(asked) - len(set(asked))

        monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "other_home"))
        whole = sweep(path, tmp_path / "whole", progress=False)

    assert killed.manifest()["variants"]["baseline"]["resumed"]
    assert repeated <= 4  # what the killed kernel had asked and not yet saved: one batch at most
    for variant in ("baseline", "final_k-1"):
        assert list(map(essence, killed.traces(variant))) == list(map(essence, whole.traces(variant)))
    columns = ["variant_id", "question_id", "metric", "value", "status"]
    assert killed.scores()[columns].equals(whole.scores()[columns])


def test_a_folder_that_holds_something_else_is_refused(tmp_path, chat):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("precious")
    with pytest.raises(RagLabError, match="something else"):
        sweep(write_experiment(tmp_path, chat), tmp_path / "out")
    with pytest.raises(RagLabError, match="Cannot write"):
        sweep(write_experiment(tmp_path, chat), tmp_path / "out" / "thesis.txt")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "kill"])
def test_ctrl_c_ends_the_sweep_says_how_to_go_on_and_leaves_no_temporary_folder(tmp_path, number):
    with loopback_chat(delay_s=1.0) as chat, tempfile.TemporaryDirectory() as scratch:
        path = write_experiment(tmp_path, chat, limits={})
        command = [*COMMAND, "sweep", str(path), "--out", str(tmp_path / "run")]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"TMPDIR": scratch},
        )  # fmt: skip
        while not chat.prompts and process.poll() is None:
            time.sleep(0.05)
        assert list(Path(scratch).glob("rag_lab_*"))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert f"Start it again and it goes on where it was: rag-lab sweep {path}" in err
        assert "Traceback" not in err
        assert not list(Path(scratch).glob("rag_lab_*"))
        asked = len(chat.prompts)
        time.sleep(3)
        assert len(chat.prompts) <= asked + 1  # the kernel ends with the sweep
    assert out == ""


@pytest.mark.slow
@pytest.mark.parametrize("most_kb", [20, 90])
def test_a_sweep_without_room_says_so_and_goes_on_once_there_is_some(tmp_path, most_kb):
    path = write_machines_sweep(tmp_path, factors={"rerank.final_k": [5, 3]})
    command = [*COMMAND, "sweep", str(path), "--out", str(tmp_path / "run")]

    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_kb * 1024, most_kb * 1024))

    short = subprocess.run(command, capture_output=True, text=True, preexec_fn=no_room)
    assert short.returncode != 0
    assert "Traceback" not in short.stderr
    assert "room" in short.stderr.splitlines()[-1]
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert values(RunFolder.open(tmp_path / "run")) == values(sweep(path, tmp_path / "other", progress=False))
