import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from synthetic_run import MAIN

from rag_lab._kit.wording import signed
from rag_lab.comparison.comparison import Comparison, with_answers
from rag_lab.comparison.findings.conclusions import topics
from rag_lab.comparison.findings.recommendation import recommendation
from rag_lab.comparison.findings.verdict import sparse_metric_sentences, sparse_metrics, truncation_sentences, verdict
from rag_lab.errors import DamagedFile
from rag_lab.models.truncation import TruncatedChildren, Truncation
from rag_lab.records import Hit, Question, StageRecord, Trace
from rag_lab.report.compare_text import screen
from rag_lab.report.page.report_page import to_html, to_markdown
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.omissions import TRUNCATION, TruncationRecord
from rag_lab.runs.run_folder import RECORD_FILE, RunFolder
from rag_lab.runs.variant_files import read_traces, write_traces


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


SIZES = {"small": {}, "large": {"corpus.chunk_size": 2000}}
CUT = {
    "small": Truncation(256, 1000, 4, 800_000, 200_000, 200),
    "large": Truncation(256, 100, 66, 200_000, 50_000, 16_000),
}


@pytest.fixture
def ran(synthetic: ModuleType, tmp_path: Path) -> Any:
    """A run whose second variant is worse, and of which 66% of the chunks were cut."""
    values = np.linspace(0.2, 0.9, 40)
    run = synthetic.write_run(
        tmp_path / "run", SIZES, {synthetic.MAIN: {"small": values, "large": values - 0.1}}, design="one_at_a_time"
    )
    record_cuts(run, CUT)
    return run


def record_cuts(run: RunFolder, cuts: Mapping[str, Truncation | None]) -> None:
    """Write what was not read of the chunks of each variant; None for one without an embedding model."""
    for name, chunks in cuts.items():
        if chunks is not None:
            record = TruncationRecord(
                "sentence_transformers:minilm", chunks, 200, 150 if name == "large" else 0, 40, 0, 0
            )
            (run.variant_dir(name) / RECORD_FILE).write_text(json.dumps({"unread": asdict(record)}))


def test_a_variant_of_which_less_was_read_is_said_to_be_at_a_disadvantage_once(ran: Any) -> None:
    found = compare(ran.path)
    warning = (
        "B is at a disadvantage: the embedding model does not read 32% of the text under B and 0.1% of the text under "
        "A, and no search finds that part by meaning"
    )
    assert recommendation(found).reasons[0].startswith(warning)
    assert topics(found)["Not read"] == [
        "B: 66% of the chunks are longer than minilm reads (256 tokens, here about 1,020 characters); 32% of the "
        "text is invisible to dense search, and 75% of the passages that readers get are of such a chunk."
    ]
    page, text = to_html(found), found.to_markdown()
    for shown in (page, text, " ".join(screen(found).split())):
        assert shown.count("at a disadvantage") == 1
    assert page.count("66% of chunks cut at 256 tokens") == 1 and "0.4% of chunks" not in page
    assert "(66% of chunks cut at 256 tokens) |" in text


@pytest.mark.parametrize(
    ("large", "gain"),
    [
        (Truncation(256, 100, 9, 200_000, 50_000, 900), -0.1),  # 9% of the chunks, 1.8% of the text
        (None, -0.1),  # no embedding model
        (CUT["large"], 0.1),  # better in spite of it
    ],
)
def test_what_cannot_change_a_verdict_is_no_caveat(
    synthetic: ModuleType, tmp_path: Path, large: Truncation | None, gain: float
) -> None:
    values = np.linspace(0.2, 0.8, 40)
    scores = {"small": values, "large": values + gain}
    run = synthetic.write_run(tmp_path / "run", SIZES, {synthetic.MAIN: scores}, design="one_at_a_time")
    record_cuts(run, {"small": CUT["small"], "large": large})
    assert "disadvantage" not in " ".join(recommendation(compare(run.path)).reasons)


def test_where_all_was_read_nothing_is_said(synthetic: ModuleType, tmp_path: Path) -> None:
    values = np.linspace(0.2, 0.9, 40)
    run = synthetic.write_run(tmp_path / "run", SIZES, {synthetic.MAIN: {"small": values, "large": values - 0.1}})
    record_cuts(run, dict.fromkeys(SIZES, Truncation(256, 9, 0, 900, 300, 0)))
    found = compare(run.path)
    assert truncation_sentences(found) == [] and "Not read" not in topics(found)
    assert "cut at" not in to_html(found)


