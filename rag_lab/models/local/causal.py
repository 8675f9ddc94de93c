"""Causal language models of the transformers library: loaded once for each set of weights, shared by all who ask.

transformers builds a tokenizer from a model's files in its own way, which changes with its versions, and takes seconds
to import, with torch. What it has built is kept in the home folder, once for weights and version: later processes read
that, and count the same. Query likelihood, the scorer of these models, is how likely one finds the question, given the
passage (UPR: Sachan, Lewis, Joshi, Aghajanyan, Yih, Pineau, Zettlemoyer, *Improving Passage Retrieval with Zero-Shot
Question Generation*, EMNLP 2022, section 2.2: the mean log-probability of the question's tokens).
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models import requirements, weights
from rag_lab.models.local import gguf
from rag_lab.models.local.local_model import LocalModel, MachineMeter, keep_converted, without_progress_bars

_LOG = logging.getLogger(__name__)
Count = Callable[[str], int]
_LETTERS = 16  # of a digest
_TEXTS_COUNTED = 65_536  # remembered: many questions find the same passages
_TEXT_PARTS = ("text_config", "decoder", "generator", "text_encoder")  # where other configurations keep what is asked
_LOADING = threading.Lock()
_CONTEXT_UNNAMED = 4096  # for models without positions, as Mamba
_LARGEST_CONTEXT = 100_000_000
_QUANTIZED_MARK = "bnb-4bit"  # in hub names of weights that are stored in 4 bits


def transformers_copy(source: Path) -> Path:
    """Return the folder that `from_pretrained` reads, made from a GGUF file on first use (float32)."""

    def convert(target: Path) -> None:
        from unittest.mock import patch

        import gguf as library
        from transformers import AutoModelForCausalLM, AutoTokenizer

        _LOG.info("Converting %s for transformers, once; this takes about a quarter of a minute", source.name)
        # transformers asks for the same each time, a tensor or a file anew
        once = {"GGUFReader": gguf.gguf_reader, "get_tensor_name_map": library.get_tensor_name_map}
        with patch.multiple(library, **{name: lru_cache(made) for name, made in once.items()}):
            model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name)
            tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
        model.hf_quantizer = None  # the weights are plain floats now; without the mark they can be saved
        model.is_quantized = False
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)

    short = weights.file_digest(source).rpartition(":")[2][:16]
    return keep_converted(f"{short}-transformers", convert)


def token_counter(source: weights.Source, built: Callable[[], Any]) -> Count:
    """Return what counts a text's tokens as transformers does, without marks; `built` makes its tokenizer."""
    from tokenizers import Tokenizer

    def keep(target: Path) -> None:
        backend = getattr(built(), "backend_tokenizer", None)
        target.write_text(backend.to_str() if backend is not None else "", encoding="utf-8")

    versions = [requirements.library("transformers"), requirements.library("tokenizers")]
    known_as = hashlib.sha256("\0".join([source.digest(), *versions]).encode()).hexdigest()[:_LETTERS]
    kept = keep_converted(f"{known_as}-tokenizer.json", keep)
    try:
        tokenizer = Tokenizer.from_str(kept.read_text(encoding="utf-8"))
    except Exception:  # empty, or damaged: the library raises nothing more special
        slow = built()
        return lambda text: len(slow(text, add_special_tokens=False)["input_ids"])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def named_context(config: Path) -> int | None:
    """Return the context size that a model's config.json names itself; None where its class has to be asked."""
    found = weights.read_json(config, {})
    tokens = None if any(name in found for name in _TEXT_PARTS) else found.get("max_position_embeddings")
    return tokens if type(tokens) is int else None


@dataclass(frozen=True, slots=True)
class CausalLM:
    """A model in evaluation mode with its tokenizer. `lock` must be held while it computes."""

    model: Any
    tokenizer: Any
    lock: threading.Lock = field(default_factory=threading.Lock)
    meter: MachineMeter = field(default_factory=MachineMeter)


