"""The contract of a chat model: see `rag_lab.models.protocols.ChatModel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab.models.own import given_model
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.models.providers import CHAT_MODELS
from rag_lab.testing.contracts.module import ModuleContract


def ask(text: str) -> ChatRequest:
    """Return a request for a short reply."""
    return ChatRequest((Message("system", "the press"), Message("user", text)), max_tokens=8)


REQUESTS = [ask(text) for text in ("grease", "how often is the filter changed", "what pressure", "who", "oven")]


class ChatModelContract(ModuleContract):
    """A chat model, one of LangChain's too. `too_long` is a question longer than it can read, where there is one."""

    too_long = ""

    def model(self) -> ChatModel:
        """Return it as the pipeline asks it."""
        model: ChatModel = given_model(CHAT_MODELS, self.make())
        return model

    def identity(self) -> Mapping[str, Any]:
        """Return under what its replies are remembered."""
        return self.model().identity()

    def _ask(self, *requests: ChatRequest) -> list[ChatReply]:
        return self.model().generate(requests)

    def test_one_reply_a_request_in_order(self) -> None:
        together = [reply.text for reply in self._ask(*REQUESTS)]
        assert together == [self._ask(request)[0].text for request in REQUESTS]
        assert [reply.text for reply in self._ask(*REQUESTS[::-1])][::-1] == together
        assert len(set(together)) > 1

    def test_a_reply_counts_tokens_and_seconds(self) -> None:
        for reply in self._ask(*REQUESTS[:2]):
            assert reply.error == ""
            assert reply.tokens_in > 0
            assert reply.tokens_out > 0
            assert reply.seconds >= 0

    def test_a_request_that_cannot_be_answered_fails_alone(self) -> None:
        if not self.too_long:
            return
        replies = self._ask(REQUESTS[0], ask(self.too_long), REQUESTS[1])
        assert [bool(reply.error) for reply in replies] == [False, True, False]
        assert replies[1].text == ""
        assert "\n" not in replies[1].error

    def test_nothing_asked_is_nothing_answered(self) -> None:
        assert self._ask() == []

    def test_tokens_are_counted_and_more_text_has_no_fewer(self) -> None:
        model = self.model()
        assert 0 < model.count_tokens("the press") <= model.count_tokens("the press runs at 140 bar")
        assert model.context_tokens > 0
        assert model.constrains_json in (True, False)
