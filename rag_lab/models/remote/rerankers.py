"""Cross-encoders behind a server: a question with its passages is one call. TEI, vLLM, Cohere, Jina, and their like.

vLLM serves the route that Cohere made as /rerank, /v1/rerank (as Jina has it) and /v2/rerank (as Cohere has it),
llama.cpp as /v1/rerank.
"""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

from pydantic_core.core_schema import list_schema

from rag_lab.errors import ModelError
from rag_lab.models import requirements, truncation
from rag_lab.models.remote import http, replies
from rag_lab.models.remote.retries import RemoteModel, RemoteOptions, in_parallel

_LOG = logging.getLogger(__name__)
_AROUND = 8  # tokens that a model may put around a question and a passage
_DECIMALS = 6  # the last digits of float32 depend on what shares a batch
_VERSION = re.compile(r"/v\d+/?$")
_RESULT = replies.object_of({"index": replies.COUNT, "relevance_score": replies.NUMBER})
_RANK = replies.object_of({"index": replies.COUNT, "score": replies.NUMBER})
_MODEL = replies.object_of({"id": replies.TEXT}, {"max_model_len": replies.COUNT})
_INFO = replies.object_of({"model_id": replies.TEXT}, {"max_input_length": replies.COUNT})
_check_tokens = replies.check_of(list_schema(list_schema(replies.ANY)), "list of tokens")
_check_results = replies.check_of(replies.object_of({"results": list_schema(_RESULT)}), "list of relevance scores")
_check_ranks = replies.check_of(list_schema(_RANK), "list of scores")
_check_info = replies.check_of(_INFO, "description of a TEI server")
_check_count = replies.check_of(replies.object_of({"count": replies.COUNT}), "count of tokens")
_check_models = replies.check_of(replies.object_of({"data": list_schema(_MODEL)}), "list of models")


class RemoteScorer(RemoteModel):
    """Scores pairs by a server's model, through Cohere's route, which stands below `base_url` (with `/v1` or `/v2`)."""

    kind = "reranking"
    address: str  # where `base_url` is left out
    key_variables: tuple[str, ...] = ()  # environment variables of which one may hold the key
    needs_key = False
    limit_name = ""  # by which this server's body names `most_tokens`
    more: ClassVar[Mapping[str, Any]] = {}  # what that body has besides

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.base_url = self.options.base_url or self.address

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and address, and where pairs are cut if an option says it; never the key."""
        limit = self.options.max_tokens
        return {**super().identity(), "base_url": self.base_url, **({} if limit is None else {"max_tokens": limit})}

    def score(self, pairs: Sequence[truncation.Pair]) -> list[float]:
        """Return one score for each (question, passage), in order, rounded to six decimals."""
        if not pairs:
            return []
        self._check()
        of_question: dict[str, list[str]] = {}
        for question, passage in dict.fromkeys(pairs):
            of_question.setdefault(question, []).append(passage)
        calls = [
            (question, passages[start : start + self.options.batch_size])
            for question, passages in of_question.items()
            for start in range(0, len(passages), self.options.batch_size)
        ]

        def scores(call: tuple[str, list[str]]) -> list[float]:
            found = self._ask(*call)
            if sorted(found) != list(range(len(call[1]))):
                raise http.BadReply(f"the server answered with {len(found)} scores for {len(call[1])} passages")
            return [round(found[place], _DECIMALS) for place in range(len(call[1]))]

        scored = self._call_all(scores, calls, lambda call: sum(map(truncation.estimated_tokens, (call[0], *call[1]))))
        known = {
            (question, passage): score
            for (question, passages), scores in zip(calls, scored, strict=True)
            for passage, score in zip(passages, scores, strict=True)
        }
        return [known[pair] for pair in pairs]

    def problem(self, within_s: float) -> str:
        """Return why the server cannot be asked now, in one sentence, or ''; no model is loaded for it."""
        return self._endpoint(self.base_url, within_s).problem("/rerank")

    @classmethod
    def server_problem(cls) -> str:
        """Return why no such server can be asked here, and what to write for another; '' where one answers."""
        if not cls("MODEL").problem(2.0):
            return ""
        return f"Nothing answers at {cls.address}; a server elsewhere is {cls.provider}:MODEL?base_url=ADDRESS."

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of a pair that are read, as `pair_tokens` counts; None where that is not known."""
        return self.options.max_tokens

    def pair_tokens(self, pairs: Sequence[truncation.Pair]) -> list[int]:
        """Return how many tokens of each pair count towards `most_tokens`: the server counts those that may not fit."""
        limit = self.most_tokens or 0
        estimates = [
            truncation.estimated_tokens(question) + truncation.estimated_tokens(passage) + _AROUND
            for question, passage in pairs
        ]
        long = [pair for pair, estimate in zip(pairs, estimates, strict=True) if estimate > limit > 0]
        counted: Mapping[str, int] = {}
        try:
            counted = self._count(list(dict.fromkeys(text for pair in long for text in pair)))
        except Exception as error:
            _LOG.warning("%r does not count tokens (%s); they are estimated", self, http.classify(error).sentence)
        return [
            counted[question] + counted[passage] if question in counted and passage in counted else estimate
            for (question, passage), estimate in zip(pairs, estimates, strict=True)
        ]

    def _count(self, texts: Sequence[str]) -> Mapping[str, int]:
        """Return the tokens of those texts that the server counts; whatever it raises, they are estimated."""
        return {}

    def _ask(self, question: str, passages: list[str]) -> Mapping[int, float]:
        """Return the score of each passage by its place, asking once."""
        body = {"model": self.name, "query": question, "documents": passages, "top_n": len(passages), **self.more}
        if self.limit_name and self.most_tokens is not None:
            body[self.limit_name] = self.most_tokens
        found = self._client.ask("/rerank", _check_results, body)
        return {each["index"]: float(each["relevance_score"]) for each in found["results"]}

    def _check(self) -> None:
        """Look, once, whether the server can score at all; raise a `ModelError` where it cannot."""
        _ = self._client  # a missing key is one error, before any thread starts

    def _endpoint(self, address: str, timeout_s: float) -> http.Endpoint:
        keys = (value for name in self.key_variables if (value := os.environ.get(name)))
        key = requirements.require_key(self.key_variables) if self.needs_key else next(keys, "")
        return http.Endpoint(address, timeout_s, http.bearer(key))

    @cached_property
    def _client(self) -> http.Endpoint:
        return self._endpoint(self.base_url, self.options.timeout_s)


