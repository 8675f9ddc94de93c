"""The tokenizer of a GGUF file alone, in this process: texts are counted without loading the model.

Only for vocabularies of which the tests hold the counts against llama.cpp's own: byte-level BPE, by the ways of cutting
words that its family names. Any other is left to llama.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_lab.models.local.gguf.gguf_header import gguf_metadata

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BYTE_LEVEL_BPE = "gpt2"
_MARKS = (2, 3, 4)  # types of tokens that are found in a text as they stand: unknown, control, the user's own
_DIGITS_AT_ONCE = {"llama-bpe": "{1,3}", "qwen2": ""}
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
FAMILIES = ("smollm", "gpt-2", *_DIGITS_AT_ONCE)


@cache
def gguf_tokenizer(path: Path) -> Tokenizer | None:
    """Return the tokenizer of a GGUF file; None where it is of another family than `FAMILIES`, or not whole."""
    found = gguf_metadata(path) or {}
    family = found.get("tokenizer.ggml.pre")
    if found.get("tokenizer.ggml.model") != _BYTE_LEVEL_BPE or family not in FAMILIES:
        return None
    try:
        return _built(found, family)
    except Exception:  # of what a file may hold, and the library of tokenizers raises nothing more special
        return None


def _built(found: Mapping[str, Any], family: str) -> Tokenizer:
    from tokenizers import AddedToken, Tokenizer, models

    tokens, kinds = found["tokenizer.ggml.tokens"], found["tokenizer.ggml.token_type"]
    bpe = models.BPE(
        vocab={token: number for number, token in enumerate(tokens)},
        merges=[tuple(merge.split(" ", 1)) for merge in found["tokenizer.ggml.merges"]],
        ignore_merges=family == "llama-bpe",
    )
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = _words(family)
    marks = [token for token, kind in zip(tokens, kinds, strict=True) if kind in _MARKS]
    tokenizer.add_special_tokens([AddedToken(mark, normalized=False, special=True) for mark in marks])
    return tokenizer


def _words(family: str) -> Any:
    """Return how a text is cut before its pieces are merged."""
    from tokenizers import Regex, pre_tokenizers

    if family in _DIGITS_AT_ONCE:
        pattern = Regex(_WORDS % _DIGITS_AT_ONCE[family])
        split = pre_tokenizers.Split(pattern, "isolated")
        return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if family == "gpt-2":
        return words
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words])
