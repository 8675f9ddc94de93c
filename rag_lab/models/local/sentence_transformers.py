"""Models of sentence-transformers: embedders, static tables of vectors, cross-encoders, and how much they read."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, cast
from weakref import WeakValueDictionary

import numpy as np

from rag_lab.errors import ModelError
from rag_lab.models import protocols, requirements, weights
from rag_lab.models.local.local_model import LocalModel, even_batches, without_progress_bars

_AT_ONCE = 1024  # texts whose tokens are held while they are counted
_PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}  # the first that the model has
_TENSORS, _TENSORS_OF_WORDLLAMA = "model.safetensors", "l2_supercat_256.safetensors"
_TABLES = ("embeddings", "embedding.weight")  # of model2vec; of StaticEmbedding and wordllama
_NOT_STATIC = "{} has no table of token vectors; give wordllama, or a model of model2vec (its hub name or folder)."
SHORTEST = 8  # tokens of a window
_OF_A_MEAN = {"Transformer", "Pooling", "Normalize"}
_NO_MEAN = "corpus.context is late, but vectors of {} are no means of its tokens': choose minilm, or another context."
_LOADED, _LOADING = WeakValueDictionary[str, Any](), threading.Lock()
_SMALL = 150_000_000  # weights of a model of which each core may read a batch
_DECIMALS = 6  # the last digits of float32 depend on what shares a batch


@dataclass(frozen=True)
class ReadLength:
    """The most tokens that a model reads of a text, its own count of them, and its `prompts` before texts, by kind."""

    limit: int
    tokenizer: Any
    prompts: Mapping[str, str]
    lower_case: bool = False

    def counts(self, inputs: Sequence[tuple[str, ...]]) -> list[int]:
        """Return how many tokens each input has, a text or a pair; those beyond `limit` are never read."""
        lengths: list[int] = []
        for start in range(0, len(inputs), _AT_ONCE):
            batch: list[Any] = list(inputs[start : start + _AT_ONCE])
            if self.lower_case:
                batch = [tuple(map(str.lower, one)) for one in batch]
            batch = [one if len(one) > 1 else one[0] for one in batch]
            lengths += [len(one.ids) for one in self.tokenizer.encode_batch_fast(batch)]
        return lengths

    def cuts(self, text: str, room: int) -> list[int]:
        """Return where to cut a text into parts of at most `room` tokens, from 0 to its end; between words if so."""
        spans = self.tokenizer.encode(text, add_special_tokens=False).offsets
        starts = [0]
        while len(spans) - starts[-1] > room:
            last = starts[-1] + room
            between = (at for at in range(last, starts[-1] + room // 2, -1) if text[spans[at][0] - 1].isspace())
            starts.append(next(between, last))
        return [0, *(spans[place][0] for place in starts[1:]), len(text)]


def read_length(source: weights.Source, most: int | None = None) -> ReadLength | None:
    """Return how much the model of these weights reads, or `most`; None where they are not here yet, or do not say."""
    from tokenizers import Tokenizer

    folder = next((str(one.get("path", "")) for one in weights.read_json(source.file("modules.json"), [])), "")

    def settings(name: str) -> Any:
        return weights.read_json(source.file(f"{folder}/{name}".lstrip("/")), {})

    saved = settings("sentence_bert_config.json")
    # what the tokenizer and the configuration of the model allow, the smaller of both
    named = settings("tokenizer_config.json").get("model_max_length")
    has = settings("config.json").get("max_position_embeddings")
    allowed = [int(value) for value in (named, has) if isinstance(value, int | float) and value > 0]
    limit = most or saved.get("max_seq_length") or min(allowed, default=None)
    path = source.file(f"{folder}/tokenizer.json".lstrip("/"))
    if not isinstance(limit, int) or path is None:
        return None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception:  # of what a file may hold, and the library of tokenizers raises nothing more special
        return None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    known = weights.read_json(source.file("config_sentence_transformers.json"), {}).get("prompts") or {}
    prompts = {kind: next((known[name] for name in names if name in known), "") for kind, names in _PROMPTS.items()}
    return ReadLength(limit, tokenizer, prompts, bool(saved.get("do_lower_case")))


class SentenceTransformersModel(LocalModel):
    """What its embedders and its cross-encoders have in common; they load as the library's class `loads`."""

    loads: ClassVar[str]
    usual_batch: ClassVar[int]

    def __init__(
        self, name: str, *, device: str = "", batch_size: int | None = None, max_tokens: int | None = None
    ) -> None:
        self.name = name
        self.runs_on = device
        self.batch_size = batch_size or self.usual_batch
        self.max_tokens = max_tokens  # a limit that somebody set in place of the model's own
        self.weights_held = f"{self.loads} {name} {device} {self.batch_size} {max_tokens}"
        self._lock = threading.Lock()
        self._reads: ReadLength | None = None

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
    def loaded(self) -> Any:
        """The library's model."""
        is_scorer = self.loads == "CrossEncoder"
        if problem := wrong_kind(self.name, self.loads):
            raise ModelError(problem)
        model = self.load(self.loads, **({"max_length": self.max_tokens} if is_scorer else {}))
        if is_scorer and model.num_labels != 1:
            raise ModelError(f"{self.name} gives {model.num_labels} scores a pair; choose a cross-encoder with one.")
        return model

    def load(self, kind: str, **options: Any) -> Any:
        """Return the library's model as this class of it: one for all who ask alike in this process."""
        library = requirements.require_package("sentence_transformers", "sentence-transformers")
        source = weights.find(self.name)
        key = repr((kind, source.location, self.runs_on, options))
        with weights.loading(source), without_progress_bars(), _LOADING:
            if (model := _LOADED.get(key)) is None:
                options |= source.pin()
                model = _LOADED[key] = getattr(library, kind)(source.location, device=self.runs_on or None, **options)
        return model

    def _encoded(self, kind: protocols.TextKind, texts: Sequence[str], **options: Any) -> Sequence[Any]:
        """Return what the library's model makes of each text; of a small one each core reads batches."""
        model, size = self.loaded, self.batch_size
        encode = partial(getattr(model, f"encode_{kind}"), batch_size=size, show_progress_bar=False, **options)
        if len(texts) < 2 or model.device.type != "cpu" or sum(one.numel() for one in model.parameters()) >= _SMALL:
            return cast(Sequence[Any], encode(list(texts)))
        import torch

        threads, rows, reads = torch.get_num_threads(), dict[int, Any](), self._read_length()
        lengths = [min(n, reads.limit) for n in reads.counts([(text,) for text in texts])] if reads else None
        batches = even_batches(lengths or [*map(len, texts)], min(size, -(-len(texts) // threads)))
        torch.set_num_threads(1)
        try:
            with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as cores:
                for batch, some in zip(
                    batches, cores.map(lambda one: encode([texts[n] for n in one]), batches), strict=True
                ):
                    rows |= zip(batch, some, strict=True)
        finally:
            torch.set_num_threads(threads)
        return [rows[n] for n in range(len(texts))]

    def windows(self, kind: protocols.TextKind, text: str) -> list[str]:
        """Return the text in parts that the model reads whole, cut between words where that can be."""
        reads = self._read_length()
        if reads is None:
            return [text]
        limit = min(filter(None, (getattr(self.loaded[0], f"{kind}_length", None), reads.limit)))
        room = max(SHORTEST, limit - reads.counts([(reads.prompts.get(kind, ""),)])[0])
        cuts = reads.cuts(text, room)
        return [text[start:end] for start, end in pairwise(cuts)]


class SentenceTransformerEmbedder(protocols.EmbedsByKind, SentenceTransformersModel):
    """Unit vectors in float32, with the model's own prompt for documents or questions."""

    loads = "SentenceTransformer"
    usual_batch = 32

    def text_tokens(self, texts: Sequence[str], kind: protocols.TextKind) -> list[int]:
        """Return how many tokens each text has for the model, with its own prompt; the weights are not loaded."""
        if (reads := self._read_length()) is None:
            return [0] * len(texts)
        return reads.counts([(reads.prompts.get(kind, "") + text,) for text in texts])

    @property
    def late_problem(self) -> str:
        """Why it cannot embed spans within a text, as far as its files that are here say; '' where it can."""
        source = weights.find(self.name)
        modules = {
            str(one.get("type", "")).rpartition(".")[2]: source.file(f"{one.get('path', '')}/config.json".lstrip("/"))
            for one in weights.read_json(source.file("modules.json"), [])
        }
        pooling = weights.read_json(modules.get("Pooling"), {})
        is_mean = pooling.get("pooling_mode", "mean") == "mean" and pooling.get("pooling_mode_mean_tokens", True)
        return "" if is_mean and modules.keys() <= _OF_A_MEAN else _NO_MEAN.format(self.name)

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> protocols.Vectors:
        """Return a unit vector for each span, read within the text (Günther et al. 2024, "Late Chunking").

        A longer text than the model reads is read in windows that overlap by half; each token counts as the window
        reads it in whose middle it stands nearest.
        """
        loaded, reads = self.loaded, self._read_length()
        if reads is None or self.late_problem:
            raise ModelError(self.late_problem or _NO_MEAN.format(self.name))
        prompt = reads.prompts.get("document", "")
        cuts = reads.cuts(text, max(SHORTEST, (reads.limit - reads.counts([(prompt,)])[0]) // 2 - 1))
        windows = list(zip(cuts, cuts[2:], strict=False)) or [(0, len(text))]
        middles = [(start + end) // 2 for start, end in pairwise(cuts)]
        counted = list(pairwise([0, *middles[1:-1], len(text)]))  # the part of each window that counts
        starts, ends = np.array(spans).T
        sums = np.zeros((len(spans), loaded.get_embedding_dimension()), np.float32)
        for first in range(0, len(windows), self.batch_size):
            some = windows[first : first + self.batch_size]
            with self._lock:
                rows = loaded.encode_document(
                    [text[start:end] for start, end in some], output_value="token_embeddings", show_progress_bar=False
                )
            for (start, end), of_window, (low, high) in zip(some, rows, counted[first:], strict=False):
                offsets = np.array(reads.tokenizer.encode(prompt + text[start:end]).offsets)
                places = offsets[:, 0] - len(prompt) + start
                is_text = (offsets[:, 1] > offsets[:, 0]) & (places >= max(low, start)) & (places < high)
                vectors = of_window.float().cpu().numpy()
                for row in np.flatnonzero((starts < high) & (ends > low)):
                    sums[row] += vectors[is_text & (places >= starts[row]) & (places < ends[row])].sum(axis=0)
        return protocols.unit_vectors(sums)

    def _embed(self, kind: protocols.TextKind, texts: Sequence[str]) -> protocols.Vectors:
        with self._lock:
            if not texts:
                return np.zeros((0, self.loaded.get_embedding_dimension() or 0), dtype=np.float32)
            rows = self._encoded(kind, texts, convert_to_numpy=True)
        return protocols.unit_vectors(np.asarray(rows, dtype=np.float32))


class StaticEmbedder(SentenceTransformerEmbedder):
    """A table with a vector for each token, of which a text gets the mean: `wordllama`, or a model of model2vec."""

    usual_batch = 1024

    def __init__(self, name: str, *, batch_size: int | None = None) -> None:
        super().__init__(name, device="cpu", batch_size=batch_size)
        self.weights_held += " static"

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights, and library version."""
        return {**super().identity(), "provider": "static"}

    @property
    def late_problem(self) -> str:
        """The vector of a token is the same in every text."""
        return _NO_MEAN.format(self.name)

    def _read_length(self) -> None:
        """Nothing is beyond what it reads."""

    @cached_property
    def loaded(self) -> Any:
        """The table, as a model of the library."""
        library = requirements.require_package("sentence_transformers", "sentence-transformers")
        source = weights.find(self.name)
        with weights.loading(source), without_progress_bars():
            from safetensors.numpy import load_file
            from sentence_transformers.sentence_transformer.modules import StaticEmbedding
            from tokenizers import Tokenizer

            if source.on_hub:
                from huggingface_hub import snapshot_download

                pinned = source.pin()["revision"]
                snapshot_download(source.location, allow_patterns=["*.json", _TENSORS], revision=pinned)
            tensors, tokenizer = _static_files(source)
            if problem := not_static(self.name):
                raise ModelError(problem)
            found = load_file(str(tensors))
            table = next(found[name] for name in _TABLES if name in found).astype(np.float32)
            # model2vec: which row a token has, and what a token counts
            table = table[found["mapping"]] if "mapping" in found else table
            table = table * found["weights"].astype(np.float32)[:, None] if "weights" in found else table
            cut = Tokenizer.from_file(str(tokenizer))
            cut.no_truncation()
            return library.SentenceTransformer(modules=[StaticEmbedding(cut, table)], device="cpu")


def _static_files(source: weights.Source) -> tuple[Path | None, Path | None]:
    """Return where the table of a static model and its tokenizer are, where they are here."""
    if source.location.endswith(_TENSORS_OF_WORDLLAMA):
        found = Path(source.location)
        return found, found.parents[1] / "tokenizers/l2_supercat_tokenizer_config.json"
    listed = weights.read_json(source.file("modules.json"), [{}])
    folder = str(listed[0].get("path", "")) if listed else ""
    tensors, tokenizer = (source.file(f"{folder}/{name}".lstrip("/")) for name in (_TENSORS, "tokenizer.json"))
    return tensors, tokenizer


def not_static(name: str) -> str:
    """Return that a model is no table of token vectors, where its files that are here say so, else ''."""
    from safetensors import safe_open

    source = weights.find(name)
    tensors, tokenizer = _static_files(source)
    if tensors is None and source.on_hub and source.file("config.json") is None:
        return ""
    names: set[str] = set()
    if tensors and tokenizer:
        with suppress(Exception), safe_open(tensors, "numpy") as file:  # of what a file may hold
            names = {*file.keys()}
    return "" if names & {*_TABLES} else _NOT_STATIC.format(name)


class SparseEncoder(SentenceTransformersModel):
    """Weights of the words of a vocabulary, few of them above 0: SPLADE (Formal, Piwowarski and Clinchant 2021).

    A text that is longer than the model reads is read in windows, and a word counts what it counts in the best.
    """

    loads = "SparseEncoder"
    usual_batch = 32

    def term_weights(self, kind: protocols.TextKind, texts: Sequence[str]) -> Any:
        """Return a sparse matrix, (n, size of the vocabulary)."""
        import scipy.sparse

        windows = [self.windows(kind, text) for text in texts]
        first = np.cumsum([0, *map(len, windows)])
        with self._lock:
            rows = getattr(self.loaded, f"encode_{kind}")(
                [one for some in windows for one in some],
                batch_size=self.batch_size,
                show_progress_bar=False,
                save_to_cpu=True,
            ).coalesce()
        found = scipy.sparse.csr_matrix((rows.values().numpy(), rows.indices().numpy()), rows.shape, np.float32)
        if len(found.indptr) == len(texts) + 1:
            return found
        return scipy.sparse.vstack([found[a:b].max(axis=0) for a, b in pairwise(first)], format="csr")

    def words(self, weights: Any) -> list[tuple[str, float]]:
        """Return the words of a row of `term_weights`, the largest weight first."""
        order = np.argsort(-weights.data, kind="stable")
        names = [self.loaded.tokenizer.decode([word]).strip() for word in weights.indices[order].tolist()]
        return list(zip(names, weights.data[order].tolist(), strict=True))


def wrong_kind(name: str, loads: str) -> str:
    """Return that a model gives other vectors than `loads` makes, where its files that are here say so, else ''."""
    source = weights.find(name)
    modules = [str(one.get("type", "")) for one in weights.read_json(source.file("modules.json"), [{}])]
    made = weights.read_json(source.file("config.json"), {}).get("architectures") or []
    is_sparse = any("Splade" in one or "Sparse" in one for one in modules)
    if loads == "SentenceTransformer" and is_sparse:
        return f"{name} gives sparse vectors; search by it with retrieval.mode splade, as models.sparse."
    is_dense = any(modules) or (made and not any(one.endswith("ForMaskedLM") for one in made))
    if loads == "SparseEncoder" and is_dense and not is_sparse:
        return f"{name} gives no sparse vectors; name a SPLADE model, such as granite-sparse."
    return ""


not_dense = partial(wrong_kind, loads="SentenceTransformer")
not_sparse = partial(wrong_kind, loads="SparseEncoder")


class CrossEncoderScorer(SentenceTransformersModel):
    """Any cross-encoder with one output: `bge-reranker-v2-m3`, a folder, or a hub name. float32 on every device."""

    loads = "CrossEncoder"
    usual_batch = 16

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights, input limit and library version."""
        return {**super().identity(), "max_tokens": self.max_tokens}

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score for each (question, passage), in order, rounded to six decimals.

        Alone and in a batch they agree within the error of float32: the first one computed is remembered and orders
        passages.
        """
        if not pairs:
            return []
        order = sorted(range(len(pairs)), key=lambda index: (sum(map(len, pairs[index])), pairs[index]))
        with self._lock:
            values = self.loaded.predict(
                [pairs[index] for index in order], batch_size=self.batch_size, show_progress_bar=False
            )
        scores = dict(zip(order, values, strict=True))
        return [round(float(scores[index]), _DECIMALS) for index in range(len(pairs))]

    def pair_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return how many tokens each pair has together; beyond `most_tokens` its longer text is cut at the end."""
        reads = self._read_length()
        return [0] * len(pairs) if reads is None else reads.counts(pairs)
