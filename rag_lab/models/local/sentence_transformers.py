"""Models of sentence-transformers: embedders (`minilm`, `bge-m3`), cross-encoders, and how much of a text they read."""

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rag_lab.errors import ModelError
from rag_lab.models import protocols, requirements, truncation, weights
from rag_lab.models.local.local_model import LocalModel, without_progress_bars

_AT_ONCE = 1024  # texts whose tokens are held while they are counted
_PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}  # the first that the model has
_DECIMALS = 6  # the last digits of float32 depend on what shares a batch


@dataclass(frozen=True)
class ReadLength:
    """The most tokens of a text that a model reads, and its own count of them, the marks around the text included.

    `prompts` are the words that it puts before what it embeds, by kind.
    """

    limit: int
    tokenizer: Any
    prompts: Mapping[str, str]
    lower_case: bool = False

    def of_texts(self, texts: Sequence[str], kind: str) -> list[int]:
        """Return how many tokens each text has; those beyond `limit` are never read."""
        before = self.prompts.get(kind, "")
        read = [before + text for text in texts]
        return self._counts([text.lower() for text in read] if self.lower_case else read)

    def of_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return how many tokens each pair has together; those beyond `limit` are never read."""
        return self._counts([(one.lower(), other.lower()) for one, other in pairs] if self.lower_case else pairs)

    def _counts(self, inputs: Sequence[Any]) -> list[int]:
        lengths: list[int] = []
        for start in range(0, len(inputs), _AT_ONCE):
            batch = list(inputs[start : start + _AT_ONCE])
            lengths += [len(one.ids) for one in self.tokenizer.encode_batch_fast(batch)]
        return lengths


def read_length(source: weights.Source, most: int | None = None) -> ReadLength | None:
    """Return how much the model of these weights reads; None where they are not here yet, or do not say.

    `most` is a limit in place of the model's.
    """
    from tokenizers import Tokenizer

    folder = next((str(one.get("path", "")) for one in _json(source, "modules.json", [])), "")

    def settings(name: str) -> Any:
        return _json(source, f"{folder}/{name}".lstrip("/"), {})

    saved = settings("sentence_bert_config.json")
    # what the tokenizer and the configuration of the model allow, the smaller of both
    named = settings("tokenizer_config.json").get("model_max_length")
    has = settings("config.json").get("max_position_embeddings")
    allowed = [int(value) for value in (named, has) if isinstance(value, int | float) and value > 0]
    limit = most or saved.get("max_seq_length") or min(allowed, default=None)
    path = _file(source, f"{folder}/tokenizer.json".lstrip("/"))
    if not isinstance(limit, int) or path is None:
        return None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception:  # of what a file may hold, and the library of tokenizers raises nothing more special
        return None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    known = _json(source, "config_sentence_transformers.json", {}).get("prompts") or {}
    prompts = {kind: next((known[name] for name in names if name in known), "") for kind, names in _PROMPTS.items()}
    return ReadLength(limit, tokenizer, prompts, bool(saved.get("do_lower_case")))


def _json(source: weights.Source, name: str, missing: Any) -> Any:
    path = _file(source, name)
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path else missing
    except (OSError, ValueError):
        return missing
    return found if isinstance(found, type(missing)) else missing


def _file(source: weights.Source, name: str) -> Path | None:
    """Return a file of the weights where it is here: of those of the hub, once they were downloaded."""
    if not source.on_hub:
        path = Path(source.location, name)
        return path if path.is_file() else None
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(source.location, name)
    return Path(cached) if isinstance(cached, str) else None


class SentenceTransformersModel(LocalModel):
    """What its embedders and its cross-encoders have in common; they load as the library's class `loads`."""

    loads: ClassVar[str]

    def __init__(self, name: str, device: str, batch_size: int, max_tokens: int | None = None) -> None:
        self.name = name
        self.runs_on = device
        self.batch_size = batch_size
        self.max_tokens = max_tokens  # a limit that somebody set in place of the model's own
        self._lock = threading.Lock()
        self._reads: ReadLength | None = None

    @property
    def weights_held(self) -> str:
        """The weights, what they load as, and all that they are loaded with."""
        return f"{self.loads} {self.name} {self.runs_on} {self.batch_size} {self.max_tokens}"

    def load(self) -> None:
        """Load the weights now."""
        self._model  # noqa: B018 - it is loaded when it is first read

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights, and library version."""
        source = weights.find(self.name)
        return {
            "provider": "sentence_transformers",
            "name": source.name,
            "weights": source.digest(),
            "library": requirements.library("sentence-transformers"),
        }

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that it reads, the marks around included; None before its weights are here."""
        reads = self._read_length()
        return None if reads is None else reads.limit

    def _read_length(self) -> ReadLength | None:
        """Return what its files say; asked again until they are here."""
        if self._reads is None:
            with suppress(ModelError):  # which is told where the model is used
                self._reads = read_length(weights.find(self.name), self.max_tokens)
        return self._reads

    @cached_property
    def _model(self) -> Any:
        return self._load()

    def _load(self, **options: Any) -> Any:
        library_class = getattr(
            requirements.require_package("sentence_transformers", "sentence-transformers"), self.loads
        )
        source = weights.find(self.name)
        with weights.loading(source), without_progress_bars():
            return library_class(source.location, device=self.runs_on or None, **source.pin(), **options)


