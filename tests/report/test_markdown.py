from __future__ import annotations

from rag_lab._kit import wording as numbers
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import conclusions


def test_it_holds_question_verdict_numbers_failures_and_origin(comparison: Comparison) -> None:
    text = comparison.to_markdown()
    plain = text.replace("\\", "").replace("&lt;", "<")
    assert comparison.run.question in plain
    assert all(sentence in plain for sentence in conclusions(comparison))
    for row in comparison.summary[comparison.summary["metric"].isin(comparison.quality_metrics)].itertuples():
        assert f"**{numbers.plain(row.mean)}**" in text
        assert f"[{numbers.interval(row.low, row.high)}] {row.scored}/{row.asked}" in text
    assert "the rewrite drifted (cosine 0.31 < 0.60) (9×)" in plain
    assert "bge-reranker-v2-m3 is not on this machine" in plain
    assert comparison.manifest["commit"] in text and "uncommitted changes" in text


def test_the_table_is_a_table(comparison: Comparison) -> None:
    scores = comparison.to_markdown().partition("▲ ▼")[0].partition("| Variant |")
    scores = "".join(scores[1:])
    rows = [line for line in scores.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(comparison.variants)
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1
