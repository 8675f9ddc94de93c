from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from html_page import Page
from synthetic_run import certain, priced

from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.findings.conclusions import front_sentences
from rag_lab.comparison.findings.trace_findings import NOTHING, baseline_sentence, evidence_sentences
from rag_lab.report.compare_text import compare_text, screen
from rag_lab.report.page.report_page import overview_html, to_html, to_markdown
from rag_lab.report.score_tables import bill_table, coverage_table, scores_tables
from rag_lab.report.sections import named_tables
from rag_lab.report.shown_comparison import compare
from rag_lab.report.study_tables import claims_table, evidence_tables, front_table, gain_table
from rag_lab.runs.run_folder import MANIFEST_FILE, Claim, read_json, write_json


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


TWO_PLANS = {"base": {}, "other": {"rerank.final_k": 3}}


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
    found = compare(synthetic.write_run(tmp_path / "run", TWO_PLANS, values).path)
    assert list(found.ranking["variant_id"]) == ["base", "other"]
    cells = {name: found.cell(name, synthetic.MAIN) or {} for name in TWO_PLANS}
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
    found = compare(synthetic.write_run(tmp_path / "run", TWO_PLANS, metrics).path)
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
    found = compare(synthetic.write_run(tmp_path / "run", TWO_PLANS, values).path)
    assert list(found.ranking["variant_id"]) == ["base", "other"]


def test_each_row_adds_up_and_states_in_which_nothing_ended_have_no_column(wide):
    table = evidence_tables(wide)[0]
    assert table.header[:2] == ("variant", "pieces") and "lost in selection" not in table.header
    assert len(table.rows) == len(wide.variants) - 1  # one failed
    for _, pieces, *counts in table.rows:
        assert sum(map(int, counts)) == int(pieces) == 36  # of 40 questions four have no evidence
    of_classes = [row[2:] for row in evidence_tables(wide)[2].rows if row[1] == table.rows[0][0]]
    assert [sum(map(int, column)) for column in zip(*of_classes, strict=True)] == list(map(int, table.rows[0][1:]))


def test_what_moved_takes_one_count_to_the_other(wide):
    header, (base, *others) = evidence_tables(wide)[0].header[2:], list(evidence_tables(wide)[0].rows)
    for other in others:
        moves = [row for row in evidence_tables(wide)[1].rows if row[0] == other[0]]
        for name, before, after in zip(header, base[2:], other[2:], strict=True):
            net = sum(int(n) * ((to == name) - (come == name)) for _, come, to, n in moves)
            assert int(before) + net == int(after)


def test_the_screen_has_one_sentence_and_the_markdown_a_section(wide, grid):
    told = " ".join(screen(wide).split())
    assert baseline_sentence(wide)[0] in told and "--table evidence" in told
    assert "## Where evidence is lost" in to_markdown(wide)
    assert evidence_sentences(grid) == [NOTHING] and baseline_sentence(grid) == []
    assert "evidence has every" not in screen(grid) and NOTHING in to_markdown(grid)
    assert [table.rows for table in named_tables(grid)["evidence"]] == [(), (), ()]


def test_a_sentence_says_which_budget_was_short(wide):
    told = next(sentence for sentence in evidence_sentences(wide) if "final_k" in sentence)
    for name, (cut, lost) in wide.evidence.cut.items():
        assert f"{wide.codes[name]} {cut} of {lost}" in told
    assert set(wide.evidence.cut) == {
        row["variant_id"] for row in wide.evidence.by_variant.to_dict("records") if row["budget"]
    }


def test_counts_above_a_thousand_are_written_in_groups(wide):
    found = wide.evidence
    many = replace(wide)
    many.__dict__["evidence"] = replace(found, items=found.items.loc[found.items.index.repeat(40)])
    assert evidence_tables(many)[0].rows[0][1] == "1,440"


LOSS = "ragas.noise_sensitivity"  # of which less is better


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return certain(tmp_path_factory.mktemp("certain") / "run")


def test_a_row_says_what_a_variant_takes_and_where_it_stands(planted):
    table = front_table(planted)
    fronts = ("front: seconds", "front: tokens", "front: dollars", "front: together")
    assert table.header == ("variant", "retrieval.ndcg@5", "seconds", "tokens", "dollars per 1,000", *fronts)
    good = f"{planted.cell('b', 'retrieval.ndcg@5')['mean']:.3f}"
    assert table.rows[1] == ("B b", good, "1.00", "1,000", "1.00", *["on (100%)"] * 4)
    assert table.rows[2][5:] == ("off (0%)",) * 4


