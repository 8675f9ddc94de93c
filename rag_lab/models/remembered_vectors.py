"""Embeddings and pair scores that are remembered: by the model's identity and the text or pair, for all variants."""

import hashlib
import json
import struct
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rag_lab._kit.digest import digest
from rag_lab._kit.observability import span
from rag_lab.errors import ModelError
from rag_lab.memory.open_store import is_there, opened_store
from rag_lab.memory.results import VECTORS, Memory, Replayed, Work, batches, recall, recall_vectors, store_vectors
from rag_lab.models import protocols, truncation
from rag_lab.models.shared import spec_of

Watch = bool | Callable[[int, int], None]  # told after each portion that is saved: how many are done, and of how many

_MOST_TEXTS = 512  # embedded before they are saved: what a kill loses at most
_STEP_CHARS = 25_600  # of texts in the first portion, and at least; how long they take changes no vector
_TELL_EVERY_S = 1.0  # so long a portion should take at least, three times as long at most
_KEYS_AT_ONCE = 500  # looked for, so that few vectors are held to find out
_SECONDS = struct.Struct("<d")  # that a vector took, before it in its value


@dataclass(slots=True)
class Embedded:
    """What has been embedded since this was handed out, and what it took, the loading of the model included."""

    chars: int = 0
    seconds: float = 0.0


