"""The built-in rerankers keep to the contract of rerankers, and it finds what is wrong with one's own."""

import math
import random

import pytest

from rag_lab.errors import ConfigError
from rag_lab.stages.rerank.keep_order import KeepOrder
from rag_lab.stages.rerank.pair_rerank import PairRerank
from rag_lab.stages.stage import Outcome
from rag_lab.testing import OverlapScorer, RerankerContract, sample_index

BUILT_IN = {
    "none": lambda: KeepOrder(4),
    "cross_encoder": lambda: PairRerank("cross_encoder", OverlapScorer(), sample_index(), 4, "child"),
    "query_likelihood": lambda: PairRerank("query_likelihood", OverlapScorer(), sample_index(), 4, "parent", 1.0),
}


class TestRerankers(RerankerContract):
    @pytest.fixture(autouse=True, params=BUILT_IN.values(), ids=BUILT_IN)
    def _each(self, request):
        self.make = self.stage = request.param


class TestAFunction(RerankerContract):
    def make(self):
        return lambda question, passages: [len(passage) for passage in passages]


def unsorted(stage):
    """A stage that hands on what it was given, the worst first."""
    stage.writes = ("ranked",)
    stage.run = lambda traces: [Outcome({"ranked": trace.candidates[::-1]}) for trace in traces]
    return stage


def broken(make, stage=None):
    contract = RerankerContract()
    contract.make = make
    if stage:
        contract.stage = stage
    return contract


def test_a_reranker_that_is_random_or_gives_no_numbers_breaks_the_contract():
    for score in (random.random, lambda: math.nan):
        contract = broken(lambda score=score: lambda question, passages: [score() for _ in passages])
        with pytest.raises((AssertionError, ConfigError)):
            contract.test_one_outcome_a_trace_in_order_and_the_same_again()


def test_a_reranker_that_does_not_order_breaks_the_contract():
    contract = broken(None, lambda: unsorted(type("Stage", (), {})()))
    with pytest.raises(AssertionError):
        contract.test_it_orders_what_it_was_given_by_falling_score()
