"""A small real embedder: hashed words, so that texts which share words are near each other."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_lab.models.protocols import Vectors

DIM = 256


class HashedWords:
    """Counts words into hashed bins and records every text it was asked for."""

    def __init__(self, name: str = "words") -> None:
        self.name = name
        self.seen: list[str] = []

    def identity(self) -> Mapping[str, Any]:
        return {"provider": "hashed", "name": self.name}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.seen += texts
        vectors = np.full((len(texts), DIM), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                vectors[row, int(hashlib.md5(word.encode()).hexdigest(), 16) % DIM] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)


@pytest.fixture
def embedder() -> HashedWords:
    return HashedWords()


@pytest.fixture
def other_embedder() -> HashedWords:
    return HashedWords("other")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Three files of which two share a subject."""
    folder = tmp_path / "corpus"
    (folder / "press").mkdir(parents=True)
    (folder / "press/relief_valve.md").write_text("# Relief valve\n\nThe relief valve RV1 opens at 275 bar.\n")
    (folder / "press/oil.txt").write_text("Change the hydraulic oil every 4,000 hours.\n")
    (folder / "canteen.txt").write_text("The canteen opens at noon and serves soup.\n")
    return folder
