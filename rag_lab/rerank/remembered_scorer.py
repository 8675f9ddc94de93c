"""Pair scores remembered by (scorer, question, passage): variants whose candidates overlap share them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab.config import digest
from rag_lab.memory import Memory
from rag_lab.models.base import PairScorer


@dataclass(frozen=True)
class RememberedScorer:
    """A `PairScorer` that asks `inner` only for pairs it has not seen."""

    inner: PairScorer
    memory: Memory

    def identity(self) -> Mapping[str, Any]:
        """The inner scorer's: remembering changes no score."""
        return self.inner.identity()

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score for each pair, in order."""
        keys = self._keys(pairs)
        known = self.memory.recall(keys)
        missing = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in known}
        scores = self.inner.score(list(missing.values())) if missing else []
        fresh = {key: json.dumps(score) for key, score in zip(missing, scores, strict=True)}
        self.memory.store("pair", fresh)
        return [float(json.loads((known | fresh)[key])) for key in keys]

    def unknown(self, pairs: Sequence[tuple[str, str]]) -> set[str]:
        """Return the keys of those pairs that have no remembered score."""
        keys = self._keys(pairs)
        return set(keys) - set(self.memory.recall(keys))

    def _keys(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        identity = dict(self.inner.identity())
        return [digest({"scorer": identity, "pair": pair}) for pair in pairs]
