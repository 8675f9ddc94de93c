"""The contracts of models: see `rag_lab.models.protocols`."""

import math
from typing import Any, ClassVar

import numpy as np

from rag_lab._kit.registry import Kind
from rag_lab.models.custom_models import object_model
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.providers import CHAT_MODELS, CROSS_ENCODERS, EMBEDDERS
from rag_lab.testing.contracts.module import ModuleContract

TEXTS = ["The press runs at 140 bar.", "grease", "The oven's filter is changed every month.", "grease"]
_ROUNDING = 1e-5  # of a unit vector in float32: batches of another size add in another order
PAIRS = [
    ("how often is the filter of the oven changed", "the filter of the oven is changed monthly"),
    ("how often is the filter of the oven changed", "the press runs at 140 bar"),
    ("what pressure does the press need", "the press runs at 140 bar"),
    ("what pressure does the press need", ""),
]
_SCORE_ROUNDING = 1e-4  # of float32


def ask(text: str) -> ChatRequest:
    """Return a request for a short reply."""
    return ChatRequest((Message("system", "the press"), Message("user", text)), max_tokens=8)


REQUESTS = [ask(text) for text in ("grease", "how often is the filter changed", "what pressure", "who", "oven")]


class ModelContract(ModuleContract):
    """A model of a kind, one of LangChain's too."""

    kind: ClassVar[Kind]

    def built(self) -> Any:
        """Return it as the pipeline asks it."""
        return object_model(self.kind, self.make())


class ChatModelContract(ModelContract):
    """A chat model. `too_long` is a question longer than it can read, where there is one."""

    too_long = ""

    kind = CHAT_MODELS

    def test_one_reply_a_request_in_order(self) -> None:
        together = [reply.text for reply in self.built().generate(REQUESTS)]
        assert together == [self.built().generate([request])[0].text for request in REQUESTS]
        assert [reply.text for reply in self.built().generate(REQUESTS[::-1])][::-1] == together
        assert len(set(together)) > 1
        assert list(self.built().generate([])) == []

    def test_a_reply_counts_tokens_and_seconds(self) -> None:
        for reply in self.built().generate(REQUESTS[:2]):
            assert reply.error == ""
            assert reply.tokens_in > 0
            assert reply.tokens_out > 0
            assert reply.seconds >= 0

    def test_a_request_that_cannot_be_answered_fails_alone(self) -> None:
        if not self.too_long:
            return
        replies = self.built().generate([REQUESTS[0], ask(self.too_long), REQUESTS[1]])
        assert [bool(reply.error) for reply in replies] == [False, True, False]
        assert replies[1].text == ""
        assert "\n" not in replies[1].error

    def test_tokens_are_counted_and_more_text_has_no_fewer(self) -> None:
        model = self.built()
        assert 0 < model.count_tokens("the press") <= model.count_tokens("the press runs at 140 bar")
        assert model.context_tokens > 0
        assert model.constrains_json in (True, False)


class EmbedderContract(ModelContract):
    """An embedding model."""

    kind = EMBEDDERS

    def test_rows_are_unit_vectors_in_order(self) -> None:
        for embed in (self.built().embed_documents, self.built().embed_queries):
            rows = embed(TEXTS)
            assert rows.shape[0] == len(TEXTS)
            assert rows.dtype == np.float32
            np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=_ROUNDING)
            np.testing.assert_allclose(rows, embed(TEXTS[::-1])[::-1], atol=_ROUNDING)
            np.testing.assert_allclose(rows[1], rows[3], atol=_ROUNDING)
            assert rows[0] @ rows[1] < 0.99

    def test_nothing_to_embed_is_no_rows(self) -> None:
        empty = self.built().embed_documents([])
        assert (empty.ndim, empty.shape[0]) == (2, 0)


class PairScorerContract(ModelContract):
    """A cross-encoder, or another model that scores pairs of a question and a passage."""

    kind = CROSS_ENCODERS

    def test_one_finite_score_a_pair_in_order_whatever_shares_the_batch(self) -> None:
        together = self.built().score(PAIRS)
        alone = [self.built().score([pair])[0] for pair in PAIRS]
        assert len(together) == len(PAIRS)
        assert all(type(score) is float and math.isfinite(score) for score in together)
        for one, other, backwards in zip(together, alone, self.built().score(PAIRS[::-1])[::-1], strict=True):
            assert math.isclose(one, other, rel_tol=_SCORE_ROUNDING, abs_tol=_SCORE_ROUNDING)
            assert math.isclose(one, backwards, rel_tol=_SCORE_ROUNDING, abs_tol=_SCORE_ROUNDING)
        assert len(set(together[:3])) > 1
        assert list(self.built().score([])) == []
