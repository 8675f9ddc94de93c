from __future__ import annotations

from pathlib import Path
from types import ModuleType

from rag_lab.report.compare import compare
from rag_lab.report.comparison import Comparison
from rag_lab.report.verdict import verdict


def test_a_reliable_difference_is_told_with_interval_counts_and_price(wide: Comparison) -> None:
    first = verdict(wide)[0]
    row = wide.difference("rerank.name-query_likelihood", "retrieval.ndcg@10")
    assert row is not None and row["verdict"] == "better"
    assert first.startswith("B (rerank.name=query_likelihood) raises retrieval.ndcg@10 by ")
    assert f"by {row['difference']:.3f} against" in first
    assert f"+{row['low']:.3f} to +{row['high']:.3f}; {row['n']} questions" in first
    assert f"{row['wins']} questions better, {row['ties']} equal, {row['losses']} worse" in first
    assert "A question takes" in first


def test_what_is_not_reliable_is_not_told_as_a_finding(comparison: Comparison) -> None:
    sentences = verdict(comparison)
    assert not comparison.reliable("query.hyde-always", "retrieval.ndcg@10")
    assert "cannot tell from chance" in sentences[0] and "C (query.hyde=always)" in sentences[0]
    assert not any("raises" in sentence or "lowers" in sentence for sentence in sentences)


def test_failed_variants_are_named(comparison: Comparison) -> None:
    assert any("D (rerank.name=cross_encoder) failed" in sentence for sentence in verdict(comparison))


def test_a_variant_like_the_baseline_on_every_question_is_called_equal(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 12, 2)
    scores = run.scores()
    base = scores[scores["variant_id"] == "baseline"]
    twin = base.assign(variant_id="rerank.name-query_likelihood")
    scores.iloc[:0].to_parquet(run.path / "scores.parquet")
    import pandas as pd

    pd.concat([base, twin]).to_parquet(run.path / "scores.parquet", index=False)
    assert "Every question scores the same with B" in verdict(compare(run.path))[0]
