"""Prompts that no trace holds are made again as the model got them, or not at all."""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from doubles import ScriptedJudge
from html_page import Page
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.comparison.by_question import answered, cards, rebuilt_prompts, refused_rewrite, share
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.passages import Rank, ranking
from rag_lab.errors import ConfigError
from rag_lab.records import Answer, Evidence, Hit, Passage, Question, Remembered, StageRecord, Trace, Turn
from rag_lab.report.page.report_page import to_html, write_report
from rag_lab.stages.rewrite_and_hyde import GuardedRewrite, Hyde, PlainWords, RouteHyde
from rag_lab.stages.run_stage import run_stage
from rag_lab.stages.stage import Off, Stage
from rag_lab.stages.understand import LlmUnderstanding
from rag_lab.statistics.summaries import Scale, summary
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


UNDERSTOOD = {"class": "fuzzy", "rewritten": "hazard of the odour near tank T1", "hyde": True}
QUESTION = Question("q", "that smell near T1, is it bad?", history=(Turn("user", "I am at tank <T1>."),))


def asked(request) -> str:
    return "\n\n".join(f"{message.role}: {message.content}" for message in request.messages)


def manifest(*stages) -> dict:
    return {"models": {stage.name: [dict(stage.identity())] for stage in stages}}


@pytest.mark.parametrize("routed", [True, False])
def test_what_is_made_again_is_what_the_model_got(routed: bool) -> None:
    model = ScriptedJudge(lambda request: json.dumps(UNDERSTOOD) if request.json_schema else "The odour is sulphide.")
    understand, hyde = LlmUnderstanding(model), Hyde(model, 32)
    route = RouteHyde({"fuzzy": routed})
    traces = [Trace(QUESTION, remembered=Remembered(1, QUESTION.history))]
    for stage in (understand, GuardedRewrite(HashEmbedder(), -1), route, hyde):
        traces = run_stage(stage, traces)
    rebuilt = rebuilt_prompts(manifest(understand, hyde))
    got = [text for stage in ("understand", "hyde") if (text := rebuilt[stage](traces[0]))]
    assert got == [asked(request) for request in model.requests]
    assert len(got) == 1 + routed and "tank <T1>" in got[0]


def test_what_was_not_asked_or_may_have_been_worded_otherwise_is_not_made_again() -> None:
    model = ScriptedJudge(lambda _: json.dumps(UNDERSTOOD))
    understand = LlmUnderstanding(model)
    (off,) = run_stage(Off("understand"), [Trace(QUESTION)])
    assert rebuilt_prompts(manifest(understand))["understand"](off) == ""
    assert rebuilt_prompts({}) == {}
    earlier = dict(understand.identity()) | {"prompts": 0}
    own = {"code": "sha256:ab", "models": []}
    for other in (earlier, own):
        assert rebuilt_prompts({"models": {"understand": [dict(understand.identity()), other]}}) == {}


def test_the_card_shows_them_one_click_away(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 3, 2).path
    path = run / "manifest.json"
    data = json.loads(path.read_text())
    before = write_report(run).read_text()
    path.write_text(json.dumps(data | manifest(LlmUnderstanding(ScriptedJudge(lambda _: "")))))
    html = write_report(run).read_text()
    assert "You prepare questions for a search" not in before
    assert html.count("You prepare questions for a search") == 3
    (_, shown, *_) = html.split("<summary>What the model was sent, word for word</summary>")
    assert shown.startswith('<p class="text raw"><bdi>system: You prepare questions')
    Page(html)


WRITTEN = StageRecord("generate", tokens_out=520, thinking_tokens=500)
DONE = Trace(
    Question("q", "How hard?"),
    prompt="user: How hard?",
    raw_text='<think>bar or psi</think>{"answer": "140 bar"}',
    answer=Answer("140 bar", thinking="bar or psi"),
    stages=(WRITTEN,),
)


def test_thinking_stands_apart_from_the_reply_with_its_tokens() -> None:
    ((one,),) = [each.exchanges for each in answered([("A", DONE)])]
    assert (one.value.raw, one.value.thinking, one.value.thinking_tokens) == (
        '{"answer": "140 bar"}',
        "bar or psi",
        500,
    )


def test_so_it_does_where_no_answer_came_of_it() -> None:
    failed = replace(WRITTEN, status="failed", reason="cut off while thinking")
    (one,) = answered([("A", replace(DONE, answer=None, raw_text="<think>bar or psi</think>", stages=(failed,)))])
    assert (one.reply.value.text, one.reply.value.failure) == ("", "generate failed: cut off while thinking")
    assert (one.exchanges[0].value.raw, one.exchanges[0].value.thinking) == ("", "bar or psi")