@pytest.mark.slow
def test_the_front_stands_on_the_page_in_a_notebook_in_markdown_and_in_the_terminal(planted):
    page, section = to_html(planted), 'id="costs"'
    Page(page)
    shown = page[page.index(section) : page.index('id="classes"')]
    for sentence in front_sentences(planted):
        assert sentence in shown and sentence in overview_html(planted)
        assert sentence in to_markdown(planted).replace("\\", "")
    assert shown.count("<svg") == 3 and "Up and left is better" in shown and "on (100%)" in shown
    assert front_sentences(planted)[0] in compare_text(planted.run.path)
    assert "off (0%)" in compare_text(planted.run.path, only=["front"])


def test_where_costs_are_the_same_there_is_a_sentence_and_no_table(tmp_path):
    base = np.linspace(0, 1, 20)
    found = priced(tmp_path / "run", {"a": base, "b": base}, {"a": 0.1, "b": 0.1})
    assert named_tables(found)["front"][0].rows == () and "who is on the front" not in to_markdown(found)
    page = to_html(found)
    assert "All variants take about the same" in page[page.index('id="costs"') :] and 'id="front-seconds' not in page


def test_less_is_better_below(tmp_path):
    base = np.random.default_rng(0).uniform(0.4, 0.6, 30)
    found = priced(tmp_path / "run", {"a": base, "b": base - 0.3}, {"a": 0.1, "b": 1.0}, metric=LOSS)
    assert "Down and left is better" in to_html(found) and front_table(found).header[1].endswith("(lower is better)")


F1, CONTEXT = "answer.token_f1", "answer.context"
SHARES = {"base": 0.5, "closed": 0.0, "gold": 1.0, "quotes": 0.4}
PLANS = {"base": {}, "closed": {CONTEXT: "none"}, "gold": {CONTEXT: "gold"}, "quotes": {"answer.name": "llm"}}


@pytest.fixture(scope="module")
def found(synthetic, tmp_path_factory):
    floor = np.random.default_rng(0).uniform(0.0, 0.2, 40)
    values = {F1: {name: floor + share * 0.5 for name, share in SHARES.items()}}
    return compare(synthetic.write_run(tmp_path_factory.mktemp("gain") / "run", PLANS, values).path)


def test_a_row_has_the_bounds_the_mean_and_the_share(found):
    (row,) = gain_table(found).rows
    assert row[0].startswith("A base")
    assert row[1:3] == (F1, "40")
    assert row[-3:] == ("50%", "50% to 50%", "")
    floor, mean, ceiling = map(float, row[3:6])
    assert floor < mean < ceiling


def test_page_and_markdown_show_it_where_there_are_bounds(found, comparison):
    assert "What retrieval can bring" in to_html(found)
    assert "## What retrieval can bring" in to_markdown(found)
    assert "What retrieval can bring" not in to_html(comparison)
    assert "What retrieval can bring" not in to_markdown(comparison)


def test_without_the_other_bound_there_is_no_section_and_nothing_leads_to_one(synthetic, tmp_path):
    plans = {name: PLANS[name] for name in ("base", "closed")}
    values = {F1: {name: np.linspace(0.2, 0.6, 40) for name in plans}}
    found = compare(synthetic.write_run(tmp_path / "run", plans, values).path)
    assert found.gain and not gain_table(found).rows
    assert 'id="gain"' not in to_html(found)
    assert "#gain" not in to_html(found)


def test_a_published_figure_stands_next_to_ours(synthetic, tmp_path):
    values = {synthetic.MAIN: {"base": np.linspace(0, 1, 21), "other": np.full(21, 0.25)}}
    run = synthetic.write_run(tmp_path / "run", {"base": {}, "other": {"rerank.final_k": 3}}, values)
    figures = {"near": ("base", 0.505), "by chance": ("base", 0.45), "far": ("other", 0.9)}
    claims = tuple(Claim(paper, synthetic.MAIN, *figure, differs="stems") for paper, figure in figures.items())
    replace(run, claims=(*claims, Claim("of a metric that is not here", "retrieval.mrr@3", "base", 0.1))).write_plan()
    table = claims_table(read_comparison(run.path))
    rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    words = ["within 0.01", "no, but within chance", "no", "not measured"]
    assert [row["reproduced"] for row in rows] == words
    assert (rows[0]["figure"], rows[0]["here"], rows[0]["what differs"]) == ("0.505", "0.500", "stems")
    assert "Published figures" in to_html(read_comparison(run.path))
    assert "claims" in named_tables(read_comparison(run.path))