@dataclass(frozen=True, slots=True)
class CausalSettings:
    """Which weights, and how they are held. `''` for dtype or device: float32 on a CPU, bfloat16 on a GPU."""

    name: str
    four_bit: bool = False
    dtype: str = ""
    device: str = ""

    def identity(self) -> dict[str, Any]:
        """Return name, digest of the weights and how they are held, with the library's version."""
        source = weights.find(self.name)
        return {
            "name": source.name,
            "weights": source.digest(),
            "four_bit": self.four_bit or _QUANTIZED_MARK in source.location,
            "dtype": self.dtype,
            "device": self.device,
            "library": requirements.library("transformers"),
        }

    def load(self) -> CausalLM:
        """Return the model, shared with every other user of the same settings."""
        with _LOADING:
            return _load(self)

    def tokenizer(self) -> Any:
        """Return the tokenizer alone, without the weights."""
        with _LOADING:
            return _load_tokenizer(self.name)

    def context_tokens(self) -> int:
        """Return the context size by the weights' configuration alone, of multimodal models by its text part."""
        source = weights.find(self.name)
        config = source.file("config.json") if source.on_hub else Path(readable(source), "config.json")
        tokens: Any = named_context(config) if config else None
        if tokens is None:
            from transformers import AutoConfig

            with weights.loading(source):
                text_part = AutoConfig.from_pretrained(readable(source), **source.pin()).get_text_config()
            tokens = getattr(text_part, "max_position_embeddings", _CONTEXT_UNNAMED)
        if not isinstance(tokens, int) or not 1 <= tokens <= _LARGEST_CONTEXT:
            raise ModelError(
                f"The model's config.json names a context of {tokens!r} tokens (max_position_embeddings), where 1 to "
                f"{_LARGEST_CONTEXT:,} can be: correct the file, or download the model again."
            )
        return tokens


class OnCausalLM(LocalModel):
    """A model that computes with the causal model of its settings, which others may share."""

    def __init__(self, settings: CausalSettings) -> None:
        self.settings = settings
        self.name = settings.name
        self.runs_on = "cuda" if settings.four_bit else settings.device
        self.weights_held = f"transformers {settings}"

    @cached_property
    def loaded(self) -> CausalLM:
        """The model with its tokenizer."""
        return self.settings.load()

    @cached_property
    def _count(self) -> Count:
        counter = token_counter(weights.find(self.name), self.settings.tokenizer)
        return lru_cache(_TEXTS_COUNTED)(counter)


def readable(source: weights.Source) -> str:
    """Return what `from_pretrained` takes for `source`: a GGUF file is converted once."""
    if source.location.endswith(".gguf"):
        return str(transformers_copy(Path(source.location)))
    return source.location


@lru_cache(maxsize=4)
def _load_tokenizer(name: str) -> Any:
    requirements.require_package("transformers", "transformers")
    from transformers import AutoTokenizer

    source = weights.find(name)
    with weights.loading(source):
        tokenizer = AutoTokenizer.from_pretrained(readable(source), **source.pin())
    if not tokenizer(" a")["input_ids"]:  # without its files the library makes one that knows no token
        raise ModelError(f"The weights {source.name!r} have no tokenizer beside them; get the whole folder.")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


@lru_cache(maxsize=4)
def _load(settings: CausalSettings) -> CausalLM:
    requirements.require_package("transformers", "transformers")
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    source, device = weights.find(settings.name), device_or_default(settings.device)
    four_bit = settings.four_bit or _QUANTIZED_MARK in source.location
    if four_bit:
        if problem := requirements.cuda_problem(f"{settings.name} in 4 bits"):
            raise ModelError(problem)
        requirements.require_package("bitsandbytes", "rag_lab[quantized]")
    tokenizer = _load_tokenizer(settings.name)
    default = "float32" if device == "cpu" else "bfloat16"
    options: dict[str, Any] = {"dtype": getattr(torch, settings.dtype or default)}
    if four_bit:
        options["device_map"] = {"": device}
        if _QUANTIZED_MARK not in source.location:
            options["quantization_config"] = BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=options["dtype"]
            )
    meter = MachineMeter()
    with weights.loading(source):
        options |= {**source.pin(), "output_loading_info": True}
        path = readable(source)
        with without_progress_bars(), meter.loading():
            model, found = AutoModelForCausalLM.from_pretrained(path, **options)
            if not four_bit:
                model = model.to(device)
    if missing := found["missing_keys"]:  # which the library fills with random numbers
        raise ModelError(
            f"The weights {source.name!r} lack {len(missing)} of the model's parts ({sorted(missing)[0]}, ...); copy "
            "or download the whole model."
        )
    tokens, known = max(tokenizer.get_vocab().values()) + 1, model.get_input_embeddings().num_embeddings
    if tokens > known:
        raise ModelError(
            f"The tokenizer beside the weights {source.name!r} has {tokens} tokens and the model knows {known}: it is "
            "another model's; copy or download the whole model."
        )
    return CausalLM(model.eval(), tokenizer, meter=meter)


