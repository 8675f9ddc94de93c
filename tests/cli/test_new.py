"""`rag-lab new module`: what it writes passes its contract test and is planned as it stands."""

import os
import subprocess
import sys

import pytest
import yaml
from small_dataset import write_dataset

from rag_lab._kit.config_file import read_shipped
from rag_lab.cli.new import _KINDS, write_module
from rag_lab.errors import ConfigError
from rag_lab.experiment.plan import plan
from rag_lab.runs.run_folder import RunFolder

RAG_LAB = [sys.executable, "-c", "from rag_lab.cli import main; main()"]
KINDS = sorted(read_shipped(_KINDS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One module of each kind, `my_<kind>`."""
    folder = tmp_path_factory.mktemp("mine")
    for kind in KINDS:
        write_module(kind, f"my_{kind}", folder)
    return folder


def run(folder, *command):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_a_new_module_of_each_kind_keeps_to_its_contract(folder):
    done = run(folder, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")
    assert done.returncode == 0, done.stdout
    assert all((folder / f"test_my_{kind}.py").is_file() for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_its_experiment_is_planned_as_it_stands(folder, kind, monkeypatch):
    monkeypatch.chdir(folder)
    planned = plan(f"my_{kind}.yaml")
    assert f"my_{kind}:My" in str(yaml.safe_load((folder / f"my_{kind}.yaml").read_text()))
    assert planned.expansion.notices == ()


def test_it_is_as_ours_are_formatted(folder):
    done = run(folder, sys.executable, "-m", "ruff", "check", "--select", "E,F,UP,B", "--line-length", "120", ".")
    assert done.returncode == 0, done.stdout
    done = run(folder, sys.executable, "-m", "ruff", "format", "--check", "--line-length", "120", ".")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_new_reranker_is_swept_against_the_baseline(tmp_path):
    told = run(tmp_path, *RAG_LAB, "new", "module", "reranker", "my_reranker").stdout
    assert "\n  rag-lab sweep my_reranker.yaml\n" in told
    write_dataset(tmp_path)
    experiment = yaml.safe_load((tmp_path / "my_reranker.yaml").read_text())
    experiment |= {"dataset": "small", "limits": {"questions": 3}}
    (tmp_path / "my_reranker.yaml").write_text(yaml.safe_dump(experiment))
    done = run(tmp_path, *RAG_LAB, "sweep", "my_reranker.yaml")
    assert done.returncode == 0, done.stderr
    swept = RunFolder.open(tmp_path / "results/my_reranker")
    mine = swept.traces(swept.variants[1].variant_id)
    assert len(mine) == 3
    assert all("own" in hit.scores for trace in mine for hit in trace.ranked)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("rerankr", "mine", "Unknown kind of module 'rerankr'.*did you mean 'reranker'"),
        ("reranker", "My-Reranker", "A module cannot be called 'My-Reranker': small letters"),
        ("reranker", "class", "cannot be called 'class'"),
        ("reranker", "json", "cannot be called 'json'"),
        ("reranker", "rag_lab", "cannot be called 'rag_lab'"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(tmp_path, kind, name, said):
    with pytest.raises(ConfigError, match=said):
        write_module(kind, name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: mine")
    with pytest.raises(ConfigError, match=r"mine\.yaml is there already and is not written over"):
        write_module("reranker", "mine", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]
    written = write_module("reranker", "mine", tmp_path / "new" / "folder")
    assert all(path.is_file() for path in written)


def test_a_folder_and_documents_are_enough_and_modules_go_on_as_they_were(tmp_path):
    write_dataset(tmp_path)
    docs = tmp_path / "small" / "corpus"
    done = run(tmp_path, *RAG_LAB, "new", "mine", str(docs), "--copy")
    assert done.returncode == 0, done.stderr
    assert "rag-lab sweep mine/experiment.yaml" in done.stderr
    assert (tmp_path / "mine" / "profile.html").is_file()
    assert (tmp_path / "mine" / "corpus" / "press.md").is_file()
    for line in done.stdout.splitlines():
        assert line.startswith("Set: ") or (tmp_path / line.split("  ")[0]).exists()
    again = run(tmp_path, *RAG_LAB, "new", "project", "mine", str(docs))
    assert again.returncode == 2 and "not written over" in again.stderr
    assert "Traceback" not in again.stderr
    assert run(tmp_path, *RAG_LAB, "new", "module", "reranker", "mine_too").returncode == 0
