"""What cross-encoders behind a server have in common: a question with its passages is one call."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.memory.paces import Rates
from rag_lab.models.remote.failures import BadReply, classify
from rag_lab.models.remote.json_endpoint import Endpoint, bearer
from rag_lab.models.remote.patience import Patience
from rag_lab.models.remote.requests import CallFailed, RetryPolicy, in_parallel
from rag_lab.models.token_estimate import estimated_tokens

_LOG = logging.getLogger(__name__)
_AROUND = 8  # tokens that a model may put around a question and a passage
_DECIMALS = 6  # the last digits of float32 depend on what shares a batch

Pair = tuple[str, str]


class RemoteScorer(ABC):
    """Scores pairs by a server's model.

    Args:
        name: of the model, as the server has it.
        base_url: of the server, with `/v1` or `/v2` where its route stands below that.
        batch_size: passages in one call.
        concurrency: calls at a time.
        max_attempts: of one call.
        timeout_s: of one attempt.
        requests_per_minute: that the server takes of all processes together, where that is known.
        tokens_per_minute: that it takes, likewise.
    """

    provider: str
    address: str  # where `base_url` is left out
    key_variables: tuple[str, ...] = ()  # environment variables of which one may hold the key

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "",
        batch_size: int = 32,
        concurrency: int = 4,
        max_attempts: int = 5,
        timeout_s: float = 120.0,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        self.name = name
        self.base_url = base_url or self.address
        self.batch_size = batch_size
        self.concurrency = concurrency
        self.retry = RetryPolicy(max_attempts, rates=Rates(requests_per_minute, tokens_per_minute))
        self.timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and address; never the key."""
        return {"provider": self.provider, "name": self.name, "base_url": self.base_url}

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one score for each (question, passage), in order, rounded to six decimals.

        Raises:
            ModelError: if the key is missing, the server has another model, or a call fails after every attempt.
        """
        if not pairs:
            return []
        self.check()
        of_question: dict[str, list[str]] = {}
        for question, passage in dict.fromkeys(pairs):
            of_question.setdefault(question, []).append(passage)
        calls = [
            (question, passages[start : start + self.batch_size])
            for question, passages in of_question.items()
            for start in range(0, len(passages), self.batch_size)
        ]
        try:
            scored = in_parallel(lambda call: self._asked(*call), calls, self.concurrency)
        except CallFailed as error:
            raise ModelError(f"{self!r}: {error}; try again later.") from None
        known = {
            (question, passage): score
            for (question, passages), scores in zip(calls, scored, strict=True)
            for passage, score in zip(passages, scores, strict=True)
        }
        return [known[pair] for pair in pairs]

    def problem(self, within_s: float) -> str:
        """Return why the server cannot be asked now, in one sentence, or ''; no model is loaded for it."""
        return Endpoint(self.base_url, within_s, bearer(self.key())).problem("/rerank")

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of a pair that the model reads, as `pair_tokens` counts; None where that is not known."""
        return None

    def pair_tokens(self, pairs: Sequence[Pair]) -> list[int]:
        """Return how many tokens of each pair count towards `most_tokens`.

        An upper estimate tells which pairs fit in any case; only the others are counted, by the server's tokenizer
        where it has one. Question and passage are counted with what stands around each alone.
        """
        limit = self.most_tokens or 0
        estimates = [estimated_tokens(question) + estimated_tokens(passage) + _AROUND for question, passage in pairs]
        long = [pair for pair, estimate in zip(pairs, estimates, strict=True) if estimate > limit > 0]
        counted = self._counted(list(dict.fromkeys(text for pair in long for text in pair)))
        return [
            counted[question] + counted[passage] if question in counted and passage in counted else estimate
            for (question, passage), estimate in zip(pairs, estimates, strict=True)
        ]

    def counted(self, texts: Sequence[str]) -> Mapping[str, int]:
        """Return the tokens of those texts that the server counts; whatever it raises, they are estimated."""
        return {}

    @abstractmethod
    def ask(self, question: str, passages: list[str]) -> Mapping[int, float]:
        """Return the score of each passage by its place, asking once."""

    def check(self) -> None:
        """Look, once, whether the server can score at all; raise a `ModelError` where it cannot."""
        _ = self.endpoint, self._patience  # a missing key is one error, before any thread starts

    def key(self) -> str:
        """Return the key, '' where there is none."""
        return next((value for name in self.key_variables if (value := os.environ.get(name))), "")

    @cached_property
    def endpoint(self) -> Endpoint:
        """The server."""
        return Endpoint(self.base_url, self.timeout_s, bearer(self.key()))

    @cached_property
    def _patience(self) -> Patience:
        return Patience({**self.identity(), "kind": "reranking"})

    def _counted(self, texts: Sequence[str]) -> Mapping[str, int]:
        try:
            return self.counted(texts)
        except Exception as error:
            _LOG.warning("%r does not count tokens (%s); they are estimated", self, classify(error).sentence)
            return {}

    def _asked(self, question: str, passages: list[str]) -> list[float]:
        tokens = sum(map(estimated_tokens, (question, *passages)))
        return self.retry.call(repr(self), lambda: self._scores(question, passages), self._patience, tokens)

    def _scores(self, question: str, passages: list[str]) -> list[float]:
        found = self.ask(question, passages)
        if sorted(found) != list(range(len(passages))):
            raise BadReply(f"the server answered with {len(found)} scores for {len(passages)} passages")
        return [round(found[place], _DECIMALS) for place in range(len(passages))]
