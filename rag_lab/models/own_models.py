"""Models that somebody else wrote, called through `CustomCode`: what they do wrong costs the questions concerned."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from rag_lab._kit.custom_code import CustomCode, CustomCodeError, numbers
from rag_lab._kit.registry import Module
from rag_lab.errors import ConfigError, ModelError
from rag_lab.models.limits.read_limit import Kind
from rag_lab.models.protocols import ChatReply, ChatRequest, Concurrent, Vectors
from rag_lab.models.remote.reply_bounds import bounded, counted
from rag_lab.models.token_estimate import estimated_tokens
from rag_lab.models.unit_vectors import unit_vectors

_TIMEOUT_S = 300.0  # of one call: the first one loads weights
_CONTEXT_TOKENS = 32_768  # where the model does not say
_TOLERANCE = 1e-3  # in what two runs may differ: float32 on a GPU adds in no fixed order


class OwnModelError(ModelError, CustomCodeError):
    """A call of one's own model that gave nothing: it costs the questions concerned, or the index being built."""


class _Own:
    """What models of one's own have in common."""

    def __init__(self, module: Module, what: str, methods: Sequence[str], *, is_compared: bool) -> None:
        self.made, self.what = module.value, what
        self._codes = {
            name: CustomCode(module, what, name, timeout_s=_TIMEOUT_S, is_compared=is_compared) for name in methods
        }
        self._identity = dict(self._codes[methods[0]].identity())
        try:
            json.dumps(self._identity, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"The identity of the {what} is no JSON ({error}); use texts and numbers.") from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.what!r})"

    def identity(self) -> Mapping[str, Any]:
        """Return the digest of its source, with its own identity or its parameters."""
        return self._identity

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that it says it reads of one text or pair; None where it does not say."""
        found = getattr(self.made, "most_tokens", None)
        return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None

    def _tokens(self, method: str, items: list[Any], estimate: Callable[[Any], int], *more: Any) -> list[int]:
        if method not in self._codes or not items:
            return [estimate(item) for item in items]
        try:
            accept = lambda given: [int(n) for n in numbers(given, len(items), f"the {self.what}")]  # noqa: E731
            counts: list[int] = self._codes[method].call(items, *more, accept=accept)
        except CustomCodeError as error:
            raise OwnModelError(str(error)) from error
        return counts

    def _numbers(self, method: str, items: Sequence[Any], accept: Callable[[Any], Vectors]) -> Vectors:
        try:
            close: _Close = self._codes[method].call(list(items), accept=lambda given: _Close(accept(given)))
        except CustomCodeError as error:
            raise OwnModelError(str(error)) from error
        return close.rows


class OwnChat(_Own):
    """A chat model whose `generate` somebody else wrote. It returns a `ChatReply`, or a text, for each request.

    A batch that fails as a whole is asked again request by request. Counts of tokens that are missing are estimated.
    """

    def __init__(self, module: Module, what: str) -> None:
        counts = callable(getattr(module.value, "count_tokens", None))
        super().__init__(module, what, ("generate", *(["count_tokens"] if counts else [])), is_compared=False)
        self.constrains_json = bool(getattr(module.value, "constrains_json", False))
        self.context_tokens = int(getattr(module.value, "context_tokens", _CONTEXT_TOKENS))
        if isinstance(module.value, Concurrent):
            self.concurrency = int(module.value.concurrency)

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order."""
        if not requests:
            return []
        started = time.perf_counter()
        try:
            replies = self._codes["generate"].call(list(requests), accept=lambda given: self._replies(given, requests))
        except CustomCodeError as error:
            if len(requests) == 1:
                return [ChatReply(error=str(error), transient=True, seconds=time.perf_counter() - started)]
            return [reply for request in requests for reply in self.generate([request])]
        share_s = (time.perf_counter() - started) / len(requests)
        return [reply if reply.seconds else replace(reply, seconds=share_s) for reply in replies]

    def count_tokens(self, text: str) -> int:
        """Return what the model counts, else an upper estimate."""
        if "count_tokens" not in self._codes:
            return estimated_tokens(text)
        try:
            code = self._codes["count_tokens"]
            return int(code.call(text, accept=lambda given: numbers([given], 1, f"the {self.what}")[0]))
        except CustomCodeError as error:
            raise OwnModelError(str(error)) from error

    def _replies(self, given: Any, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        if not isinstance(given, list | tuple):
            raise CustomCodeError(f"the {self.what} returned {type(given).__name__} where a list of replies is due")
        if len(given) != len(requests):
            raise CustomCodeError(f"the {self.what} returned {len(given)} replies for {len(requests)} requests")
        return [self._reply(reply, request) for reply, request in zip(given, requests, strict=True)]

    def _reply(self, given: Any, request: ChatRequest) -> ChatReply:
        reply = ChatReply(given) if isinstance(given, str) else given
        if not isinstance(reply, ChatReply):
            raise CustomCodeError(f"the {self.what} returned {type(given).__name__} where a ChatReply or a text is due")
        for each in fields(reply):
            value, due = getattr(reply, each.name), type(each.default)
            if not isinstance(value, due if due is not float else int | float):
                raise CustomCodeError(f"the {self.what} gave a {type(value).__name__} as a reply's {each.name}")
        numbers([reply.tokens_in, reply.tokens_out, reply.seconds, reply.cost_usd], 4, f"the {self.what}")
        return reply if reply.error else counted(request, bounded(request, reply))[0]


class OwnEmbedder(_Own):
    """An embedder that somebody else wrote. Rows are scaled to length one, and must all be of one length."""

    def __init__(self, module: Module, what: str) -> None:
        counts = callable(getattr(module.value, "text_tokens", None))
        names = ("embed_documents", "embed_queries", *(["text_tokens"] if counts else []))
        super().__init__(module, what, names, is_compared=True)
        self._dim = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of passages, in order.

        Raises:
            OwnModelError: if it raised, hung, or returned anything else.
        """
        return self._embed("embed_documents", texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of questions, in order; see `embed_documents`."""
        return self._embed("embed_queries", texts)

    def text_tokens(self, texts: Sequence[str], kind: Kind) -> list[int]:
        """Return what the model counts for each text, else upper estimates."""
        return self._tokens("text_tokens", list(texts), estimated_tokens, kind)

    def _embed(self, method: str, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self._dim), dtype=np.float32)
        rows = self._numbers(method, texts, lambda given: self._rows(given, len(texts)))
        self._dim = rows.shape[1]
        return rows

    def _rows(self, given: Any, n_texts: int) -> Vectors:
        try:
            rows = np.asarray(given, dtype=np.float32)
        except (TypeError, ValueError):
            raise CustomCodeError(
                f"the {self.what} returned {type(given).__name__}, and not vectors of one length"
            ) from None
        if rows.ndim != 2 or len(rows) != n_texts or rows.shape[1] == 0:
            raise CustomCodeError(f"the {self.what} returned an array of shape {rows.shape} for {n_texts} texts")
        if not np.isfinite(rows).all():
            raise CustomCodeError(f"the {self.what} returned a vector with NaN or infinity in it")
        if self._dim not in (0, rows.shape[1]):
            raise CustomCodeError(
                f"the {self.what} returned vectors of {rows.shape[1]} numbers, and of {self._dim} before"
            )
        return unit_vectors(rows)


class OwnScorer(_Own):
    """A cross-encoder, or another scorer of pairs, that somebody else wrote."""

    def __init__(self, module: Module, what: str) -> None:
        counts = callable(getattr(module.value, "pair_tokens", None))
        super().__init__(module, what, ("score", *(["pair_tokens"] if counts else [])), is_compared=True)

    def pair_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return what the model counts for each pair, else upper estimates."""
        return self._tokens("pair_tokens", list(pairs), lambda pair: estimated_tokens(" ".join(pair)))

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score for each (question, passage), in order.

        Raises:
            OwnModelError: if it raised, hung, or returned anything else.
        """
        if not pairs:
            return []
        what = f"the {self.what}"
        rows = self._numbers("score", pairs, lambda given: np.array(numbers(given, len(pairs), what), np.float64))
        return [float(value) for value in rows]


class _Close:
    """What a model computed, equal to what differs from it by no more than the order of additions explains."""

    def __init__(self, rows: Vectors) -> None:
        self.rows = rows

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Close)
            and self.rows.shape == other.rows.shape
            and np.allclose(self.rows, other.rows, rtol=_TOLERANCE, atol=_TOLERANCE)
        )

    __hash__ = None  # type: ignore[assignment]
