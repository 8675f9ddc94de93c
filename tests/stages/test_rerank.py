import json
import math
import random
import re
from dataclasses import replace

import pytest
from doubles import TEXTS, Corpus, hits

from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory
from rag_lab.models.remembered_vectors import RememberedScorer
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question, Trace
from rag_lab.stages.config import RerankConfig
from rag_lab.stages.rerank import KeepOrder, PairRerank, rerank_stage
from rag_lab.stages.stage import Outcome
from rag_lab.testing import HashEmbedder, OverlapScorer, RerankerContract, sample_index, sample_trace


class Fixed:
    """Scores by a table from the start of the passage; remembers the pairs."""

    def __init__(self, **scores):
        self.scores, self.pairs = scores, []

    def identity(self):
        return {"scores": self.scores}

    def score(self, pairs):
        self.pairs += pairs
        return [
            next(score for key, score in self.scores.items() if passage.startswith(TEXTS[NAMES[key]][:9]))
            for _, passage in pairs
        ]


NAMES = {"press": "press#p1", "oven": "oven#p1", "log": "log#0-50"}
CANDIDATES = tuple(hits("press#p1", "oven#p1", "log#0-50"))


def rerank(scorer, keep=3, weight=0.0, passage="parent"):
    stage = PairRerank("query_likelihood", scorer, Corpus(), keep, passage, weight)
    (outcome,) = stage.run([Trace(Question("q", "?"), search_query="trips?", candidates=CANDIDATES)])
    return outcome.updates["ranked"]


def test_the_scorer_orders_and_every_score_is_kept():
    ranked = rerank(Fixed(press=-3.0, oven=-2.0, log=-1.0))
    assert [hit.parent_id for hit in ranked] == ["log#0-50", "oven#p1", "press#p1"]
    assert ranked[0].scores == {"dense": 1 / 3, "query_likelihood": -1.0}
    assert ranked[0].score == -1.0


def test_ties_keep_the_order_of_the_merge():
    assert [hit.parent_id for hit in rerank(Fixed(press=0.0, oven=0.0, log=0.0))] == [h.parent_id for h in CANDIDATES]


def test_the_joint_score_sums_both_scaled_to_the_unit_interval():
    ranked = rerank(Fixed(press=-3.0, oven=-1.0, log=-2.0), weight=2.0)
    dense = {"press": 1.0, "oven": (1 / 2 - 1 / 3) / (1 - 1 / 3), "log": 0.0}
    expected = {"press": 0.0 + 2 * dense["press"], "oven": 1.0 + 2 * dense["oven"], "log": 0.5 + 2 * dense["log"]}
    assert {re.split("[.#]", hit.source)[0]: hit.score for hit in ranked} == pytest.approx(expected)


def test_where_a_candidate_has_no_cosine_the_merged_scores_stand_beside_the_scorer():
    mixed = (CANDIDATES[0], *hits("oven#p1", "log#0-50", step="bm25"))
    mixed = tuple(replace(hit, score=score) for hit, score in zip(mixed, (0.2, 0.9, 0.1), strict=True))
    stage = PairRerank("cross_encoder", Fixed(press=0.0, oven=0.0, log=0.0), Corpus(), 3, "parent", 1.0)
    (outcome,) = stage.run([Trace(Question("q", "?"), search_query="trips?", candidates=mixed)])
    assert [hit.parent_id for hit in outcome.updates["ranked"]] == ["oven#p1", "press#p1", "log#0-50"]


def stage_of(config, **objects):
    parts = Pipeline.on(sample_index(), HashEmbedder(), PipelineConfig()).parts
    return rerank_stage(replace(parts, rerank=RerankConfig(**config), overrides=objects))


@pytest.mark.parametrize(
    ("name", "given", "blend"),
    [("query_likelihood", None, 1.0), ("maxsim", None, 1.0), ("cross_encoder", None, 0.0), ("maxsim", 0.0, 0.0)],
)
def test_where_nobody_says_the_search_score_counts_as_is_right_for_the_reranker(name, given, blend):
    stage = stage_of({"name": name, "blend": given})
    assert (stage.step, stage.blend) == (name, blend)


