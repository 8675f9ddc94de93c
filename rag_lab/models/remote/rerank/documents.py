"""Cross-encoders by the route that Cohere made and others took over: documents in, relevance scores out.

vLLM serves it as /rerank, /v1/rerank (as Jina has it) and /v2/rerank (as Cohere has it), llama.cpp as /v1/rerank.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import BaseModel, FiniteFloat, StrictInt, StrictStr

from rag_lab.models.remote.json_endpoint import Endpoint, bearer
from rag_lab.models.remote.reply_shapes import read_as
from rag_lab.models.remote.requests import in_parallel
from rag_lab.models.remote.rerank.remote_scorer import Pair, RemoteScorer
from rag_lab.models.requirements import require_key
from rag_lab.models.token_estimate import estimated_tokens

_VERSION = re.compile(r"/v\d+/?$")


class _Result(BaseModel):
    index: StrictInt
    relevance_score: FiniteFloat


class _Results(BaseModel):
    results: list[_Result]


class _Counted(BaseModel):
    count: StrictInt


class _Model(BaseModel):
    id: StrictStr
    max_model_len: StrictInt | None = None


class _Models(BaseModel):
    data: list[_Model]


class _DocumentsScorer(RemoteScorer):
    """What they have in common."""

    def ask(self, question: str, passages: list[str]) -> Mapping[int, float]:
        """Return the score of each passage by its place."""
        body = {"model": self.name, "query": question, "documents": passages, **self.more(passages)}
        found = self.endpoint.post("/rerank", body, _check_results)
        return {each["index"]: float(each["relevance_score"]) for each in found["results"]}

    def more(self, passages: list[str]) -> Mapping[str, Any]:
        """Return what this server's body has besides."""
        return {"top_n": len(passages)}


class VllmScorer(_DocumentsScorer):
    """A cross-encoder of a vLLM server, or of another with its route (llama.cpp, Infinity); see `RemoteScorer`.

    Its key, if any, is VLLM_API_KEY. A pair that is longer than `max_tokens`, or than the server says that its model
    reads, is cut there; where neither is known, the server decides.
    """

    provider = "vllm"
    address = "http://127.0.0.1:8000"
    key_variables = ("VLLM_API_KEY",)

    def __init__(self, name: str, *, max_tokens: int | None = None, **options: Any) -> None:
        super().__init__(name, **options)
        self.max_tokens = max_tokens

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and address, and where pairs are cut if that is given; never the key."""
        return {**super().identity(), **({} if self.max_tokens is None else {"max_tokens": self.max_tokens})}

    def more(self, passages: list[str]) -> Mapping[str, Any]:
        """Return where pairs are cut."""
        cut = {} if self.most_tokens is None else {"truncate_prompt_tokens": self.most_tokens}
        return {"top_n": len(passages), **cut}

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of a pair that are read: `max_tokens`, else what the server says."""
        return self.max_tokens or self._own_tokens

    def counted(self, texts: Sequence[str]) -> Mapping[str, int]:
        """Return the tokens of each text."""

        def count(text: str) -> int:
            return int(self._root.post("/tokenize", {"model": self.name, "prompt": text}, _check_count)["count"])

        return dict(zip(texts, in_parallel(count, texts, self.concurrency), strict=True))

    @cached_property
    def _own_tokens(self) -> int | None:
        try:
            listed = _Models.model_validate(self._root.get("/v1/models", _check_models))
        except Exception:  # a server that does not say
            return None
        return next((model.max_model_len for model in listed.data if model.id == self.name), None)

    @cached_property
    def _root(self) -> Endpoint:
        return Endpoint(_VERSION.sub("", self.base_url), self.timeout_s, bearer(self.key()))


class CohereScorer(_DocumentsScorer):
    """A reranker of Cohere, or of a gateway with its route; see `RemoteScorer`. Its key is CO_API_KEY.

    The service reads `max_tokens` of a passage, and leaves out the rest.
    """

    provider = "cohere"
    address = "https://api.cohere.com/v2"
    key_variables = ("CO_API_KEY", "COHERE_API_KEY")

    def __init__(self, name: str, *, max_tokens: int = 4096, **options: Any) -> None:
        super().__init__(name, **options)
        self.max_tokens = max_tokens

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, address, and how much of a passage is read; never the key."""
        return {**super().identity(), "max_tokens": self.max_tokens}

    def more(self, passages: list[str]) -> Mapping[str, Any]:
        """Return how much of a passage is read."""
        return {"top_n": len(passages), "max_tokens_per_doc": self.max_tokens}

    def key(self) -> str:
        """Return the key; raise a `ModelError` where none is set."""
        return require_key(self.key_variables)

    @property
    def most_tokens(self) -> int:
        """The most tokens of a passage that are read."""
        return self.max_tokens

    def pair_tokens(self, pairs: Sequence[Pair]) -> list[int]:
        """Return an upper estimate of the tokens of each passage: the question does not count."""
        return [estimated_tokens(passage) for _, passage in pairs]


class JinaScorer(_DocumentsScorer):
    """A reranker of Jina, or of a gateway with its route; see `RemoteScorer`. Its key is JINA_API_KEY."""

    provider = "jina"
    address = "https://api.jina.ai/v1"
    key_variables = ("JINA_API_KEY",)

    def key(self) -> str:
        """Return the key; raise a `ModelError` where none is set."""
        return require_key(self.key_variables)

    def more(self, passages: list[str]) -> Mapping[str, Any]:
        """Return that the passages need not come back."""
        return {"top_n": len(passages), "return_documents": False}


def _check_results(content: bytes) -> None:
    read_as(content, _Results, "list of relevance scores")


def _check_count(content: bytes) -> None:
    read_as(content, _Counted, "count of tokens")


def _check_models(content: bytes) -> None:
    read_as(content, _Models, "list of models")
