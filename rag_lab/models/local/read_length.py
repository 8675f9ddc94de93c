"""How much a model of sentence-transformers reads: told by the files beside its weights, none of which are loaded.

The rules are the library's: the limit that is saved with the model, else what its tokenizer names, and never more than
the model has positions for. Longer texts are cut at their end, of pairs the longer of the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab.models.weights import Source

_AT_ONCE = 1024  # texts whose tokens are held while they are counted
_PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}  # the first that the model has


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
        return list(self._counts([self._as_read(before + text) for text in texts]))

    def of_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return how many tokens each pair has together; those beyond `limit` are never read."""
        return list(self._counts([(self._as_read(one), self._as_read(other)) for one, other in pairs]))

    def _as_read(self, text: str) -> str:
        return text.lower() if self.lower_case else text

    def _counts(self, inputs: Sequence[Any]) -> Iterator[int]:
        for start in range(0, len(inputs), _AT_ONCE):
            found = self.tokenizer.encode_batch_fast(list(inputs[start : start + _AT_ONCE]))
            yield from (len(one.ids) for one in found)


def read_length(source: Source, most: int | None = None) -> ReadLength | None:
    """Return how much the model of these weights reads; None where they are not here yet, or do not say.

    Args:
        source: of the weights.
        most: a limit in place of the model's own.
    """
    folder = next((str(one.get("path", "")) for one in _json(source, "modules.json", [])), "")
    saved = _json(source, f"{folder}/sentence_bert_config.json".lstrip("/"), {})
    limit = most or saved.get("max_seq_length") or _positions(source, folder)
    tokenizer = _tokenizer(source, folder)
    if not isinstance(limit, int) or tokenizer is None:
        return None
    known = _json(source, "config_sentence_transformers.json", {}).get("prompts") or {}
    prompts = {kind: next((known[name] for name in names if name in known), "") for kind, names in _PROMPTS.items()}
    return ReadLength(limit, tokenizer, prompts, bool(saved.get("do_lower_case")))


def _positions(source: Source, folder: str) -> int | None:
    """Return what the tokenizer and the configuration of the model allow, the smaller of both."""
    named = _json(source, f"{folder}/tokenizer_config.json".lstrip("/"), {}).get("model_max_length")
    has = _json(source, f"{folder}/config.json".lstrip("/"), {}).get("max_position_embeddings")
    given = [int(value) for value in (named, has) if isinstance(value, int | float) and value > 0]
    return min(given, default=None)


def _tokenizer(source: Source, folder: str) -> Any:
    """Return the tokenizer alone, which cuts and pads nothing; None where it is not here."""
    from tokenizers import Tokenizer

    path = _file(source, f"{folder}/tokenizer.json".lstrip("/"))
    try:
        tokenizer = Tokenizer.from_file(str(path)) if path else None
    except Exception:  # of what a file may hold, and the library of tokenizers raises nothing more special
        return None
    if tokenizer is not None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
    return tokenizer


def _json(source: Source, name: str, missing: Any) -> Any:
    path = _file(source, name)
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path else missing
    except (OSError, ValueError):
        return missing
    return found if isinstance(found, type(missing)) else missing


def _file(source: Source, name: str) -> Path | None:
    """Return a file of the weights where it is here: of those of the hub, once they were downloaded."""
    if not source.on_hub:
        path = Path(source.location, name)
        return path if path.is_file() else None
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(source.location, name)
    return Path(cached) if isinstance(cached, str) else None
