"""Causal language models of the transformers library: loaded once for each set of weights, shared by all who ask."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models.local.local_model import MachineMeter, keep_converted, without_progress_bars
from rag_lab.models.local.token_counter import named_context
from rag_lab.models.requirements import cuda_problem, library, require_package
from rag_lab.models.weights import Source, file_digest, find, loading_error

_LOG = logging.getLogger(__name__)


def transformers_copy(source: Path) -> Path:
    """Return the folder that `from_pretrained` reads, made from a GGUF file on first use (float32)."""
    short = file_digest(source).rpartition(":")[2][:16]
    return keep_converted(f"{short}-transformers", lambda partial: _convert(source, partial))


def _convert(source: Path, target: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _LOG.info("Converting %s for transformers, once; this takes about half a minute", source.name)
    model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name)
    model.hf_quantizer = None  # the weights are plain floats now; without the mark they can be saved
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(target)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(target)


_LOADING = threading.Lock()
_CONTEXT_UNNAMED = 4096  # for models without positions, as Mamba
_LARGEST_CONTEXT = 100_000_000
_QUANTIZED_MARK = "bnb-4bit"  # in hub names of weights that are stored in 4 bits


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
        source = find(self.name)
        return {
            "name": source.name,
            "weights": source.digest(),
            "four_bit": self.four_bit or _QUANTIZED_MARK in source.location,
            "dtype": self.dtype,
            "device": self.device,
            "library": library("transformers"),
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
        """Return the context size, reading the weights' configuration alone."""
        source = find(self.name)
        named = named_context(path) if (path := _configuration(source)) else None
        if named is not None:
            return _possible(named)
        from transformers import AutoConfig

        try:
            return context_of(AutoConfig.from_pretrained(readable(source), **source.pin()))
        except ModelError:
            raise
        except Exception as error:
            raise loading_error(source, error) from error


class OnCausalLM:
    """A model that computes with the causal model of its settings, which others may share; see `HoldsWeights`."""

    def __init__(self, settings: CausalSettings) -> None:
        self.settings = settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.name!r})"

    @property
    def weights_held(self) -> str:
        """The settings."""
        return f"transformers {self.settings}"

    @property
    def runs_on(self) -> str:
        """The device that was asked for."""
        return "cuda" if self.settings.four_bit else self.settings.device

    def load(self) -> None:
        """Load the weights now."""
        self._lm  # noqa: B018 - it is loaded when it is first read

    @cached_property
    def _lm(self) -> CausalLM:
        return self.settings.load()


def context_of(config: Any) -> int:
    """Return a configuration's context size; multimodal ones keep it in their text part, a few models name none."""
    return _possible(getattr(config.get_text_config(), "max_position_embeddings", _CONTEXT_UNNAMED))


def _possible(tokens: Any) -> int:
    if not isinstance(tokens, int) or not 1 <= tokens <= _LARGEST_CONTEXT:
        raise ModelError(
            f"The model's config.json names a context of {tokens!r} tokens (max_position_embeddings), where 1 to "
            f"{_LARGEST_CONTEXT:,} can be: correct the file, or download the model again."
        )
    return tokens


def _configuration(source: Source) -> Path | None:
    """Return the file of the weights' configuration; of those of the hub once they were downloaded."""
    if not source.on_hub:
        return Path(readable(source), "config.json")
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(source.location, "config.json", **source.pin())
    return Path(cached) if isinstance(cached, str) else None


def readable(source: Source) -> str:
    """Return what `from_pretrained` takes for `source`: a GGUF file is converted once."""
    if source.location.endswith(".gguf"):
        return str(transformers_copy(Path(source.location)))
    return source.location


@lru_cache(maxsize=4)
def _load_tokenizer(name: str) -> Any:
    require_package("transformers", "transformers")
    from transformers import AutoTokenizer

    source = find(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(readable(source), **source.pin())
    except ModelError:
        raise
    except Exception as error:
        raise loading_error(source, error) from error
    if not tokenizer(" a")["input_ids"]:  # without its files the library makes one that knows no token
        raise ModelError(
            f"The weights {source.name!r} have no tokenizer beside them; copy or download the whole folder."
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


@lru_cache(maxsize=4)
def _load(settings: CausalSettings) -> CausalLM:
    require_package("transformers", "transformers")
    from transformers import AutoModelForCausalLM

    source = find(settings.name)
    four_bit = settings.four_bit or _QUANTIZED_MARK in source.location
    if four_bit:
        require_four_bit(settings.name)
    tokenizer = _load_tokenizer(settings.name)
    meter = MachineMeter()
    try:
        options = {**_loading_options(settings, four_bit, source), **source.pin()}
        path = readable(source)
        with without_progress_bars(), meter.loading():
            model, found = AutoModelForCausalLM.from_pretrained(path, output_loading_info=True, **options)
            if not four_bit:
                model = model.to(device_or_default(settings.device))
    except ModelError:
        raise
    except Exception as error:
        raise loading_error(source, error) from error
    _check_whole(source, model, tokenizer, found["missing_keys"])
    return CausalLM(model.eval(), tokenizer, meter=meter)


def _check_whole(source: Source, model: Any, tokenizer: Any, missing: Collection[str]) -> None:
    """Refuse weights that lack a part, which the library fills with random numbers, and another model's tokenizer."""
    if missing:
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


def require_four_bit(name: str) -> None:
    """Refuse 4-bit weights where bitsandbytes or a GPU is missing."""
    problem = cuda_problem(f"{name} in 4 bits")
    if problem:
        raise ModelError(problem)
    require_package("bitsandbytes", "rag_lab[quantized]")


def device_or_default(device: str) -> str:
    """Return `device`, or `cuda` where there is one, else `cpu`."""
    import torch

    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def _loading_options(settings: CausalSettings, four_bit: bool, source: Source) -> dict[str, Any]:
    import torch

    device = device_or_default(settings.device)
    default = "float32" if device == "cpu" else "bfloat16"
    options: dict[str, Any] = {"dtype": getattr(torch, settings.dtype or default)}
    if four_bit:
        options["device_map"] = {"": device}
        if _QUANTIZED_MARK not in source.location:
            from transformers import BitsAndBytesConfig

            options["quantization_config"] = BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=options["dtype"]
            )
    return options
