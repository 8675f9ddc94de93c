"""A job that another machine runs: the same version, the same corpus, none of this machine's paths."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from small_dataset import write_dataset

from rag_lab._kit.module_files import VARIABLE, modules_from
from rag_lab.data.dataset import Dataset
from rag_lab.errors import RagLabError
from rag_lab.experiment.checkout import NOTEBOOK, checkout_file
from rag_lab.experiment.executors.job import Job, Origin
from rag_lab.experiment.executors.task import Task


@pytest.fixture
def task(tmp_path):
    home = tmp_path / "home"
    dataset = Dataset.load(write_dataset(home))
    out = home / "run" / "variants" / "one"
    out.mkdir(parents=True)
    (out / "config.yaml").write_text("seed: 3\n")
    (home / "run" / "plan.json").write_text("{}")
    (home / "beside").mkdir()
    (home / "beside" / "mine.py").write_text("X = 1\n")
    parameters = {
        "DATASET": str(dataset.path), "OUT": str(out), "CONFIG": str(out / "config.yaml"),
        "QUESTIONS": str(home / "run" / "plan.json"), "REPEATS": 2,
    }  # fmt: skip
    origin = Origin("run-1", "identity", dataset.name, str(dataset.path), dataset.digest)
    environment = {"RAG_LAB_RETRY_FAILED": "1", "RAG_LAB_MODEL_HOST": "/tmp/of_this_machine"}
    files = (out / "notebook.ipynb", parameters, out / "log.txt")
    job = Job("one", checkout_file(NOTEBOOK), *files, environment=environment, origin=origin)
    with modules_from(home / "beside"):
        made = Task.from_json(Task.of(job).to_json())
    home.rename(tmp_path / "elsewhere")  # as on another machine
    return made


def test_a_task_becomes_a_job_with_the_paths_of_the_machine_it_runs_on(tmp_path, task):
    there = tmp_path / "elsewhere"
    job = task.job(tmp_path / "work", str(there / "small"), str(there / "beside"))
    assert job.parameters["REPEATS"] == 2
    assert job.parameters["DATASET"] == str(there / "small")
    assert job.parameters["OUT"] == str(job.output.parent) == str(tmp_path / "work/variants/one")
    assert Path(job.parameters["CONFIG"]).read_text() == "seed: 3\n"
    assert Path(job.parameters["QUESTIONS"]) == tmp_path / "work/plan.json"
    assert str(tmp_path / "home") not in str(job)


def test_it_tries_failures_again_where_the_sweep_does(task):
    assert dict(task.environment) == {"RAG_LAB_RETRY_FAILED": "1"}


def test_another_corpus_version_or_module_is_one_sentence(tmp_path, task):
    there = tmp_path / "elsewhere"
    given = {"dataset": str(there / "small"), "modules": str(there / "beside")}
    with pytest.raises(RagLabError, match="is not here"):
        task.job(tmp_path / "a", modules=given["modules"])
    shutil.copytree(there / "small", tmp_path / "changed")
    (tmp_path / "changed/corpus/oven.txt").write_text("The oven is cold.")
    with pytest.raises(RagLabError, match="another small than that of run-1"):
        task.job(tmp_path / "b", str(tmp_path / "changed"), given["modules"])
    (there / "beside" / "mine.py").write_text("X = 2\n")
    with pytest.raises(RagLabError, match="--beside"):
        task.job(tmp_path / "c", **given)
    for what in ("version of rag_lab", "code of rag_lab"):
        other = replace(task, versions=dict(task.versions) | {what: "other"})
        with pytest.raises(RagLabError, match=f"The {what} is another here"):
            other.job(tmp_path / "d", **given)


def test_modules_are_never_those_of_the_working_folder(tmp_path, task, monkeypatch):
    there = tmp_path / "elsewhere"
    monkeypatch.chdir(there / "beside")
    with pytest.raises(RagLabError, match="modules of its own beside its experiment.* name it with --beside"):
        task.job(tmp_path / "a", str(there / "small"))
    without = replace(task, versions={**task.versions, "modules of one's own": ""})
    assert without.job(tmp_path / "b", str(there / "small")).environment[VARIABLE] == str(tmp_path / "home" / "beside")


def test_a_file_outside_of_the_task_is_not_written(tmp_path, task):
    there = tmp_path / "elsewhere"
    bad = replace(task, files={"CONFIG": ("../../../../outside", "x")})
    with pytest.raises(RagLabError, match="outside"):
        bad.job(tmp_path / "work" / "deep", str(there / "small"), str(there / "beside"))
    assert not (tmp_path / "outside").exists()


def test_a_ledger_that_cannot_be_seen_is_refused_as_limits_would_not_hold(tmp_path, task, monkeypatch):
    there = tmp_path / "elsewhere"
    lost = replace(task, environment={"RAG_LAB_LEDGER": "/nowhere/run/ledger.sqlite"})
    monkeypatch.delenv("RAG_LAB_STORE", raising=False)
    with pytest.raises(RagLabError, match="cannot be seen from here"):
        lost.job(tmp_path / "work", str(there / "small"), str(there / "beside"))
