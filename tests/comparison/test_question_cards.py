from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.questions.in_common import share
from rag_lab.comparison.questions.passage_table import Rank, ranking
from rag_lab.comparison.questions.question_cards import cards, refused_rewrite
from rag_lab.records import Evidence, Hit, Passage, Question, Trace
from rag_lab.stages.query.rewrite import GuardedRewrite, PlainWords
from rag_lab.stages.run_stage import run_stage
from rag_lab.stages.stage import Stage
from rag_lab.testing import HashEmbedder


def _hit(name: str) -> Hit:
    return Hit(name, f"{name}.0", name, 1, 0, 100, 1.0)


def _trace(ranked: list[str], candidates: list[str], read: int, evidence: str = "gold") -> Trace:
    hits = tuple(_hit(name) for name in ranked)
    return Trace(
        Question("q", "text", evidence=(Evidence(evidence, 1),)),
        candidates=tuple(_hit(name) for name in candidates),
        ranked=hits,
        passages=tuple(Passage(n, h.parent_id, h.source, 1, 0, 100, "words") for n, h in enumerate(hits[:read], 1)),
    )


def test_variants_with_the_same_ranking_share_a_column() -> None:
    same = _trace(["gold", "b"], ["b", "gold"], 1)
    table = ranking([("A", same), ("B", _trace(["b", "gold"], ["b", "gold"], 1)), ("C", same)])
    assert table.columns == (("A", "C"), ("B",))
    gold = next(row for row in table.rows if row.hit.source == "gold")
    assert gold.holds_evidence and gold.text == "words"
    assert gold.ranks == (Rank(1, in_context=True), Rank(2))


def test_evidence_that_the_ranking_dropped_is_shown_at_its_place_among_the_candidates() -> None:
    table = ranking([("A", _trace(["b"], ["b", "c", "gold"], 1))])
    assert [row.hit.source for row in table.rows] == ["b", "gold"]
    assert table.rows[1].ranks == (Rank(3, dropped=True),)
    assert table.missed == ()


def test_evidence_that_nobody_found_is_named() -> None:
    table = ranking([("A", _trace(["b"], ["b", "c"], 1, evidence="elsewhere"))])
    assert table.missed == (Evidence("elsewhere", 1),)


@given(st.lists(st.tuples(st.text(min_size=1, max_size=2), st.integers(0, 3)), max_size=12))
def test_sharing_loses_nothing(items: list[tuple[str, int]]) -> None:
    shared = share(items, total=len(items))
    assert sorted((who, one.value) for one in shared for who in one.who) == sorted(items)
    assert len({one.value for one in shared}) == len(shared)


def test_cards_group_equal_answers_and_tell_failures(comparison: Comparison) -> None:
    by_id = {card.question.question_id: card for card in cards(comparison)}
    failed = by_id["q007"]
    assert ("parse", "failed", "the reply is no JSON object") in [one.value for one in failed.problems]
    assert any(one.reply.value.failure and one.reply.value.text == "{answer: 85 Nm" for one in failed.replies)
    refused = [one.value.refused for one in by_id["q004"].understood]
    assert not any(one.value.refused for one in by_id["q002"].understood)
    assert refused == ["the weather in Bonn"] and by_id["q004"].understood[0].everyone
    assert all(line.letter != "D" for card in by_id.values() for line in card.lines)


@pytest.mark.parametrize(
    ("stage", "refused"),
    [
        (PlainWords(), None),
        (GuardedRewrite(HashEmbedder(), 0.5), "weather"),
        (GuardedRewrite(HashEmbedder(), -1), None),
    ],
)
def test_a_rewrite_is_refused_by_the_guard_alone(stage: Stage, refused: str | None) -> None:
    (trace,) = run_stage(stage, [Trace(Question("q", "Why does the oven trip?"), proposed_query="weather")])
    assert refused_rewrite(trace) == refused


def test_a_variant_that_does_not_rewrite_refuses_no_rewrite(wide: Comparison) -> None:
    config = next(plan for plan in wide.variants if plan.changes.get("query.rewrite") == "none")
    assert any(trace.proposed_query for trace in wide.traces[config.variant_id])
    letter = wide.codes[config.variant_id]
    refusing = {who for card in cards(wide) for one in card.understood if one.value.refused for who in one.who}
    assert refusing and letter not in refusing