def test_the_search_score_is_added_to_a_reranker_of_one_s_own_too():
    candidates = sample_trace().candidates
    falling = tuple(
        replace(hit, score=1.0 - place, scores={"bm25": 1.0 - place}) for place, hit in enumerate(candidates)
    )
    assert len(falling) > 1

    def order(blend):
        stage = stage_of({"blend": blend}, rerank=lambda question, passages: list(range(len(passages))))
        (outcome,) = stage.run([Trace(Question("q", "?"), search_query="trips?", candidates=falling)])
        return [hit.parent_id for hit in outcome.updates["ranked"]]

    names = [hit.parent_id for hit in falling]
    assert order(None) == names[::-1]
    assert order(5.0) == names


def test_only_what_is_kept_is_kept():
    assert len(rerank(Fixed(press=0.0, oven=1.0, log=0.5), keep=2)) == 2
    (outcome,) = KeepOrder(2).run([Trace(Question("q", "?"), candidates=CANDIDATES)])
    assert outcome.updates["ranked"] == CANDIDATES[:2]


def test_the_search_query_is_read_with_the_child_or_the_parent():
    for passage in ("child", "parent"):
        scorer = Fixed(press=0.0, oven=1.0, log=0.5)
        rerank(scorer, passage=passage)
        assert {query for query, _ in scorer.pairs} == {"trips?"}
        assert (TEXTS["press#p1"] in {text for _, text in scorer.pairs}) == (passage == "parent")


def test_remembered_pairs_are_scored_once(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    scorer = Fixed(press=0.25, oven=1.0, log=0.5)
    remembered = RememberedScorer(scorer, memory)
    pairs = [("q", TEXTS["press#p1"]), ("q", TEXTS["oven#p1"])]
    assert remembered.score(pairs) == [0.25, 1.0]
    assert remembered.score([*reversed(pairs), ("q", TEXTS["log#0-50"])]) == [1.0, 0.25, 0.5]
    assert len(scorer.pairs) == 3
    later = RememberedScorer(scorer, memory)
    later.score(pairs)
    stored = [json.loads(text)["seconds"] for text in memory.recall(remembered._keys(pairs)).values()]
    assert later.replayed.seconds == pytest.approx(sum(stored)) and min(stored) > 0
    other = RememberedScorer(Fixed(press=9.0, oven=9.0, log=9.0), memory)
    assert other.score(pairs) == [9.0, 9.0]


class ReadsSome(Fixed):
    """Reads the first nine words of a passage."""

    most_tokens = 9

    def pair_tokens(self, pairs):
        return [len(passage.split()) for _, passage in pairs]


def test_what_the_scorer_does_not_read_of_each_question_is_counted():
    stage = PairRerank("cross_encoder", ReadsSome(press=1.0, oven=2.0, log=3.0), Corpus(), 3, "parent")
    traces = [
        Trace(Question("q", "?"), search_query="trips?", candidates=some) for some in (CANDIDATES, CANDIDATES[2:])
    ]
    both, log = stage.run(traces)
    lengths = [len(TEXTS[name].split()) for name in ("press#p1", "oven#p1")]
    assert both.truncated_tokens == sum(lengths) - 18 > 0
    assert both.reason == "2 of 3 passages are longer than the reranker reads"
    assert (log.truncated_tokens, log.reason) == (0, "")


BUILT_IN = {
    "none": lambda: KeepOrder(4),
    "cross_encoder": lambda: PairRerank("cross_encoder", OverlapScorer(), sample_index(), 4, "child"),
    "query_likelihood": lambda: PairRerank("query_likelihood", OverlapScorer(), sample_index(), 4, "parent", 1.0),
}


class TestRerankers(RerankerContract):
    @pytest.fixture(autouse=True, params=BUILT_IN.values(), ids=BUILT_IN)
    def _each(self, request):
        self.make = self.built = request.param


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
        contract.built = stage
    return contract


def test_a_reranker_that_is_random_or_gives_no_numbers_breaks_the_contract():
    for score in (random.random, lambda: math.nan):
        contract = broken(lambda score=score: lambda question, passages: [score() for _ in passages])
        with pytest.raises((AssertionError, ConfigError)):
            contract.test_one_outcome_a_trace_in_order_the_same_again_of_what_it_declares()


def test_a_reranker_that_does_not_order_breaks_the_contract():
    contract = broken(None, lambda: unsorted(type("Stage", (), {})()))
    with pytest.raises(AssertionError):
        contract.test_what_it_writes_is_what_its_place_needs()