def device_or_default(device: str) -> str:
    """Return `device`, or `cuda` where there is one, else `cpu`."""
    import torch

    return device or ("cuda" if torch.cuda.is_available() else "cpu")


_BEFORE = "Passage: "
_AFTER = "\nPlease write a question based on this passage.\nQuestion:"
_DECIMALS = 6  # the last digits of float32 depend on what shares a batch


class QueryLikelihoodScorer(OnCausalLM):
    """Scores in nats a token, at most 0. Weights: `smollm2`, a folder, a GGUF file or a hub name."""

    def __init__(self, name: str, *, batch_size: int = 16, passage_tokens: int = 160, **held: Any) -> None:
        super().__init__(CausalSettings(name, **held))
        self.batch_size = batch_size
        self.passage_tokens = self.most_tokens = passage_tokens  # that are read; questions are read whole

    def identity(self) -> Mapping[str, Any]:
        """Return provider, weights, how they are held, the prompt and the passage limit."""
        return {
            "provider": "transformers",
            **self.settings.identity(),
            "prompt": f"{_BEFORE}{{passage}}{_AFTER}",
            "passage_tokens": self.passage_tokens,
        }

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the mean log-likelihood a token of each question given its passage, in order, to six decimals."""
        if not pairs:
            return []
        tokenizer = self.settings.tokenizer()

        def tokens(text: str) -> list[int]:
            ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
            return ids

        with_marks, bare = tokenizer("x")["input_ids"][:1], tokens("x")[:1]
        leading = with_marks if with_marks != bare else []  # what some models (Gemma, Llama) expect before everything
        before, after = leading + tokens(_BEFORE), tokens(_AFTER)
        passages = {text: tokens(text)[: self.passage_tokens] for text in {passage for _, passage in pairs}}
        questions = {text: tokens(f" {text.strip()}") for text in {question for question, _ in pairs}}
        rows = []  # tokens, and the position of the question's first one
        for question, passage in pairs:
            prompt = before + passages[passage] + after
            rows.append((prompt + questions[question], len(prompt)))
        order = sorted(range(len(rows)), key=lambda index: (len(rows[index][0]), rows[index][1], rows[index][0]))
        scores: dict[int, float] = {}
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            scores.update(zip(batch, self._likelihoods([rows[index] for index in batch]), strict=True))
        return [round(scores[index], _DECIMALS) for index in range(len(pairs))]

    def pair_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return how many tokens each pair's passage has; the tokenizer counts alone, that of a GGUF file at once."""
        source = weights.find(self.name)
        quick = gguf.gguf_tokenizer(Path(source.location)) if source.location.endswith(".gguf") else None
        if quick is not None:
            count: Count = lambda text: len(quick.encode(text, add_special_tokens=False).ids)  # noqa: E731
        else:
            count = self._count
        lengths = {text: count(text) for text in {passage for _, passage in pairs}}
        return [lengths[passage] for _, passage in pairs]

    def _likelihoods(self, batch: Sequence[tuple[list[int], int]]) -> list[float]:
        """Return the mean log-likelihoods of one batch, padded on the right, where causal attention never looks.

        Logits are computed only from the first question of the batch on: the vocabulary is the dear part.
        """
        import torch

        first = min(asked for _, asked in batch) - 1  # the position that predicts a question's first token
        longest = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([row + [row[-1]] * (longest - len(row)) for row, _ in batch])
        ids = ids.to(self.loaded.model.device)
        with self.loaded.lock, torch.inference_mode():
            kept = torch.arange(first, longest - 1, device=ids.device)
            logits = self.loaded.model(input_ids=ids, use_cache=False, logits_to_keep=kept).logits.float()
            chosen = logits.gather(2, ids[:, first + 1 :, None]).squeeze(2)
            likelihoods = (chosen - logits.logsumexp(2)).double().cpu()
        return [
            float(values[asked - 1 - first : len(row) - 1 - first].mean())
            for (row, asked), values in zip(batch, likelihoods, strict=True)
        ]
