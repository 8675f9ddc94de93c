from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rag_lab.comparison.comparison import Comparison
from rag_lab.report.page.report_page import to_html
from rag_lab.report.score_tables import bill_table, coverage_table, scores_tables
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import MANIFEST_FILE, read_json, write_json


def test_spent_stands_beside_estimated_and_is_no_provenance(synthetic, tmp_path):
    values = {synthetic.MAIN: {"base": np.linspace(0, 1, 5)}}
    run = synthetic.write_run(tmp_path / "run", {"base": {}}, values)
    spent = {"purpose": "generate", "calls_estimated": None, "calls_spent": 3, "minutes_spent": 1.5}
    other = {"purpose": "rerank", "calls_estimated": 0, "calls_spent": 0, "minutes_spent": 9.0}  # of an older run
    write_json(run.path / MANIFEST_FILE, read_json(run.path / MANIFEST_FILE) | {"spent": [spent, other]})
    found = compare(run.path)
    table = bill_table(found)
    rows = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert list(rows) == ["generate", "total"]
    assert (rows["total"]["calls spent"], rows["total"]["calls estimated"]) == ("3", "–")
    page = to_html(found)
    assert "Estimated and spent" in page
    assert "model calls took 1.5 minutes, side by side or not (no estimate was possible)" in page
    assert "spent: purpose" not in page and "<dt>spent</dt>" not in page


def test_an_unfinished_run_has_no_bill(comparison):
    assert bill_table(comparison).rows == ()
    assert "Estimated and spent" not in to_html(comparison)


PLANS = {"base": {}, "other": {"rerank.final_k": 3}}


def test_every_reason_is_counted_for_every_metric_and_variant(comparison: Comparison) -> None:
    table = coverage_table(comparison)
    rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    failed = next(row for row in rows if row["metric"] == "citations.precision" and row["failed"] == "1")
    assert failed["variants"] == "B" and failed["asked"] == "12" and failed["scored"] == "11"
    assert failed["reasons"] == "failed: no answer: the reply is no JSON object (1×)"
    worst, best = failed["worst to best mean"].split(" to ")
    assert float(worst) <= float(failed["mean"]) <= float(best)
    missing = next(row for row in rows if row["metric"] == "retrieval.ndcg@10")
    assert missing["variants"] == "all variants"
    assert "not applicable: the question has no evidence (1×)" in missing["reasons"]


def test_failing_on_the_hardest_questions_does_not_raise_a_variant(synthetic: ModuleType, tmp_path: Path) -> None:
    scores = np.linspace(0.0, 1.0, 20)
    failing = np.where(scores < 0.4, np.nan, scores)
    values = {synthetic.MAIN: {"base": scores, "other": failing}}
    found = compare(synthetic.write_run(tmp_path / "run", PLANS, values).path)
    assert list(found.ranking["variant_id"]) == ["base", "other"]
    cells = {name: found.cell(name, synthetic.MAIN) or {} for name in PLANS}
    assert cells["other"]["mean"] > cells["base"]["mean"]
    assert not found.reliable("other", synthetic.MAIN)
    order = scores_tables(found)["order"][0].rows
    assert [row[1] for row in order] == ["A base", "B other"] and order[1][-1] == "8"
    page = to_html(found)
    assert page.index('<b class="letter">A</b> base') < page.index('<b class="letter">B</b> other')
    assert f"worst {cells['other']['worst']:.3f}, best {cells['other']['best']:.3f}" in page


def test_the_bounds_are_those_of_the_metric_and_agree_with_the_order(synthetic: ModuleType, tmp_path: Path) -> None:
    half = np.arange(20) < 10
    columns = {"ragas.semantic_similarity": np.linspace(0.5, 0.9, 20), "cost.seconds": np.full(20, 0.3)}
    metrics = {name: {"base": one, "other": np.where(half, np.nan, one)} for name, one in columns.items()}
    found = compare(synthetic.write_run(tmp_path / "run", PLANS, metrics).path)
    table = coverage_table(found)
    column = table.header.index("worst to best mean")
    cosine = found.cell("other", "ragas.semantic_similarity") or {}
    assert cosine["worst"] == pytest.approx(found.ranking["ranked_by"].iloc[-1])
    assert cosine["best"] - cosine["worst"] == pytest.approx(1.0)  # half of the way from -1 to 1
    shown = {row[:2]: row[column] for row in table.rows}
    assert shown["ragas.semantic_similarity", "B"] == f"−{-cosine['worst']:.3f} to {cosine['best']:.3f}"
    assert shown["cost.seconds", "B"] == "– to 0.150" and shown["cost.seconds", "A"] == ""
    assert f"worst −{-cosine['worst']:.3f}, best {cosine['best']:.3f}" in to_html(found)


def test_without_failures_the_bounds_are_left_out(grid: Comparison) -> None:
    assert "worst to best mean" not in coverage_table(grid).header
    assert [row[1] for row in coverage_table(grid).rows] == ["all variants"]


def test_a_metric_without_a_known_worst_value_is_ranked_by_what_was_scored(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    values = {"own.metric": {"base": np.array([-3.0, 1.0]), "other": np.array([np.nan, 5.0])}}
    found = compare(synthetic.write_run(tmp_path / "run", PLANS, values).path)
    assert list(found.ranking["variant_id"]) == ["base", "other"]
