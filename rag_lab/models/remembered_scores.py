"""Pair scores remembered by (scorer, question, passage): variants whose candidates overlap share them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab._kit.tracing import span
from rag_lab.memory.results import Memory, Replayed
from rag_lab.memory.sharing import Work
from rag_lab.models.limits.read_limit import ReadsPairs, most_tokens
from rag_lab.models.protocols import PairScorer
from rag_lab.models.shared import spec_of


@dataclass(frozen=True)
class RememberedScorer:
    """A `PairScorer` that asks `inner` only for pairs it has not seen; what those took is added to `replayed`."""

    inner: PairScorer
    memory: Memory
    replayed: Replayed = field(default_factory=Replayed, compare=False)

    def identity(self) -> Mapping[str, Any]:
        """The inner scorer's: remembering changes no score."""
        return self.inner.identity()

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of a pair that the inner scorer reads; None where it does not say."""
        return most_tokens(self.inner)

    def pair_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Count as the inner scorer does; 0 where it counts nothing."""
        return self.inner.pair_tokens(pairs) if isinstance(self.inner, ReadsPairs) else [0] * len(pairs)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score for each pair, in order."""
        keys = self._keys(pairs)
        asked = dict(zip(keys, pairs, strict=True))

        def score(some: list[str]) -> dict[str, dict[str, float]]:
            started = time.perf_counter()
            pairs = [asked[key] for key in some]
            with span("score pairs", {"rag_lab.pairs": len(some)}) as said:
                scores = self.inner.score(pairs)
                if said.is_recording:
                    tokens = sum(self.pair_tokens(pairs)) or None
                    model = spec_of(self.inner) or None
                    said.set(gen_ai__request__model=model, gen_ai__usage__input_tokens=tokens)
            seconds = (time.perf_counter() - started) / len(some)
            return {key: {"score": score, "seconds": seconds} for key, score in zip(some, scores, strict=True)}

        work = Work("pair", score, json.dumps, json.loads, batch_size=len(asked))
        found = work.recall(self.memory, asked)
        self.replayed.seconds += sum(each["seconds"] for each in found.values())
        found |= work.do(self.memory, [key for key in asked if key not in found])
        return [float(found[key]["score"]) for key in keys]

    def unknown(self, pairs: Sequence[tuple[str, str]]) -> set[str]:
        """Return the keys of those pairs that have no remembered score."""
        keys = self._keys(pairs)
        return set(keys) - set(self.memory.recall(keys))

    def _keys(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        identity = dict(self.inner.identity())
        return [digest({"version": 2, "scorer": identity, "pair": pair}) for pair in pairs]
