"""Cross-encoders of Text Embeddings Inference (TEI): one server, one model, which it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import BaseModel, FiniteFloat, RootModel, StrictInt, StrictStr

from rag_lab.errors import ModelError
from rag_lab.models.remote.reply_shapes import read_as
from rag_lab.models.remote.rerank.remote_scorer import Pair, RemoteScorer


class _Rank(BaseModel):
    index: StrictInt
    score: FiniteFloat


class _Ranks(RootModel[list[_Rank]]):
    pass


class _Info(BaseModel):
    model_id: StrictStr
    max_input_length: StrictInt | None = None


class _Tokens(RootModel[list[list[Any]]]):
    pass


class TeiScorer(RemoteScorer):
    """The cross-encoder of a TEI server, by `/rerank`; see `RemoteScorer`. Its key, if any, is TEI_API_KEY.

    What is longer than the model reads is cut by the server; see `pair_tokens`.
    """

    provider = "tei"
    address = "http://127.0.0.1:8080"
    key_variables = ("TEI_API_KEY",)

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one score for each (question, passage), in order; see `RemoteScorer`."""
        scores = super().score(pairs)
        if pairs and self._info is None:
            del self._info  # the server answers by now, and is asked again how much it reads
        return scores

    def ask(self, question: str, passages: list[str]) -> Mapping[int, float]:
        """Return the score of each passage by its place."""
        body = {"query": question, "texts": passages, "truncate": True, "raw_scores": False}
        found = self.endpoint.post("/rerank", body, _check_ranks)
        return {each["index"]: float(each["score"]) for each in found}

    def check(self) -> None:
        """Refuse a server of another model."""
        super().check()
        if self._info is not None and self._info.model_id != self.name:
            raise ModelError(
                f"The server at {self.base_url} has the model {self._info.model_id}, and {self.name} was asked for; "
                f"write tei:{self._info.model_id}, or give the base_url of another."
            )

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of a pair that the model reads; None where the server does not say."""
        return self._info.max_input_length if self._info else None

    def counted(self, texts: Sequence[str]) -> Mapping[str, int]:
        """Return the tokens of each text."""
        found: list[list[Any]] = []
        for start in range(0, len(texts), self.batch_size):
            batch = {"inputs": list(texts[start : start + self.batch_size])}
            found += self.endpoint.post("/tokenize", batch, _check_tokens)
        return dict(zip(texts, map(len, found), strict=True))

    @cached_property
    def _info(self) -> _Info | None:
        try:
            return _Info.model_validate(self.endpoint.get("/info", _check_info))
        except Exception:  # calls will say so, and try again
            return None


def _check_ranks(content: bytes) -> None:
    read_as(content, _Ranks, "list of scores")


def _check_info(content: bytes) -> None:
    read_as(content, _Info, "description of a TEI server")


def _check_tokens(content: bytes) -> None:
    read_as(content, _Tokens, "list of tokens")
