"""Why answers are wrong, by the arms that read the labelled evidence, against the definition."""

from dataclasses import replace

import numpy as np

from rag_lab.records import Evidence, Passage
from rag_lab.report.page.report_page import to_html
from rag_lab.report.shown_comparison import compare
from rag_lab.report.study_tables import evidence_tables

F1, CONTEXT = "answer.token_f1", "answer.context"
PLANS = {"base": {}, "gold": {CONTEXT: "gold"}, "both": {CONTEXT: "gold_first"}}
#                  right  missing  crowded out  ignored  not scored alone
SCORES = {"base": [0.9, 0.1, 0.2, 0.0, 0.1], "gold": [0.9, 0.8, 0.9, 0.3, np.nan], "both": [0.9, 0.7, 0.4, 0.9, 0.9]}


def labelled(comparison):
    evidence = (Evidence("press.md", 1),)
    traces = {
        variant: [replace(one, question=replace(one.question, evidence=evidence)) for one in some]
        for variant, some in comparison.traces.items()
    }
    return replace(comparison, traces=traces)


def run(synthetic, path, names):
    return synthetic.write_run(
        path, {one: PLANS[one] for one in names}, {F1: {one: np.array(SCORES[one]) for one in names}}
    )


def test_each_wrong_answer_has_the_cause_that_the_arms_show(synthetic, tmp_path):
    found = labelled(compare(run(synthetic, tmp_path / "run", PLANS).path))
    assert (found.why_failed.metric, found.why_failed.middle) == (F1, 0.5)
    assert found.why_failed.causes == {
        ("base", "q1"): "missing", ("base", "q2"): "crowded out", ("base", "q3"): "ignored"
    }  # fmt: skip
    page = to_html(found)
    assert "Why answers are wrong" in page and "<dt>Why it is wrong</dt>" in page
    (why,) = (table for table in evidence_tables(found) if table.title == "Why answers are wrong")
    assert why.rows == (("A base", "3", "1", "1", "1"),)


def test_without_the_arm_of_both_what_reached_the_reader_was_crowded_out(synthetic, tmp_path):
    found = labelled(compare(run(synthetic, tmp_path / "run", ["base", "gold"]).path))
    assert found.why_failed.causes["base", "q1"] == "missing"
    passages = [replace(one, passages=(seen(),)) for one in found.traces["base"]]
    reached = replace(found, traces={**found.traces, "base": passages})
    assert reached.why_failed.causes["base", "q1"] == "crowded out"
    assert reached.why_failed.causes["base", "q3"] == "ignored"


def seen():
    return Passage(1, "press.md#p1", "press.md", 1, 0, 10, "opens at 290")


def test_nothing_is_known_without_the_evidence_alone_or_without_labels(synthetic, tmp_path):
    assert not labelled(compare(run(synthetic, tmp_path / "one", ["base", "both"]).path)).why_failed.causes
    assert not compare(run(synthetic, tmp_path / "two", PLANS).path).why_failed.causes
