from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_lab.corpus.split.sentences import Semantic
from rag_lab.models.protocols import Vectors


class Subjects:
    """Embeds a text by which of two subjects its words name; counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def identity(self) -> Mapping[str, Any]:
        return {"name": "subjects"}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        vectors = np.array([[text.count("oil") + 1e-3, text.count("soup") + 1e-3] for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    embed_queries = embed_documents


TEXT = "The oil is old. The oil is hot. Change the oil. The soup is hot. The soup is good. Eat the soup."


def test_the_cut_is_where_the_subject_changes() -> None:
    embedder = Subjects()
    found = Semantic(embedder, 80, 1000, 0).split([TEXT, "", "One sentence."])
    pieces = [TEXT[start:end] for start, end in found[0]]
    assert pieces == [
        "The oil is old. The oil is hot. Change the oil.",
        "The soup is hot. The soup is good. Eat the soup.",
    ]
    assert found[1:] == [[], [(0, 13)]]
    assert embedder.calls == 1


def test_a_long_run_is_cut_by_characters() -> None:
    (spans,) = Semantic(Subjects(), 100, 50, 0).split([TEXT])
    assert len(spans) > 1 and all(end - start <= 50 for start, end in spans)