class TeiScorer(RemoteScorer):
    """The cross-encoder of a TEI server, whose `/rerank` is another; it cuts what is longer than the model reads."""

    provider = "tei"
    address = "http://127.0.0.1:8080"
    key_variables = ("TEI_API_KEY",)

    def score(self, pairs: Sequence[truncation.Pair]) -> list[float]:
        """Return one score for each (question, passage), in order; see `RemoteScorer`."""
        scores = super().score(pairs)
        if pairs and self._info is None:
            del self._info  # the server answers by now, and is asked again how much it reads
        return scores

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of a pair that the model reads; None where the server does not say."""
        return self._info.get("max_input_length") if self._info else None

    def _ask(self, question: str, passages: list[str]) -> Mapping[int, float]:
        body = {"query": question, "texts": passages, "truncate": True, "raw_scores": False}
        return {each["index"]: float(each["score"]) for each in self._client.ask("/rerank", _check_ranks, body)}

    def _check(self) -> None:
        super()._check()
        if self._info is not None and (found := self._info["model_id"]) != self.name:
            raise ModelError(
                f"The server at {self.base_url} has the model {found}, and {self.name} was asked for; write "
                f"tei:{found}, or give the base_url of another."
            )

    def _count(self, texts: Sequence[str]) -> Mapping[str, int]:
        found: list[list[Any]] = []
        for start in range(0, len(texts), self.options.batch_size):
            batch = {"inputs": list(texts[start : start + self.options.batch_size])}
            found += self._client.ask("/tokenize", _check_tokens, batch)
        return dict(zip(texts, map(len, found), strict=True))

    @cached_property
    def _info(self) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = self._client.ask("/info", _check_info)
            return found
        except Exception:  # calls will say so, and try again
            return None


class VllmScorer(RemoteScorer):
    """A cross-encoder of a vLLM server, or of a like one; it cuts pairs at `max_tokens`, or what it says."""

    provider = "vllm"
    address = "http://127.0.0.1:8000"
    key_variables = ("VLLM_API_KEY",)
    limit_name = "truncate_prompt_tokens"

    @cached_property
    def most_tokens(self) -> int | None:
        """The most tokens of a pair that are read: `max_tokens`, else what the server says."""
        if self.options.max_tokens:
            return self.options.max_tokens
        try:
            listed: list[dict[str, Any]] = self._root.ask("/v1/models", _check_models)["data"]
        except Exception:  # a server that does not say
            return None
        return next((model.get("max_model_len") for model in listed if model["id"] == self.name), None)

    def _count(self, texts: Sequence[str]) -> Mapping[str, int]:
        bodies = [{"model": self.name, "prompt": text} for text in texts]
        counted = in_parallel(partial(self._root.ask, "/tokenize", _check_count), bodies, self.concurrency)
        return {text: int(found["count"]) for text, found in zip(texts, counted, strict=True)}

    @cached_property
    def _root(self) -> http.Endpoint:
        return self._endpoint(_VERSION.sub("", self.base_url), self.options.timeout_s)


class CohereScorer(RemoteScorer):
    """A reranker of Cohere, or of a gateway with its route. It reads `max_tokens` of a passage, and no more."""

    provider = "cohere"
    address = "https://api.cohere.com/v2"
    key_variables = ("CO_API_KEY", "COHERE_API_KEY")
    needs_key = True
    defaults = RemoteOptions(max_tokens=4096)
    limit_name = "max_tokens_per_doc"

    def pair_tokens(self, pairs: Sequence[truncation.Pair]) -> list[int]:
        """Return an upper estimate of the tokens of each passage: the question does not count."""
        return [truncation.estimated_tokens(passage) for _, passage in pairs]


class JinaScorer(RemoteScorer):
    """A reranker of Jina, or of a gateway with its route."""

    provider = "jina"
    address = "https://api.jina.ai/v1"
    key_variables = ("JINA_API_KEY",)
    needs_key = True
    more: ClassVar[Mapping[str, Any]] = {"return_documents": False}
