from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import pytest
from hostile_files import HOSTILE, write_hostile

from rag_lab.config import CorpusConfig
from rag_lab.corpus.index import CorpusIndex, open_index
from rag_lab.corpus.loaders import LOADERS

BOUND_S = 60.0  # some files take a second; one that hangs would take for ever
BOUND_BYTES = 2**30
READ = {name for name, (_, words) in HOSTILE.items() if not words}
LINKS = {"escape.txt": "leaves the corpus", "device.txt": "leaves the corpus", "itself.txt": "", "pipe.txt": "no ordinary"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hostile(tmp_path_factory.mktemp("hostile") / "corpus")


@pytest.fixture(scope="module")
def index(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> CorpusIndex:
    from conftest import HashedWords  # type: ignore[attr-defined]

    return open_index(corpus, CorpusConfig(), HashedWords(), home=tmp_path_factory.mktemp("home"))


def test_there_are_enough_of_every_type() -> None:
    assert len(HOSTILE) >= 30
    assert {Path(name).suffix for name in HOSTILE} >= {".pdf", ".docx", ".xlsx", ".xls", ".csv", ".html", ".txt", ".md"}
