import math
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from factories import comparisons

from rag_lab.comparison.comparison import Comparison
from rag_lab.errors import RagLabError
from rag_lab.report.page.report_page import to_html
from rag_lab.report.shown_comparison import compare
from rag_lab.statistics.summaries import summary


def test_summary_and_differences_are_those_of_the_statistics_room(comparison: Comparison) -> None:
    quality = comparison.scores[~comparison.scores["metric"].str.startswith("cost.")]
    pd.testing.assert_frame_equal(comparison.summary, summary(comparison.scores, scales=comparison.scales))
    theirs = comparisons(quality, "baseline", options=comparison.options).set_index(["variant_id", "metric"])
    ours = comparison.differences[comparison.differences["n"] > 0].set_index(["variant_id", "metric"])
    assert len(ours) > 5 and set(ours["family"]) == {"primary", "secondary"}
    columns = ["difference", "low", "high", "p_value", "wins", "ties", "losses", "effect_size"]
    pd.testing.assert_frame_equal(ours[columns], theirs.loc[ours.index, columns])


def test_costs_are_no_qualities(comparison: Comparison) -> None:
    assert comparison.cost_metrics == ("cost.seconds", "cost.tokens")
    assert comparison.main_metric == "retrieval.ndcg@10"
    assert not any(metric.startswith("cost.") for metric in comparison.differences["metric"])


def test_the_failed_variant_stands_with_its_reason_and_without_scores(comparison: Comparison) -> None:
    (failed,) = comparison.failed
    assert "bge-reranker" in comparison.failed[failed]
    assert comparison.cell(failed, "retrieval.ndcg@10") is None


def test_classes_partition_the_questions(comparison: Comparison) -> None:
    main = comparison.by_class[comparison.by_class["metric"] == comparison.main_metric]
    for variant, rows in main.groupby("variant_id"):
        whole = comparison.cell(str(variant), "retrieval.ndcg@10")
        assert whole is not None
        assert rows["asked"].sum() == whole["asked"] == 12
        weighted = sum(row.mean * row.scored for row in rows.itertuples() if row.scored)
        assert weighted / rows["scored"].sum() == pytest.approx(whole["mean"])


def test_questions_table_has_the_main_metric_and_its_spread(comparison: Comparison) -> None:
    row = comparison.questions.iloc[0]
    values = [row["baseline"], row["rerank.name-query_likelihood"], row["query.hyde-always"]]
    assert row["spread"] == pytest.approx(max(values) - min(values))
    assert math.isnan(row["rerank.name-cross_encoder"])


def test_stage_problems_count_every_fallback(comparison: Comparison) -> None:
    for variant, traces in comparison.traces.items():
        records = [record for trace in traces for record in trace.stages]
        for status, column in (("fallback", "fallbacks"), ("failed", "failures")):
            expected = sum(record.status == status for record in records)
            problems = comparison.stage_problems
            chosen = problems[(problems["variant_id"] == variant) & (problems["status"] == status)]
            assert chosen["count"].sum() == expected
            assert comparison.stages[comparison.stages["variant_id"] == variant][column].sum() == expected


def test_letters_begin_with_the_baseline(wide: Comparison) -> None:
    assert list(wide.codes.values()) == list("ABCDEF")
    assert wide.codes[wide.run.baseline] == "A"


def test_repeats_are_kept_apart_in_traces_and_averaged_in_tables(build: ModuleType, tmp_path: Path) -> None:
    repeated = compare(build.build_run(tmp_path / "run", 5, 2, repeats=2).path)
    cell = repeated.cell("baseline", "retrieval.ndcg@10")
    assert cell is not None and cell["asked"] == 5
    assert len(repeated.traces["baseline"]) == 10


def test_every_variant_failed_is_still_a_comparison(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 3, 1)
    run.scores().iloc[:0].to_parquet(run.path / "scores.parquet")
    (run.variant_dir("baseline") / "traces.jsonl").unlink()
    empty = compare(run.path)
    assert empty.summary.empty and empty.differences.empty and empty.questions.empty
    assert "No variant has scores" in empty.to_markdown()


def test_a_folder_that_is_no_run_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RagLabError, match="no run folder"):
        compare(tmp_path)


@pytest.mark.parametrize("option", ["pairs", "correction"])
def test_an_option_that_there_is_not_is_named(wide: Comparison, option: str) -> None:
    with pytest.raises(RagLabError, match="Unknown (choice of pairs|correction) 'some': allowed are"):
        compare(wide.run.path, **{option: "some"})  # type: ignore[arg-type]


def test_all_pairs_and_benjamini_hochberg_on_request(wide: Comparison) -> None:
    loose = compare(wide.run.path, pairs="all", correction="bh")
    n_scored = wide.summary["variant_id"].nunique()
    assert len(loose.differences) == len(loose.quality_metrics) * n_scored * (n_scored - 1) // 2
    both = loose.differences[loose.differences["against"] == "baseline"]
    pd.testing.assert_series_equal(
        both.set_index(["variant_id", "metric"])["difference"].sort_index(),
        wide.differences.set_index(["variant_id", "metric"])["difference"].sort_index(),
    )
    strict = compare(wide.run.path, pairs="all")
    able = strict.differences["p_corrected"].notna()
    assert (loose.differences["p_value"] == strict.differences["p_value"]).all()
    assert (loose.differences["p_corrected"][able] <= strict.differences["p_corrected"][able]).mean() > 0.5
    assert "Benjamini-Hochberg" in loose.to_latex() and "every pair" in loose.to_latex()
    page = to_html(loose)
    assert "Every pair of variants" in page and "corrected (Benjamini-Hochberg)" in page


@pytest.mark.parametrize("option", [{"correction": "bonferroni"}, {"pairs": "some"}])
def test_an_unknown_option_is_one_sentence(wide: Comparison, option: dict[str, str]) -> None:
    with pytest.raises(RagLabError, match="allowed are"):
        compare(wide.run.path, **option)  # type: ignore[arg-type]


def test_declared_clusters_change_the_intervals(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 30, 2)
    alone = compare(run.path)
    replace(run, clusters="document").write_plan()
    together = compare(run.path)
    assert together.clusters is not None and len(set(together.clusters.values())) == 5
    assert list(alone.differences["difference"]) == list(together.differences["difference"])
    assert list(alone.differences["low"]) != list(together.differences["low"])
    assert "in 5 clusters (document), each of which intervals and tests treat as one unit" in to_html(together)


def test_the_scores_of_markdown_are_a_table(comparison: Comparison) -> None:
    scores = comparison.to_markdown().partition("▲ ▼")[0].partition("| Variant |")
    scores = "".join(scores[1:])
    rows = [line for line in scores.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(comparison.variants)
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1
