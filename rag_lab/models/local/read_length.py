"""How much of a text an embedding model reads: told by the files beside its weights, none of which are loaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models.providers import EMBEDDERS
from rag_lab.models.spec import ModelSpec
from rag_lab.models.weights import find

_LIMIT_FILE, _TOKENIZER_FILE = "sentence_bert_config.json", "tokenizer.json"


@dataclass(frozen=True)
class ReadLength:
    """The most tokens of a text that a model reads, and its own count of them, the marks around the text included."""

    limit: int
    tokenizer: Any

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has; those beyond `limit` are never read."""
        return [len(found.ids) for found in self.tokenizer.encode_batch_fast(list(texts))]


def read_length(model: str) -> ReadLength | None:
    """Return how much the embedding model of this name reads; None where its weights are not here, or do not say."""
    try:
        spec = ModelSpec.parse(model, EMBEDDERS)
        if spec.provider != "sentence_transformers":
            return None
        folder = Path(find(spec.name).location)
        limit = json.loads((folder / _LIMIT_FILE).read_text(encoding="utf-8"))["max_seq_length"]
    except (ModelError, OSError, ValueError, KeyError):
        return None
    if not isinstance(limit, int) or not (folder / _TOKENIZER_FILE).is_file():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER_FILE))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return ReadLength(limit, tokenizer)