def test_what_a_stage_did_not_read_of_questions_is_told(synthetic: ModuleType, ran: Any) -> None:
    path = ran.variant_dir("large") / "traces.jsonl"
    cut = [
        replace(trace, stages=(*trace.stages, StageRecord("rerank", truncated_tokens=100 * (place < 10))))
        for place, trace in enumerate(read_traces(path))
    ]
    write_traces(path, cut)
    found = compare(ran.path)
    assert found.truncation["large"].mark == (
        "66% of chunks cut at 256 tokens; reranking: not all read on 10 of 40 questions"
    )
    assert (
        "B: Reranking: its model did not read all of its input: 100 tokens on average, of 10 of 40 questions."
        in truncation_sentences(found)
    )


def test_questions_that_were_cut_are_told_apart_from_the_chunks_that_they_found() -> None:
    def trace(tokens: int, *chunks: str) -> Trace:
        hits = tuple(Hit(name, name, "a.txt", None, 0, 1, 1.0) for name in chunks)
        stages = (StageRecord("search_dense", truncated_tokens=tokens), StageRecord("merge"))
        return Trace(Question("q", "?"), hits={"dense": hits}, ranked=hits, stages=stages)

    children = TruncatedChildren(CUT["large"], {"a": 30, "b": 5})
    record = TruncationRecord.of("m", children, [trace(35, "a", "b"), trace(42, "c", "a"), trace(0, "c")], 1)
    assert (record.given, record.given_cut) == (3, 1)
    assert (record.asked, record.asked_cut, record.asked_tokens) == (3, 1, 12)


@pytest.mark.parametrize("damage", [{"model": "m"}, {"chunks": 3}, [1], {"chunks": {"limit": "x"}}])
def test_a_record_that_is_damaged_is_named(ran: Any, damage: Any) -> None:
    path = ran.variant_dir("large") / RECORD_FILE
    path.write_text(json.dumps({"unread": damage}))
    with pytest.raises(DamagedFile, match="record.json"):
        ran.recorded("large", *TRUNCATION)
    path.write_text("{}")
    assert ran.recorded("large", *TRUNCATION) is None


ANSWERS = "ragas.semantic_similarity"
WHY = "5 of 40 questions: no answer was asked for (35); 5 are answered, as `limits.answers` says"


def _with_few_answers(wide: Comparison) -> Comparison:
    """Return the run as it would be if only its first five questions were answered."""
    few = wide.run.questions[:5]
    is_answer = (wide.summary["metric"] == ANSWERS) & (wide.summary["scored"] > 0)
    summary = wide.summary.copy()
    summary.loc[is_answer, ["asked", "scored", "not_applicable"]] = [40, 5, 35]
    gap = wide.gaps.head(1).assign(variant_id="baseline", metric=ANSWERS, status="not_applicable", count=35)
    gaps = gap.assign(reason="no answer was asked for")
    return replace(wide, run=replace(wide.run, answered=few), summary=summary, gaps=gaps)


def test_a_metric_on_few_of_the_questions_stands_apart_with_the_reason(wide: Comparison) -> None:
    assert sparse_metrics(wide) == {}
    few = _with_few_answers(wide)
    assert sparse_metrics(few) == {ANSWERS: WHY}
    page = to_html(few)
    first, apart = page.index('<table class="scores">'), page.index('<table class="scores pale">')
    assert ANSWERS.replace(".", ".<wbr>") not in page[first : page.index("</table>", first)].replace("_<wbr>", "_")
    assert "no answer was asked for (35); 5 are answered, as <code>limits.answers</code> says." in page[first:apart]
    assert "Measured on few of the questions:\n\n- ragas.semantic\\_similarity: 5 of 40" in to_markdown(few)


def test_the_main_metric_never_stands_apart_and_metrics_share_a_reason(wide: Comparison) -> None:
    few = _with_few_answers(wide)
    turned = replace(few, quality_metrics=(ANSWERS, *(m for m in few.quality_metrics if m != ANSWERS)))
    assert ANSWERS not in sparse_metrics(turned)
    assert sparse_metric_sentences({"a": WHY, "b": WHY}) == [f"a, b: {WHY}."]
