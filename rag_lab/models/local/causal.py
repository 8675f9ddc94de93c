"""Causal language models of the transformers library: loaded once for each set of weights, shared by all who ask.

transformers builds a tokenizer from a model's files in its own way, which changes with its versions, and takes seconds
to import, with torch. What it has built is kept in the home folder, once for weights and version: later processes read
that, and count the same.
"""

import hashlib
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models import requirements, weights
from rag_lab.models.local.local_model import LocalModel, MachineMeter, keep_converted, without_progress_bars

_LOG = logging.getLogger(__name__)
Count = Callable[[str], int]
_LETTERS = 16  # of a digest
_TEXT_PARTS = ("text_config", "decoder", "generator", "text_encoder")  # where other configurations keep what is asked
_LOADING = threading.Lock()
_CONTEXT_UNNAMED = 4096  # for models without positions, as Mamba
_LARGEST_CONTEXT = 100_000_000
_QUANTIZED_MARK = "bnb-4bit"  # in hub names of weights that are stored in 4 bits


def transformers_copy(source: Path) -> Path:
    """Return the folder that `from_pretrained` reads, made from a GGUF file on first use (float32)."""

    def convert(target: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        _LOG.info("Converting %s for transformers, once; this takes about half a minute", source.name)
        model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name)
        model.hf_quantizer = None  # the weights are plain floats now; without the mark they can be saved
        model.is_quantized = False
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(target)
        AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(target)

    short = weights.file_digest(source).rpartition(":")[2][:16]
    return keep_converted(f"{short}-transformers", convert)


def token_counter(source: weights.Source, built: Callable[[], Any]) -> Count:
    """Return what counts the tokens of a text as the tokenizer of transformers does, without marks around it.

    `built` returns that tokenizer, where nothing is kept of it yet, or it is of a kind that cannot be kept.
    """
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
    try:
        found = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or any(name in found for name in _TEXT_PARTS):
        return None
    tokens = found.get("max_position_embeddings")
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
        """Return the context size, reading the weights' configuration alone.

        Multimodal models keep it in their text part, and a few models name none.
        """
        source = weights.find(self.name)
        path: str | None = None  # of the weights' configuration; of those of the hub once they were downloaded
        if not source.on_hub:
            path = str(Path(readable(source), "config.json"))
        else:
            from huggingface_hub import try_to_load_from_cache

            cached = try_to_load_from_cache(source.location, "config.json", **source.pin())
            path = cached if isinstance(cached, str) else None
        tokens: Any = named_context(Path(path)) if path else None
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

    @property
    def weights_held(self) -> str:
        """The settings."""
        return f"transformers {self.settings}"

    def load(self) -> None:
        """Load the weights now."""
        self._lm  # noqa: B018 - it is loaded when it is first read

    @cached_property
    def _lm(self) -> CausalLM:
        return self.settings.load()


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
        raise ModelError(
            f"The weights {source.name!r} have no tokenizer beside them; copy or download the whole folder."
        )
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
        require_four_bit(settings.name)
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


def require_four_bit(name: str) -> None:
    """Refuse 4-bit weights where bitsandbytes or a GPU is missing."""
    problem = requirements.cuda_problem(f"{name} in 4 bits")
    if problem:
        raise ModelError(problem)
    requirements.require_package("bitsandbytes", "rag_lab[quantized]")


def device_or_default(device: str) -> str:
    """Return `device`, or `cuda` where there is one, else `cpu`."""
    import torch

    return device or ("cuda" if torch.cuda.is_available() else "cpu")
