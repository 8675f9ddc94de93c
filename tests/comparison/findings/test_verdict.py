from dataclasses import replace

import numpy as np
from synthetic_run import MAIN

from rag_lab._kit.wording import signed
from rag_lab.comparison.comparison import with_answers
from rag_lab.comparison.findings.verdict import verdict
from rag_lab.report.shown_comparison import compare


def test_a_reliable_difference_is_told_with_interval_counts_and_price(wide):
    first = verdict(wide)[0]
    row = wide.difference("rerank.name-query_likelihood", "retrieval.ndcg@10")
    assert row is not None and row["verdict"] == "better"
    assert first.startswith("B (rerank.name=query_likelihood) raises retrieval.ndcg@10 by ")
    assert f"by {row['difference']:.3f} against" in first
    assert f"+{row['low']:.3f} to +{row['high']:.3f}; {row['n']} questions" in first
    assert f"{row['wins']} questions better, {row['ties']} equal, {row['losses']} worse" in first
    assert "A question takes" in first


def test_what_is_not_reliable_is_not_told_as_a_finding(promising):
    sentences = verdict(promising)
    metric = promising.main_metric
    assert sentences[0].startswith(f"Looks like a difference in {metric}, but is no finding: B (v0) +")
    assert "cannot tell from chance" in sentences[1] and "C (v1)" in sentences[1]
    assert not any("raises" in sentence or "lowers" in sentence for sentence in sentences)


def test_failed_variants_are_named(comparison):
    assert any("D (rerank.name=cross_encoder) failed" in sentence for sentence in verdict(comparison))


def test_a_variant_like_the_baseline_on_every_question_is_called_equal(build, tmp_path):
    run = build.build_run(tmp_path / "run", 12, 2)
    scores = run.scores()
    base = scores[scores["variant_id"] == "baseline"]
    twin = base.assign(variant_id="rerank.name-query_likelihood")
    scores.iloc[:0].to_parquet(run.path / "scores.parquet")
    import pandas as pd

    pd.concat([base, twin]).to_parquet(run.path / "scores.parquet", index=False)
    label = "B (rerank.name=query_likelihood) (11 of 12 questions)"
    assert (
        f"on any question compared, in retrieval.ndcg@10: {label}; they could have missed"
        in verdict(compare(run.path))[0]
    )


def test_equal_names_how_many_questions_were_compared(compared):
    base = np.linspace(0.1, 0.9, 30)
    half = np.where(np.arange(30) < 15, base, np.nan)
    plans = {name: {"rerank.final_k": 5 + index} for index, name in enumerate(("base", "whole", "half"))}
    values = {"base": base, "whole": base, "half": half}
    told = verdict(compared(values, plans))
    assert "B (whole) (30 of 30 questions, the metric is blind to it) and C (half) (15 of 30 questions" in told[0]
    assert told[0].endswith("they could have missed one of up to 0.196 on average.")


def test_what_too_few_questions_show_is_neither_a_finding_nor_put_down_to_chance(compared):
    base = np.full(4, 0.2)
    plans = {"base": {}, "better": {"rerank.final_k": 3}}
    values = {"base": base, "better": base + [0.3, 0.32, 0.31, 0.33]}
    found = compared(values, plans)
    row = found.difference("better", MAIN)
    assert row is not None and (row["p_value"], row["p_corrected"]) == (0.125, None)
    assert row["verdict"].startswith("the data cannot tell: only 4 questions differ, and with fewer than 6 no test can")
    assert not any("look like one by chance" in sentence for sentence in verdict(found))


def test_what_three_clusters_show_is_no_finding(compared):
    base = np.linspace(0.1, 0.4, 30)
    plans = {"base": {}, "better": {"rerank.final_k": 3}}
    values = {"base": base, "better": base + 0.3 + 0.01 * (np.arange(30) % 3)}
    found = compared(values, plans)
    assert found.reliable("better", MAIN)
    clusters = {f"q{index}": f"d{index % 3}" for index in range(30)}
    clustered = with_answers(replace(found, clusters=clusters))
    assert not clustered.reliable("better", MAIN)
    assert "only 3 clusters differ" in clustered.differences.iloc[0]["verdict"]


def test_metrics_on_few_questions_are_named(comparison, wide):
    told = " ".join(verdict(comparison))
    assert "Metrics with fewer than 20 questions" in told and "citations.precision (12)" in told
    assert not any("fewer than 20" in sentence for sentence in verdict(wide))


def test_many_reliable_variants_share_a_sentence(compared):
    base = np.linspace(0.1, 0.5, 40)
    values = {f"v{index}": base + (0.05 + 0.001 * (np.arange(40) % 2)) * index for index in range(6)}
    plans = {name: {"rerank.final_k": 5 + index} for index, name in enumerate(values)}
    told = verdict(compared(values, plans))
    assert [sentence[:1] for sentence in told[:3]] == ["F", "E", "D"]
    assert told[3].startswith("Reliably different from the baseline") and "C (v2)" in told[3] and "B (v1)" in told[3]


def test_reliable_differences_in_other_metrics_are_listed_metric_by_metric(wide):
    (sentence,) = [
        text for text in verdict(wide) if text.startswith("Reliable differences in other metrics (secondary): ")
    ]
    assert [part.rpartition(" in ")[2] for part in sentence.removesuffix(".").split("; ")] == [
        metric
        for metric in wide.quality_metrics[1:]
        if any(wide.reliable(plan.variant_id, metric) for plan in wide.variants)
    ]
    row = wide.difference("rerank.name-query_likelihood", "citations.precision")
    assert f"B {signed(row['difference'])}" in sentence
