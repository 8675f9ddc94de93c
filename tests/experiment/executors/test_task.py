"""A job on its way to another machine, and what comes back: the files of a variant, whole, or nothing."""

import base64
import io
import json
import shutil
import zipfile
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from pydantic import TypeAdapter
from small_dataset import write_dataset

from rag_lab._kit.registry import MODULES_VARIABLE, modules_from
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.experiment.config import NOTEBOOK, checkout_file
from rag_lab.experiment.executors import task as task_module
from rag_lab.experiment.executors.local import Done, Job, Origin, check_parameters
from rag_lab.experiment.executors.task import BadArchiveError, Task, pack, unpack


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
        made = TypeAdapter(Task).validate_json(json.dumps(asdict(Task.of(job))))
    home.rename(tmp_path / "elsewhere")  # as on another machine
    return made


@pytest.fixture
def there(tmp_path, task):
    return tmp_path / "elsewhere"


def test_a_task_becomes_a_job_with_the_paths_of_the_machine_it_runs_on(tmp_path, task, there):
    job = task.job(tmp_path / "work", str(there / "small"), str(there / "beside"))
    assert job.parameters["REPEATS"] == 2
    assert job.parameters["DATASET"] == str(there / "small")
    assert job.parameters["OUT"] == str(job.output.parent) == str(tmp_path / "work/variants/one")
    assert Path(job.parameters["CONFIG"]).read_text() == "seed: 3\n"
    assert Path(job.parameters["QUESTIONS"]) == tmp_path / "work/plan.json"
    assert str(tmp_path / "home") not in str(job)


def test_it_tries_failures_again_where_the_sweep_does(task):
    assert dict(task.environment) == {"RAG_LAB_RETRY_FAILED": "1"}


def test_another_corpus_version_or_module_is_one_sentence(tmp_path, task, there):
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


def test_modules_are_never_those_of_the_working_folder(tmp_path, task, there, monkeypatch):
    monkeypatch.chdir(there / "beside")
    with pytest.raises(RagLabError, match="custom modules beside its experiment.* name it with --beside"):
        task.job(tmp_path / "a", str(there / "small"))
    without = replace(task, versions={**task.versions, "custom modules": ""})
    assert without.job(tmp_path / "b", str(there / "small")).environment[MODULES_VARIABLE] == str(
        tmp_path / "home" / "beside"
    )


def test_a_file_outside_of_the_task_is_not_written(tmp_path, task, there):
    bad = replace(task, files={"CONFIG": ("../../../../outside", "x")})
    with pytest.raises(RagLabError, match="outside"):
        bad.job(tmp_path / "work" / "deep", str(there / "small"), str(there / "beside"))
    assert not (tmp_path / "outside").exists()


def test_a_ledger_that_cannot_be_seen_is_refused_as_limits_would_not_hold(tmp_path, task, there, monkeypatch):
    lost = replace(task, environment={"RAG_LAB_LEDGER": "/nowhere/run/ledger.sqlite"})
    monkeypatch.delenv("RAG_LAB_STORE", raising=False)
    with pytest.raises(RagLabError, match="cannot be seen from here"):
        lost.job(tmp_path / "work", str(there / "small"), str(there / "beside"))


def done(folder, seconds=1.5):
    """A job that has ended, with its files in a folder."""
    output = folder / "notebook.ipynb"
    return Done(Job(folder.name, output, output, {}, folder / "log.txt"), "", seconds)


def variant(folder):
    folder.mkdir()
    (folder / "record.json").write_text("{}")
    (folder / "scores.parquet").write_bytes(bytes(range(256)))
    return folder


def forged(**files):
    """A parcel with these files, by names that a variant may not have."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    content = packed.getvalue()
    sealed = {"sum": sha256(content).hexdigest(), "files": base64.b64encode(content).decode()}
    return json.dumps({"reason": "", "seconds": 1, "where": "", **sealed})


def test_files_come_back_to_the_byte_in_place_of_what_was_there(tmp_path):
    sent = variant(tmp_path / "sent")
    (sent / "live.partial").mkdir()  # folders stay
    got = tmp_path / "run" / "got"
    got.mkdir(parents=True)
    (got / "old.json").write_text("of an earlier start")
    assert unpack(pack(done(sent)), done(got).job) == done(got)
    assert {path.name: path.read_bytes() for path in got.iterdir()} == {
        "record.json": b"{}",
        "scores.parquet": bytes(range(256)),
    }
    assert [path.name for path in got.parent.iterdir()] == ["got"]


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/b", ".hidden"])
def test_a_file_outside_of_the_folder_is_refused_and_nothing_is_written(tmp_path, name):
    with pytest.raises(BadArchiveError):
        unpack(forged(**{"record.json": "{}", name: "x"}), done(tmp_path / "run" / "got").job)
    assert not (tmp_path / "run").exists()
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_parcel_that_was_changed_or_is_none_is_refused(tmp_path):
    known = json.loads(pack(done(variant(tmp_path / "sent"))))
    content = bytearray(base64.b64decode(known["files"]))
    content[40] ^= 1
    changed = json.dumps(known | {"files": base64.b64encode(content).decode()})
    for bad in (changed, "", "[]", "{}", json.dumps(known | {"files": "?"}), json.dumps(known | {"seconds": None})):
        with pytest.raises(BadArchiveError) as error:
            unpack(bad, done(tmp_path / "got").job)
        assert "start the sweep again" in str(error.value)
    assert not (tmp_path / "got").exists()


def test_what_is_too_large_is_neither_sent_nor_unpacked(tmp_path, monkeypatch):
    parcel = pack(done(variant(tmp_path / "sent")))
    monkeypatch.setattr(task_module, "MOST_BYTES", 100)
    with pytest.raises(BadArchiveError):
        pack(done(tmp_path / "sent"))
    with pytest.raises(BadArchiveError):
        unpack(parcel, done(tmp_path / "got").job)


def test_it_knows_the_parameters_that_papermill_finds():
    found = papermill.inspect_notebook(str(checkout_file(NOTEBOOK)))
    check_parameters(checkout_file(NOTEBOOK), dict.fromkeys(found, ""))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([new_code_cell("OUT = 1")], "has no cell with the tag 'parameters'"),
        ([new_code_cell("OUT = ", metadata={"tags": ["parameters"]})], "cannot be read as a notebook with parameters"),
        (None, "cannot be read as a notebook with parameters"),
    ],
)
def test_a_notebook_without_parameters_is_a_sentence(tmp_path, cells, message):
    (tmp_path / "book.ipynb").write_text("not JSON")
    if cells is not None:
        nbformat.write(new_notebook(cells=cells), tmp_path / "book.ipynb")
    with pytest.raises(ConfigError, match=message):
        check_parameters(tmp_path / "book.ipynb", {"OUT": 1})
