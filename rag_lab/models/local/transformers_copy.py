"""Keeps the packaged GGUF in transformers' own format: the GGUF loads in half a minute, the copy in a second."""

from __future__ import annotations

import logging
from pathlib import Path

from rag_lab.models.local.converted import keep_converted
from rag_lab.models.weight_digests import file_digest

_LOG = logging.getLogger(__name__)


def transformers_copy(source: Path) -> Path:
    """Return the folder that `from_pretrained` reads, made from a GGUF file on first use (float32).

    Raises:
        ModelError: if the folder cannot be written.
    """
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
