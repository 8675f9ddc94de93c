"""Pair scores remembered by (scorer, question, passage): variants whose candidates overlap share them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab.digest import digest
from rag_lab.memory import Memory
from rag_lab.models.base import PairScorer
from rag_lab.replayed import replay


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
        known = {key: json.loads(text) for key, text in self.memory.recall(keys).items()}
        replay(sum(each["seconds"] for each in known.values()))
        missing = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in known}
        fresh = self._score(missing) if missing else {}
        return [float((known | fresh)[key]["score"]) for key in keys]

    def unknown(self, pairs: Sequence[tuple[str, str]]) -> set[str]:
        """Return the keys of those pairs that have no remembered score."""
        keys = self._keys(pairs)
        return set(keys) - set(self.memory.recall(keys))

    def _score(self, missing: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, float]]:
        started = time.perf_counter()
        scores = self.inner.score(list(missing.values()))
        seconds = (time.perf_counter() - started) / len(missing)
        fresh = {key: {"score": score, "seconds": seconds} for key, score in zip(missing, scores, strict=True)}
        self.memory.store("pair", {key: json.dumps(each) for key, each in fresh.items()})
        return fresh

    def _keys(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        identity = dict(self.inner.identity())
        return [digest({"version": 2, "scorer": identity, "pair": pair}) for pair in pairs]
