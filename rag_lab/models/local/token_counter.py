"""Tokens of a model of transformers, counted by the library of tokenizers alone, and what its configuration names.

transformers builds a tokenizer from a model's files in its own way, which changes with its versions, and takes seconds
to import, with torch. What it has built is kept in the home folder, once for weights and version: later processes read
that, and count the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rag_lab.models.local.local_model import keep_converted
from rag_lab.models.requirements import library
from rag_lab.models.weights import Source

Count = Callable[[str], int]
_LETTERS = 16  # of a digest
_TEXT_PARTS = ("text_config", "decoder", "generator", "text_encoder")  # where other configurations keep what is asked


def token_counter(source: Source, built: Callable[[], Any]) -> Count:
    """Return what counts the tokens of a text as the tokenizer of transformers does, without marks around it.

    Args:
        source: of the weights.
        built: returns that tokenizer; called where nothing is kept of it yet, or it is of a kind that cannot be kept.
    """
    versions = [library("transformers"), library("tokenizers")]
    known_as = hashlib.sha256("\0".join([source.digest(), *versions]).encode()).hexdigest()[:_LETTERS]
    kept = keep_converted(f"{known_as}-tokenizer.json", lambda partial: _keep(built(), partial))
    return _read(kept) or _counting(built())


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


def _keep(tokenizer: Any, target: Path) -> None:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    target.write_text(backend.to_str() if backend is not None else "", encoding="utf-8")


def _read(path: Path) -> Count | None:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception:  # empty, or damaged: the library raises nothing more special
        return None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _counting(tokenizer: Any) -> Count:
    return lambda text: len(tokenizer(text, add_special_tokens=False)["input_ids"])
