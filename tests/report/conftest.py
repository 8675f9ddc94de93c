from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from rag_lab.experiment.run_folder import RunFolder
from rag_lab.report.compare import compare
from rag_lab.report.comparison import Comparison


def _load_fixture() -> ModuleType:
    path = Path(__file__).with_name("run_folder_fixture.py")
    spec = importlib.util.spec_from_file_location("run_folder_fixture", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def build() -> ModuleType:
    """The module that writes run folders: `build.build_run(path, questions, variants, repeats)`."""
    return _load_fixture()


@pytest.fixture(scope="session")
def run(build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return build.build_run(tmp_path_factory.mktemp("report") / "run")


@pytest.fixture(scope="session")
def comparison(run: RunFolder) -> Comparison:
    return compare(run.path)


@pytest.fixture(scope="session")
def wide(build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """40 questions under six variants: enough for reliable differences."""
    return compare(build.build_run(tmp_path_factory.mktemp("report") / "wide", 40, 6).path)