class SentenceTransformerEmbedder(SentenceTransformersModel):
    """Unit vectors in float32. `encode` sorts by length, so batches hold texts that need little padding."""

    loads = "SentenceTransformer"

    def __init__(self, name: str, *, device: str = "", batch_size: int = 32) -> None:
        super().__init__(name, device, batch_size)

    def embed_documents(self, texts: Sequence[str]) -> protocols.Vectors:
        """Return (n_texts, dim) unit vectors of passages, in order, with the model's own prompt for documents."""
        return self._encode("encode_document", texts)

    def embed_queries(self, texts: Sequence[str]) -> protocols.Vectors:
        """Return (n_texts, dim) unit vectors of questions, with the model's own prompt; see `embed_documents`."""
        return self._encode("encode_query", texts)

    def text_tokens(self, texts: Sequence[str], kind: truncation.TextKind) -> list[int]:
        """Return how many tokens each text has for the model, with its own prompt; the weights are not loaded."""
        reads = self._read_length()
        return [0] * len(texts) if reads is None else reads.of_texts(texts, kind)

    def _encode(self, method: str, texts: Sequence[str]) -> protocols.Vectors:
        with self._lock:
            if not texts:
                return np.zeros((0, self._model.get_embedding_dimension() or 0), dtype=np.float32)
            rows = getattr(self._model, method)(
                list(texts), batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True
            )
        return protocols.unit_vectors(np.asarray(rows, dtype=np.float32))


class CrossEncoderScorer(SentenceTransformersModel):
    """Any cross-encoder with one output: `bge-reranker-v2-m3`, a folder, or a hub name. float32 on every device."""

    loads = "CrossEncoder"

    def __init__(self, name: str, *, device: str = "", batch_size: int = 16, max_tokens: int | None = None) -> None:
        super().__init__(name, device, batch_size, max_tokens)

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights, input limit and library version."""
        return {**super().identity(), "max_tokens": self.max_tokens}

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score for each (question, passage), in order, rounded to six decimals.

        A pair's score alone and in a batch, on one processor and another, agree within the error of float32 and not
        to the last decimal: what is remembered, and what passages are ordered by, is the first one computed.
        """
        if not pairs:
            return []
        order = sorted(range(len(pairs)), key=lambda index: (sum(map(len, pairs[index])), pairs[index]))
        with self._lock:
            values = self._model.predict(
                [pairs[index] for index in order], batch_size=self.batch_size, show_progress_bar=False
            )
        scores = dict(zip(order, values, strict=True))
        return [round(float(scores[index]), _DECIMALS) for index in range(len(pairs))]

    def pair_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return how many tokens each pair has together; beyond `most_tokens` its longer text is cut at the end."""
        reads = self._read_length()
        return [0] * len(pairs) if reads is None else reads.of_pairs(pairs)

    @cached_property
    def _model(self) -> Any:
        model = self._load(max_length=self.max_tokens)
        if model.num_labels != 1:
            raise ModelError(f"{self.name} gives {model.num_labels} scores a pair; choose a cross-encoder with one.")
        return model
