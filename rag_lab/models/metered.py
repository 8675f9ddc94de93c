"""A chat model whose calls are spans, and in a sweep are entered in its ledger, if no limit forbids them.

The sweep sets the environment of a variant's kernel; stages and models know nothing of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rag_lab._kit.tracing import Span, is_traced, span
from rag_lab.errors import RagLabError
from rag_lab.memory.ledger import Caller, Ledger, Made, environment_ledger
from rag_lab.models.prices import price
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Concurrent
from rag_lab.models.thinking import with_least_thinking
from rag_lab.models.token_estimate import request_tokens

_WAIT_S = 0.2


def metered(model: ChatModel, spec: str, purpose: str) -> ChatModel:
    """Return `model`; its calls are booked under `purpose` where the environment names a ledger, and may be spans."""
    ledger, payer = environment_ledger()
    if ledger:
        return MeteredChat(model, spec, ledger, payer, purpose)
    return SpannedChat(model, spec) if is_traced() else model


def booked(model: ChatModel, purpose: str) -> ChatModel:
    """Return `model` with its calls booked under another purpose, where they are booked."""
    if not isinstance(model, MeteredChat):
        return model
    return MeteredChat(model.inner, model.spec, model.ledger, model.payer, purpose)


class SpannedChat:
    """A chat model of which each batch of calls is a span."""

    def __init__(self, inner: ChatModel, spec: str) -> None:
        self.inner = inner
        self.spec = spec
        self.constrains_json = inner.constrains_json
        self.context_tokens = inner.context_tokens
        if isinstance(inner, Concurrent):
            self.concurrency = inner.concurrency

    @property
    def least_thinking_tokens(self) -> int:
        """Tokens of thinking that the inner model cannot do without."""
        return getattr(self.inner, "least_thinking_tokens", 0)

    def identity(self) -> Mapping[str, Any]:
        """Return the inner model's identity: to be watched changes no reply."""
        return self.inner.identity()

    def count_tokens(self, text: str) -> int:
        """Count as the inner model does."""
        return self.inner.count_tokens(text)

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order."""
        with span(f"chat {self.spec}") as said:
            replies = self.inner.generate(requests)
            _say_call(said, self.spec, requests, replies)
        return replies


class MeteredChat(SpannedChat):
    """A chat model whose calls `payer` pays from `ledger` for `purpose`, a stage or a metric.

    A forbidden call is a transient error: none remembers it.
    """

    def __init__(self, inner: ChatModel, spec: str, ledger: Ledger, payer: str, purpose: str = "") -> None:
        super().__init__(inner, spec)
        self.ledger = ledger
        self.payer = payer
        self.purpose = purpose

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order.

        Calls are entered at the most they can cost, so few may fit at first and more once the replies turn out
        cheaper; what fits by then is asked then.
        """
        caller = Caller(self.payer, self.purpose, self.spec)
        replies: list[ChatReply] = []
        while len(replies) < len(requests):
            rest = requests[len(replies) :]
            permit = self.ledger.ask(caller, [most_usd(self.inner, request) for request in rest])
            if permit.numbers:
                replies += self._call(rest[: len(permit.numbers)], permit.numbers)
            elif permit.wait:
                time.sleep(_WAIT_S)
            else:
                replies += [ChatReply(error=permit.reason, transient=True) for _ in rest]
        return replies

    def _call(self, requests: Sequence[ChatRequest], numbers: Sequence[int]) -> list[ChatReply]:
        with self._entered(numbers):
            replies = super().generate(requests)
        made = {n: reply for n, reply in zip(numbers, replies, strict=True) if reply.asked}
        self.ledger.strike([number for number in numbers if number not in made])
        self.ledger.correct(list(made), [Made(r.tokens_in, r.tokens_out, r.cost_usd, r.seconds) for r in made.values()])
        return replies

    @contextmanager
    def _entered(self, numbers: Sequence[int]) -> Iterator[None]:
        try:
            yield
        except RagLabError:  # the model cannot be used at all: nothing was asked
            self.ledger.strike(numbers)
            raise
        except BaseException:
            self.ledger.close(numbers)
            raise


def _say_call(said: Span, spec: str, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> None:
    said.set(
        gen_ai__operation__name="chat",
        gen_ai__provider__name=spec.partition(":")[0],
        gen_ai__request__model=spec,
        gen_ai__usage__input_tokens=sum(reply.tokens_in for reply in replies),
        gen_ai__usage__output_tokens=sum(reply.tokens_out for reply in replies),
        rag_lab__cost_usd=sum(reply.cost_usd for reply in replies),
        rag_lab__calls=len(replies),
    )
    said.set_text("gen_ai.prompt", "\n\n".join(one.content for request in requests for one in request.messages))
    said.set_text("gen_ai.completion", "\n\n".join(reply.text for reply in replies))


def most_usd(model: Any, request: ChatRequest) -> float:
    """Return the most that one call of `model` can cost by the price table; 0 for a model that costs nothing."""
    found = price(model.provider, model.name) if getattr(model, "priced", False) else None
    if found is None:
        return 0.0
    return found.cost_usd(request_tokens(request), with_least_thinking(model, request).most_tokens_out)