class _Remembering:
    """What remembering leaves as it is."""

    __slots__ = ()
    inner: protocols.Embedder | protocols.PairScorer

    def identity(self) -> Mapping[str, Any]:
        """Return the inner model's identity: remembering changes no result."""
        return self.inner.identity()

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of a text or pair that the inner model reads; None where it does not say."""
        return truncation.most_tokens(self.inner)


@dataclass(frozen=True, slots=True)
class RememberedEmbedder(_Remembering, protocols.EmbedsByKind):
    """Embeds only what `inner` has not; processes may share `path`. Seconds go to `replayed` or `embedded`."""

    inner: protocols.Embedder
    path: Path
    progress: Watch = False  # of the texts that must be embedded: a bar on stderr, or what is told
    replayed: Replayed = field(default_factory=Replayed, compare=False)
    embedded: Embedded = field(default_factory=Embedded, compare=False)

    def text_tokens(self, texts: Sequence[str], kind: protocols.TextKind) -> list[int]:
        """Count as the inner embedder does; 0 where it counts nothing."""
        return (
            self.inner.text_tokens(texts, kind) if isinstance(self.inner, truncation.ReadsTexts) else [0] * len(texts)
        )

    def known_documents(self, texts: Sequence[str]) -> dict[str, str | None]:
        """Return a key for each different passage, with the passage, None where its vector is known."""
        found = dict(zip(self._keys("document", texts), texts, strict=True))
        if not is_there(self.path):
            return {key.hex(): text for key, text in found.items()}
        with opened_store(self.path, VECTORS) as store:
            known = {key for some in batches([*found], _KEYS_AT_ONCE) for key in recall(store, "remembered", some)}
        return {key.hex(): None if key in known else text for key, text in found.items()}

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> protocols.Vectors:
        """Return a vector for each span, read within its text; those of a text are made at once."""
        prefix = f"{digest(dict(self.identity()))}\nspans\n{hashlib.sha256(text.encode()).hexdigest()}\n"
        keys = [hashlib.sha256(f"{prefix}{start}-{end}".encode()).digest() for start, end in spans]
        known = recall_vectors(self.path, keys)
        self.replayed.seconds += sum(_SECONDS.unpack_from(value)[0] for value in known.values())
        if missing := {key: span for key, span in zip(keys, spans, strict=True) if key not in known}:
            inner: Any = self.inner  # with the method, which was checked before
            started = time.perf_counter()
            vectors = inner.embed_spans(text, [*missing.values()])
            seconds = time.perf_counter() - started
            share_s = _SECONDS.pack(seconds / len(missing))
            made = {key: share_s + row.astype("<f4").tobytes() for key, row in zip(missing, vectors, strict=True)}
            store_vectors(self.path, made)
            self.embedded.seconds += seconds
            self.embedded.chars += len(text)
            known |= made
        return np.stack([np.frombuffer(known[key], "<f4", offset=_SECONDS.size) for key in keys])

    def _embed(self, kind: protocols.TextKind, texts: Sequence[str]) -> protocols.Vectors:
        if not texts:
            return np.zeros((0, 0), np.float32)
        keys = self._keys(kind, texts)
        of_key = dict(zip(keys, texts, strict=True))
        known = self._known(of_key)
        if len(known) < len(of_key):
            from filelock import FileLock

            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Variants side by side miss the same texts at the same time: one embeds them, the others find them. What
            # somebody watches is an index; only those of the same texts wait for each other, and no question for them.
            whose: Any = sorted(key.hex() for key in of_key) if self.progress else dict(self.identity())
            name = digest(whose)[: 2 if self.progress else 16]  # a file is left of each, so indexes share a few
            with FileLock(self.path.with_name(f"{name}.lock")):
                known |= self._known([key for key in of_key if key not in known])
                known |= self._embed_unknown(kind, {key: of_key[key] for key in of_key if key not in known})
        return np.stack([known[key] for key in keys])

    def _known(self, keys: Collection[bytes]) -> dict[bytes, protocols.Vectors]:
        """Return the vectors that are remembered; what they took counts as replayed."""
        known: dict[bytes, protocols.Vectors] = {}
        for key, value in recall_vectors(self.path, list(keys)).items():
            known[key] = np.frombuffer(value, "<f4", offset=_SECONDS.size)
            self.replayed.seconds += _SECONDS.unpack_from(value)[0]
        return known

    def _keys(self, kind: protocols.TextKind, texts: Sequence[str]) -> list[bytes]:
        prefix = f"{digest(dict(self.identity()))}\n{kind}\n".encode()
        return [hashlib.sha256(prefix + text.encode()).digest() for text in texts]

    def _embed_unknown(self, kind: protocols.TextKind, unknown: Mapping[bytes, str]) -> dict[bytes, protocols.Vectors]:
        """Embed and save in portions. Longest first, as the model's own batching does: little padding is wasted."""
        from tqdm.auto import tqdm

        embed = self.inner.embed_documents if kind == "document" else self.inner.embed_queries
        todo = sorted(unknown.items(), key=lambda item: len(item[1]), reverse=True)
        made: dict[bytes, protocols.Vectors] = {}
        with tqdm(total=len(todo), desc="embedding", unit="text", disable=self.progress is not True or not todo) as bar:
            ends, n_chars = np.cumsum([0, *(len(text) for _, text in todo)]), _STEP_CHARS
            while (done := len(made)) < len(todo):
                end = int(np.searchsorted(ends, ends[done] + n_chars, "right")) - 1
                portion = dict(todo[done : min(max(end, done + 1), done + _MOST_TEXTS)])
                started = time.perf_counter()
                texts = list(portion.values())
                attributes = {"gen_ai.operation.name": "embeddings", "rag_lab.texts": len(portion)}
                with span(f"embed {kind}", attributes) as call:
                    vectors = np.asarray(embed(texts), dtype=np.float32)
                    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
                        raise ModelError(  # what must never be remembered
                            f"The embedding model returned an array of shape {vectors.shape} for {len(texts)} texts "
                            "where one finite vector for each is needed; choose another embedding model."
                        )
                    if call.is_recording:
                        tokens = sum(self.text_tokens(texts, kind)) or None
                        call.set(gen_ai__request__model=spec_of(self.inner) or None, gen_ai__usage__input_tokens=tokens)
                seconds = time.perf_counter() - started
                fresh = dict(zip(portion, vectors, strict=True))
                share_s = _SECONDS.pack(seconds / len(portion))
                values = {key: share_s + vector.astype("<f4").tobytes() for key, vector in fresh.items()}
                store_vectors(self.path, values)
                self.embedded.chars += sum(map(len, texts))
                self.embedded.seconds += seconds
                made |= fresh
                bar.update(len(portion))
                if callable(self.progress):
                    self.progress(len(made), len(todo))
                if seconds > 3 * _TELL_EVERY_S:  # so that on any machine the bar moves every other second
                    n_chars = max(_STEP_CHARS, n_chars // 2)
                elif seconds < _TELL_EVERY_S:
                    n_chars *= 2
        return made


@dataclass(frozen=True)
class RememberedScorer(_Remembering):
    """A `PairScorer` that asks `inner` only for pairs it has not seen; what those took is added to `replayed`."""

    inner: protocols.PairScorer
    memory: Memory
    replayed: Replayed = field(default_factory=Replayed, compare=False)

    def pair_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Count as the inner scorer does; 0 where it counts nothing."""
        return self.inner.pair_tokens(pairs) if hasattr(self.inner, "pair_tokens") else [0] * len(pairs)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score for each pair, in order."""
        keys = self._keys(pairs)
        asked = dict(zip(keys, pairs, strict=True))

        def score(some: list[str]) -> dict[str, dict[str, float]]:
            started = time.perf_counter()
            pairs = [asked[key] for key in some]
            with span("score pairs", {"rag_lab.pairs": len(some)}) as call:
                scores = self.inner.score(pairs)
                if call.is_recording:
                    tokens = sum(self.pair_tokens(pairs)) or None
                    call.set(gen_ai__request__model=spec_of(self.inner) or None, gen_ai__usage__input_tokens=tokens)
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
