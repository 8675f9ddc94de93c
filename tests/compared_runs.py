"""Runs that the tests of comparison and report look at."""

from types import ModuleType

import numpy as np
import pytest
import run_folder_fixture
import synthetic_run

from rag_lab.comparison.comparison import Comparison
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import RunFolder


@pytest.fixture(scope="session")
def build() -> ModuleType:
    """The module that writes run folders: `build.build_run(path, questions, variants, repeats)`."""
    return run_folder_fixture


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """The module that writes runs with given scores: `synthetic.write_run(path, plans, metrics)`."""
    return synthetic_run


@pytest.fixture(scope="session")
def grid(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A full grid in which HyDE helps alone and adds nothing beside the reranker."""
    path = tmp_path_factory.mktemp("report") / "grid"
    return compare(synthetic.write_run(path, synthetic.GRID, {synthetic.MAIN: synthetic.factorial()}).path)


@pytest.fixture(scope="session")
def routed(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A HyDE study: HyDE helps fuzzy questions and hurts specific ones; each fifth is taken for the other class."""
    random = np.random.default_rng(0)
    labelled = ["fuzzy" if index % 2 else "specific" for index in range(80)]
    other = {"fuzzy": "specific", "specific": "fuzzy"}
    predicted = [other[name] if index % 5 == 0 else name for index, name in enumerate(labelled)]
    none = random.uniform(0.3, 0.6, 80)
    always = none + np.where(np.array(labelled) == "fuzzy", 0.1, -0.1) + random.normal(0, 0.02, 80)
    classified = np.where(np.array(predicted) == "fuzzy", always, none)
    values = {"none": none, "always": always, "classified": classified}
    plans = {name: {synthetic.HYDE: name} for name in values}
    path = tmp_path_factory.mktemp("report") / "routed"
    return compare(synthetic.write_run(path, plans, {synthetic.MAIN: values}, labelled, predicted).path)


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


@pytest.fixture(scope="session")
def promising(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """60 questions under 13 variants, of which v0 would be better if nothing else had been compared."""
    random = np.random.default_rng(5)
    base = random.uniform(0.3, 0.6, 60)
    plans = {"base": {}} | {f"v{number}": {"retrieval.base_k": 21 + number} for number in range(12)}
    values = {name: base + random.normal(0, 0.05, 60) for name in plans} | {"base": base}
    noise = random.normal(0, 1, 60)
    values["v0"] = base + 0.017 + 0.05 * (noise - noise.mean()) / noise.std()
    return compare(synthetic.write_run(tmp_path_factory.mktemp("report") / "run", plans, {synthetic.MAIN: values}).path)
