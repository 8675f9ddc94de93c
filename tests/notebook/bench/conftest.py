"""Benches on the small dataset that load no model: words are searched, and a script answers where answers are asked."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_dataset import write_dataset

from rag_lab.config import PipelineConfig
from rag_lab.notebook.bench import bench_work
from rag_lab.notebook.bench.bench import Bench
from rag_lab.pipeline import Pipeline
from rag_lab.testing import ScriptedChat

WORDS_ALONE = PipelineConfig().override(
    {"retrieval.mode": "bm25", "query.rewrite": "none", "query.hyde": "none", "answer.name": "none"}
)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("bench"))


@pytest.fixture(autouse=True)
def new_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_work, "_BENCHES", {})


@pytest.fixture
def bench(dataset: Path, tmp_path: Path) -> Bench:
    return Bench(dataset, WORDS_ALONE, home=tmp_path / "home")


@pytest.fixture
def answering(dataset: Path, tmp_path: Path) -> Callable[..., Bench]:
    """A bench whose answers a script writes: texts in order, or a function of the request."""

    def made(script: object) -> Bench:
        pipeline = Pipeline(dataset, WORDS_ALONE.override({"answer.name": "llm"}), home=tmp_path / "home")
        return Bench(pipeline.replace(generation_model=ScriptedChat(script)))

    return made
