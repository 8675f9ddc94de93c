"""A sweep needs no checkout: what it takes from there ships with the package, too."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from small_dataset import write_dataset

import rag_lab
from rag_lab.errors import ConfigError
from rag_lab.experiment.config import PACKAGED, ExperimentConfig
from rag_lab.experiment.design import ExperimentError
from rag_lab.experiment.plan import plan
from rag_lab.runs.run_folder import RunFolder

ROOT = Path(rag_lab.__file__).parents[1]
MODULE = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Shortest:
    keep: int = 4
    version: ClassVar[int] = 1

    def __call__(self, question, passages):
        return [-len(passage) for passage in passages]
"""
SWEEP = """
import sys, rag_lab
assert "site" in rag_lab.__file__, rag_lab.__file__
off = {"query.rewrite": "none", "query.hyde": "none", "rerank.name": "none", "answer.name": "none"}
base = rag_lab.PipelineConfig().override(off)
rag_lab.sweep({
    "name": "own", "question": "Does it pay?", "dataset": sys.argv[1], "base": base.model_dump(),
    "factors": {"rerank.name": ["none", "shortest:Shortest?keep=2"]},
}, sys.argv[2], progress=False)
"""


def files(place):
    """The content of a file, or of all files of a folder, by name."""
    return {path.name: path.read_bytes() for path in (sorted(place.iterdir()) if place.is_dir() else [place])}


@pytest.mark.parametrize("name", PACKAGED)
def test_what_people_edit_and_what_ships_are_equal(name):
    beside, shipped = files(ROOT / name), files(PACKAGED[name])
    assert list(beside.values()) == list(shipped.values()), f"copy {name} to {PACKAGED[name]}"


@pytest.mark.slow
def test_an_installed_package_sweeps_a_mapping_with_a_module_beside_it(tmp_path):
    shutil.copytree(ROOT / "rag_lab", tmp_path / "site/rag_lab", ignore=shutil.ignore_patterns("__pycache__"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "shortest.py").write_text(MODULE)
    command = [sys.executable, "-c", SWEEP, str(write_dataset(tmp_path)), str(tmp_path / "run")]
    ended = subprocess.run(
        command,
        cwd=work,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    manifest = RunFolder.open(tmp_path / "run").manifest()
    assert [state["status"] for state in manifest["variants"].values()] == ["ok", "ok"], manifest["variants"]


def test_a_mapping_a_config_and_a_file_are_the_same_plan(tmp_path):
    data = {
        "name": "n",
        "question": "q",
        "dataset": str(write_dataset(tmp_path)),
        "factors": {"rerank.final_k": [5, 2]},
    }
    config = ExperimentConfig(**data)
    (tmp_path / "e.yaml").write_text(config.to_yaml())
    by_file = plan(tmp_path / "e.yaml")
    for given in (data, config):
        checked = plan(given)
        assert (checked.variants, checked.questions) == (by_file.variants, by_file.questions)
        assert checked.folder == Path.cwd()
    assert by_file.folder == tmp_path
    with pytest.raises(ConfigError, match="The experiment: dataset: Unknown dataset"):
        plan(data | {"dataset": "nowhere"})


@dataclass(frozen=True)
class Mine:
    """A module that no kernel can import."""


def test_what_lives_in_memory_alone_is_refused_in_a_sentence():
    data = {"name": "n", "question": "q", "dataset": "d", "factors": {"rerank.name": ["none", Mine()]}}
    with pytest.raises(ConfigError, match=r"cannot import: put its class into a file in this folder and name it"):
        plan(data)


@pytest.mark.parametrize(
    "given",
    [
        {"factors": {"rerank.name": ["none", "__main__:Mine"]}},
        {"base": {"corpus": {"readers": {".md": "__main__:Mine"}}}},
        {"base": {"models": {"embedding": "__main__:Mine"}}},
        {"base": {"store": {"name": "langchain:__main__:Mine"}}},
        {"metrics": ["__main__:Mine"]},
        {"judge": "__main__:Mine", "metrics": ["ragas.faithfulness"]},
        {"design": "__main__:Mine"},
    ],
)
def test_a_name_that_only_this_process_knows_is_refused_in_a_sentence(tmp_path, given):
    (tmp_path / "e.yaml").write_text(yaml.safe_dump({"name": "n", "question": "q", "dataset": "d"} | given))
    with pytest.raises(ExperimentError) as error:
        plan(tmp_path / "e.yaml")
    (said,) = {problem for problem in error.value.problems if "__main__" in problem}
    assert "cannot import it: put it into a file beside the experiment and name it, as in 'my_file:Mine'" in said