def test_a_reply_without_thinking_is_shown_as_it_was_written() -> None:
    plain = replace(DONE, raw_text=' {"answer": "140 bar"}\n', answer=Answer("140 bar"), stages=())
    (one,) = answered([("A", plain)])
    assert one.exchanges[0].value.raw == ' {"answer": "140 bar"}\n'


MAIN = "retrieval.ndcg@10"


def other(comparison: Comparison) -> str:
    """Return the first variant beside the baseline that has a difference."""
    return next(p.variant_id for p in comparison.variants if comparison.difference(p.variant_id, MAIN))


def test_the_gains_are_those_of_the_paired_difference_most_lost_first(wide: Comparison) -> None:
    variant = other(wide)
    table, told = wide.paired(variant), wide.difference(variant, MAIN) or {}
    assert list(table["gain"]) == sorted(table["gain"])
    assert len(table) == told["n"]
    assert table["gain"].mean() == pytest.approx(told["difference"])
    assert (table["gain"] > 0).sum() == told["wins"] and (table["gain"] < 0).sum() == told["losses"]
    assert list(table["gain"]) == pytest.approx(list(table[variant] - table[wide.run.baseline]))
    assert [wide.asked[name].text for name in table["question_id"]] == list(table["question"])


def test_less_is_a_gain_where_lower_is_better(wide: Comparison) -> None:
    variant = other(wide)
    turned = replace(wide, scales={**wide.scales, MAIN: Scale(higher_is_better=False)})
    assert sorted(-turned.paired(variant)["gain"]) == pytest.approx(list(wide.paired(variant)["gain"]))


def test_a_question_that_one_side_did_not_score_is_no_pair(wide: Comparison) -> None:
    variant = other(wide)
    gone = wide.paired(variant)["question_id"].iloc[0]
    rows = (wide.scores["question_id"] == gone) & (wide.scores["variant_id"] == variant)
    scores = wide.scores.assign(
        status=wide.scores["status"].mask(rows, "failed"), value=wide.scores["value"].mask(rows, None)
    )
    left = replace(wide, scores=scores).paired(variant)
    assert gone not in set(left["question_id"]) and len(left) == len(wide.paired(variant)) - 1


def test_what_cannot_be_paired_is_one_sentence(wide: Comparison) -> None:
    with pytest.raises(ConfigError, match="variant beside the baseline 'baselin'"):
        wide.paired("baselin")
    with pytest.raises(ConfigError, match=r"did you mean 'retrieval\.ndcg@10'"):
        wide.paired(other(wide), "retrieval.ndgc@10")


def test_a_trace_is_found_by_variant_and_question(wide: Comparison) -> None:
    variant = other(wide)
    assert wide.trace(variant, "q002") in wide.traces[variant]
    assert wide.trace(variant, "q002").question.question_id == "q002"
    with pytest.raises(ConfigError, match="did you mean 'q002'"):
        wide.trace(variant, "q0002")
    with pytest.raises(ConfigError, match="variant with traces"):
        wide.trace("nobody", "q002")


def test_every_metric_stands_by_class_and_by_tag(routed: Comparison, comparison: Comparison) -> None:
    assert set(comparison.by_class["metric"]) == {*comparison.quality_metrics, *comparison.cost_metrics}
    even = {f"q{index}" for index in range(0, 80, 2)}
    expected = summary(routed.scores[routed.scores["question_id"].isin(even)])
    pd.testing.assert_frame_equal(routed.by_tag.drop(columns="tag"), expected)
    assert list(routed.by_tag["tag"].unique()) == ["even"]


def test_groups_are_in_the_page_with_their_numbers(routed: Comparison) -> None:
    page = to_html(routed)
    assert "Every metric by class" in page and "Every metric by tag" in page
    row = routed.by_tag.iloc[0]
    cell = page.partition("Every metric by tag")[2]
    assert f"{row['mean']:.3f}" in cell and f"{row['scored']}/{row['asked']}" in cell


def test_a_question_without_tags_is_in_no_tag(comparison: Comparison) -> None:
    assert comparison.by_tag.empty and "Every metric by tag" not in to_html(comparison)
    assert comparison.by_class["asked"].sum() == pytest.approx(comparison.summary["asked"].sum())
