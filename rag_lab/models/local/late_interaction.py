"""Late interaction: a passage by the vectors of its tokens, and MaxSim (Khattab and Zaharia 2020).

A model that was trained for one vector a text works untrained, by what its pooling would have averaged. The library
would put a projection with random weights before it (`MultiVectorEncoder` of such a folder), so it is loaded as what it
is. What a text is longer than the model reads is read in windows.
"""

import hashlib
import struct
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rag_lab._kit.digest import digest
from rag_lab._kit.home import home_at_work
from rag_lab.errors import ModelError
from rag_lab.memory import results
from rag_lab.models import protocols, requirements, truncation, weights
from rag_lab.models.local.local_model import without_progress_bars
from rag_lab.models.local.sentence_transformers import SentenceTransformerEmbedder, SentenceTransformersModel

_HEAD = struct.Struct("<d4sI")  # seconds that the vectors took, their mark, and how many numbers a row has
_DECIMALS = 6
_NO_TOKENS = "{} has no vectors of tokens (it is made of {}); choose a transformer, such as minilm."
_TRAINED = ("ColBERT", "MultiVectorEncoder")


class MaxSimScorer(SentenceTransformersModel):
    """Scores a passage by the mean over the question's tokens of the best cosine with a token of the passage.

    Vectors of passages are remembered as int8. `pool` tokens that are alike become one vector (Ward's clusters).
    """

    loads = "MultiVectorEncoder"
    usual_batch = 32

    def __init__(self, name: str, *, device: str = "", batch_size: int | None = None, pool: int = 2) -> None:
        super().__init__(name, device=device, batch_size=batch_size)
        self.pool = pool
        embedder = SentenceTransformerEmbedder(name, device=device, batch_size=self.batch_size)
        self.weights_held = embedder.weights_held  # whose process scores, too
        self.replayed_s = 0.0  # that remembered vectors took as first computed

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights, library version, and how many tokens become one vector."""
        return {**super().identity(), "vectors": "int8", "pool": self.pool}

    @cached_property
    def loaded(self) -> Any:
        """The library's model: for several vectors a text where it was trained for that."""
        requirements.require_package("sentence_transformers", "sentence-transformers")
        source = weights.find(self.name)
        with weights.loading(source), without_progress_bars():
            from sentence_transformers.util.file_io import load_file_path

            def settings(name: str) -> Any:
                found = load_file_path(source.location, name, **source.pin())
                return weights.read_json(Path(found) if found else None, {})

            is_trained = settings("config_sentence_transformers.json").get("model_type") in _TRAINED
            is_trained = is_trained or "HF_ColBERT" in (settings("config.json").get("architectures") or ())
        model = self.load(self.loads if is_trained else SentenceTransformerEmbedder.loads)
        if not hasattr(model[0], "auto_model"):
            raise ModelError(_NO_TOKENS.format(self.name, type(model[0]).__name__))
        return model

    def score(self, pairs: Sequence[truncation.Pair]) -> list[float]:
        """Return one score for each (question, passage), in order, 1 at most, rounded to six decimals."""
        questions, passages = ({pair[place]: None for pair in pairs} for place in (0, 1))
        with self._lock:
            asked = dict(zip(questions, self._encode("query", [*questions]), strict=True)) if pairs else {}
            known = self._passages([*passages])
        return [
            round(float((asked[question] @ known[passage].T).max(axis=1).mean()), _DECIMALS)
            for question, passage in pairs
        ]

    def token_vectors(self, kind: protocols.TextKind, texts: Sequence[str]) -> list[protocols.Vectors]:
        """Return the (n_vectors, dim) unit vectors of each text; those of documents are remembered."""
        with self._lock:
            if kind == "query":
                return self._encode(kind, texts)
            known = self._passages([*dict.fromkeys(texts)])
        return [known[text] for text in texts]

    def _passages(self, texts: Sequence[str]) -> dict[str, protocols.Vectors]:
        """Return the (n_vectors, dim) unit vectors of each passage; those that are not remembered are computed."""
        prefix = f"{digest(dict(self.identity()))}\ntokens\n".encode()
        keys = {hashlib.sha256(prefix + text.encode()).digest(): text for text in texts}
        path = home_at_work() / "vectors.sqlite"
        values = results.recall_vectors(path, [*keys]) if keys else {}
        self.replayed_s += sum(_HEAD.unpack_from(value)[0] for value in values.values())
        if missing := [key for key in keys if key not in values]:
            started = time.perf_counter()
            made = self._encode("document", [keys[key] for key in missing])
            seconds = (time.perf_counter() - started) / len(missing)
            new = {}
            for key, rows in zip(missing, made, strict=True):
                whole = protocols.as_int8(rows)[0]  # whose length comes back as 1 when it is read
                new[key] = _HEAD.pack(seconds, results.INT8, rows.shape[1]) + whole.tobytes()
            results.store_vectors(path, new)
            values |= new
        found = {}
        for key, value in values.items():
            whole = np.frombuffer(value, np.int8, offset=_HEAD.size).reshape(-1, _HEAD.unpack_from(value)[2])
            found[keys[key]] = protocols.unit_vectors(whole.astype(np.float32))
        return found

    def _encode(self, kind: protocols.TextKind, texts: Sequence[str]) -> list[protocols.Vectors]:
        """Return the (n_vectors, dim) unit vectors of each text; those of its windows one below the other."""
        from sentence_transformers.multi_vector_encoder.modules import HierarchicalTokenPooling
        from torch.nn.functional import normalize

        windows = [self.windows(kind, text) for text in texts]
        rows = self._encoded(kind, [one for some in windows for one in some], output_value="token_embeddings")
        found = iter(rows)
        pooling = HierarchicalTokenPooling(self.pool if kind == "document" else 1)
        encoded = []
        for some in windows:
            parts = [pooling.pool_one(normalize(next(found).float(), dim=1)).cpu().numpy() for _ in some]
            encoded.append(protocols.unit_vectors(np.concatenate(parts)))
        return encoded


def without_tokens(name: str) -> str:
    """Return that a model has no vectors of tokens, where its files that are here say so, else ''; none is loaded."""
    found = weights.read_json(weights.find(name).file("modules.json"), [{}])
    what = str(found[0].get("type", "")).rpartition(".")[2] if found else ""
    return _NO_TOKENS.format(name, what) if what and what != "Transformer" else ""
