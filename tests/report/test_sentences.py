"""Sentences against the numbers beside them, over runs of every design, size and strength of effect."""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab._kit.wording import MINUS
from rag_lab.comparison.across import compare_runs
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import conclusions, study_sentences
from rag_lab.comparison.findings.recommendation import recommendation
from rag_lab.comparison.findings.verdict_sentences import module_rows
from rag_lab.config import PipelineConfig
from rag_lab.report.compare_text import compare_screen, compare_text
from rag_lab.report.page.report_page import to_html
from rag_lab.report.shown_comparison import compare
from rag_lab.statistics.randomization import ALPHA

_NUMBER = rf"[+{MINUS}]?[\d.,]+"
_SEEN = rf"{_NUMBER} \[({_NUMBER}) to ({_NUMBER})\]"
METRICS = ("retrieval.ndcg@5", "retrieval.mrr@5", "citations.precision")
CLASSES = ("fuzzy", "specific", "procedural")


@st.composite
def scores(draw: st.DrawFn) -> dict[str, Any]:
    """Return plans and scores of a run: a grid or a HyDE study, with effects of any size, and failures."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, repeats = draw(st.sampled_from([2, 4, 7, 12, 40])), draw(st.sampled_from([1, 1, 2]))
    effect, noise = draw(st.sampled_from([0.0, 0.02, 0.1])), draw(st.sampled_from([0.0, 0.02, 0.1]))
    touched = random.random(n) < draw(st.sampled_from([0.1, 0.5, 1.0]))
    plans: dict[str, dict[str, Any]] = draw(
        st.sampled_from(
            [
                {f"{h}-{r}": {"query.hyde": h, "rerank.name": r} for h in ("none", "always") for r in ("none", "x")},
                {name: {"query.hyde": name} for name in ("none", "always", "classified")},
                {name: {"query.hyde": name} for name in ("classified", "none", "always")},
            ]
        )
    )
    plans = {
        name: {key: "query_likelihood" if value == "x" else value for key, value in changes.items()}
        for name, changes in plans.items()
    }
    found = {}
    for metric in METRICS:
        base = random.uniform(0.2, 0.6, n)
        found[metric] = {
            name: base + touched * effect * index + random.normal(0, noise, (repeats, n))
            for index, name in enumerate(plans)
        }
        if draw(st.booleans()):
            found[metric][list(plans)[-1]][:, 0] = np.nan
    classes = [CLASSES[int(i)] for i in random.integers(0, len(CLASSES), n)] if draw(st.booleans()) else []
    base = PipelineConfig().override({"rerank.name": "none"} | next(iter(plans.values())))
    return {"plans": plans, "metrics": found, "labelled": classes, "predicted": classes[::-1], "base": base}


@pytest.mark.slow
@given(scores(), st.sampled_from(["max_t", "bh", "none"]))
@settings(max_examples=12, deadline=None)
def test_no_sentence_contradicts_the_numbers_beside_it(
    synthetic: ModuleType, made: dict[str, Any], correction: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        comparison = compare(synthetic.write_run(Path(folder) / "run", **made).path, correction=correction)
        for row in _rows(comparison):
            _hold_row(row)
        _hold_one_answer(comparison)
        for sentence in _sentences(comparison):
            _hold(sentence)
        _hold_advice(comparison)


def _hold_advice(comparison: Comparison) -> None:
    """What is recommended over the baseline is better than it somewhere, and what is said to raise is shown to."""
    found, metric = recommendation(comparison), comparison.main_metric or ""
    if found.variant_id not in (None, comparison.run.baseline):
        words = [row.word for row in module_rows(comparison)]
        assert comparison.reliable(found.variant_id, metric) > 0 or "better" in words
    elif found.variant_id is not None:
        assert not any(comparison.reliable(plan.variant_id, metric) > 0 for plan in comparison.variants)
    for row in module_rows(comparison):
        if row.word in ("better", "worse"):
            assert row.low is not None and row.high is not None
        elif row.low is not None and row.high is not None and not row.low <= 0 <= row.high:
            assert row.why, row


def _rows(comparison: Comparison) -> Iterator[dict[Any, Any]]:
    yield from comparison.differences.to_dict("records")
    yield from comparison.effects.table.to_dict("records")
    for study in comparison.routing:
        yield from study.by_class.to_dict("records")


def _sentences(comparison: Comparison) -> Iterator[str]:
    yield from conclusions(comparison)
    for metric in comparison.quality_metrics:
        yield from comparison.effects.sentences(metric)
    advice = recommendation(comparison)
    yield from (advice.headline, *advice.reasons)
    for study in comparison.routing:
        yield from study_sentences(study)
        yield from study.learned.sentences() if study.learned else ()


def _hold_row(row: dict[Any, Any]) -> None:
    """A difference is called one, or it is said why not wherever its interval or its p-value alone looks like one."""
    low, high, alone, corrected = (row[name] for name in ("low", "high", "p_value", "p_corrected"))
    if row["verdict"] in ("better", "worse"):
        assert corrected < ALPHA and not row["doubt"]
        return
    looks_so = (low is not None and (low > 0 or high < 0)) or (alone is not None and alone < ALPHA)
    assert bool(row["doubt"]) is looks_so, row
    if looks_so and "noise floor" not in row["verdict"]:
        assert row["doubt"] in row["verdict"]


def _hold_one_answer(comparison: Comparison) -> None:
    """A variant against the baseline has one answer, as a difference, as an effect and as an arm of the routing."""
    base = comparison.run.config(comparison.run.baseline)
    assert base is not None
    variants = {tuple(plan.changes.items()): plan.variant_id for plan in comparison.variants}
    shown = []
    for row in comparison.effects.table.to_dict("records"):
        alone = row["kind"] == "toggle" or base.flat().get(row["other"]) == row["other_level"] != ""
        variant = variants.get(((row["factor"], row["level"]),)) if alone and row["kind"] != "interaction" else None
        told = comparison.difference(variant, row["metric"]) if variant else None
        if told and told["n"] == row["n"]:
            shown.append((row, told))
    for study in comparison.routing:
        for row in study.by_class[study.by_class["query_class"] == "all"].to_dict("records"):
            if study.arms[row["against"]] == comparison.run.baseline:
                shown.append((row, comparison.difference(study.arms[row["arm"]], study.metric) or {}))
    assert shown
    for row, told in shown:
        for name in ("low", "high", "p_value", "p_corrected", "verdict", "doubt"):
            assert row[name] == told[name], (name, row, told)


def _hold(sentence: str) -> None:
    assert "nan" not in sentence.lower() and "None" not in sentence, sentence
    for ends in re.findall(rf"nothing that the data can tell from chance \({_SEEN}\)", sentence):
        assert _holds_zero(ends), sentence
    for ends in re.findall(rf"these two differ the data cannot tell \({_SEEN}\)", sentence):
        assert _holds_zero(ends), sentence
    if sentence.startswith("The data cannot tell from chance, in "):
        for ends in re.findall(_SEEN, sentence):
            assert _holds_zero(ends), sentence
    for ends in re.findall(rf"{_SEEN} in .*?; the data cannot tell: (?:about|more than|wins)", sentence):
        assert _holds_zero(ends), sentence
    for said, above in (("a", True), ("no", False)):
        for ends in re.findall(rf"change \S+ by {_SEEN} against [^:]*: {said} rule learned from", sentence):
            assert (_value(ends[0]) >= 0) if above else (_value(ends[1]) <= 0), sentence
    assert (
        "from these questions pays." not in sentence
        or "cannot tell whether a rule" not in sentence
        or _holds_zero(re.findall(rf"by {_SEEN}", sentence)[0])
    ), sentence


def _holds_zero(ends: tuple[str, str]) -> bool:
    return _value(ends[0]) <= 0 <= _value(ends[1])


def _value(text: str) -> float:
    return float(text.replace(MINUS, "-").replace(",", ""))


def test_what_only_the_correction_takes_away_is_told_so(synthetic: ModuleType, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    base = random.uniform(0.3, 0.6, 60)
    plans = {"base": {}} | {f"v{number}": {"retrieval.base_k": 21 + number} for number in range(12)}
    values = {name: base + random.normal(0, 0.05, 60) for name in plans} | {"base": base}
    noise = random.normal(0, 1, 60)
    values["v0"] = base - 0.017 + 0.05 * (noise - noise.mean()) / noise.std()
    found = compare(synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values}).path)
    row = found.difference("v0", synthetic.MAIN)
    assert row is not None and row["high"] < 0 and row["p_value"] < ALPHA <= row["p_corrected"]
    because = "(among 12 comparisons some look like one by chance, corrected p = "
    (told,) = [one for one in conclusions(found) if one.startswith("Looks like a difference in ")]
    assert re.search(rf", but is no finding: B \(v0\) {_SEEN} {re.escape(because)}0\.\d+\)\.", told)
    (unsettled,) = [one for one in conclusions(found) if one.startswith("The data cannot tell from chance")]
    assert "C (v1)" in unsettled and "(v0)" not in unsettled
    toggle = found.effects.sentences(synthetic.MAIN)[0]
    assert re.search(rf"shows {_SEEN}, which is no finding {re.escape(because)}", toggle)


@pytest.mark.parametrize("n", [3, 5])
def test_too_few_questions_that_differ_are_told_so(synthetic: ModuleType, tmp_path: Path, n: int) -> None:
    base = np.full(30, 0.4)
    better = base + np.where(np.arange(30) < n, 0.3 + 0.01 * np.arange(30), 0)
    values = {"none": base, "always": better}
    plans = {name: {synthetic.HYDE: name} for name in values}
    found = compare(synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values}).path)
    row = found.difference("always", synthetic.MAIN)
    assert row is not None and row["verdict"].startswith("the data cannot tell: ")
    if row["low"] > 0:
        assert f"only {n} questions differ, and with fewer than 6 no test can reach p < 0.05" in row["verdict"]


def test_a_cut_off_deeper_than_the_ranking_stands_beside_the_metric(synthetic: ModuleType, tmp_path: Path) -> None:
    values = {"ten": np.linspace(0, 1, 12), "four": np.linspace(0, 1, 12)}
    plans = {"ten": {}, "four": {"rerank.final_k": 2}}
    run = synthetic.write_run(tmp_path / "run", plans, {"retrieval.recall@10": values})
    sentence = (
        "Metric retrieval.recall@10 looks at 10 ranks, but a ranking holds at most 4 (2 x rerank.final_k) in B four: "
        "what would stand below counts as not found. Variants of which it sees different numbers of ranks are not "
        "compared in it."
    )
    found = compare(run.path)
    assert sentence in conclusions(found) and sentence in to_html(found)
    assert "retrieval.recall@10 (some rankings hold 4)" in found.to_markdown()
    assert found.to_markdown().count("12/12, over 4 ranks |") == to_html(found).count("over 4 ranks</span>") == 1
    printed = compare_text(run.path)
    assert sentence in printed and printed.count("retrieval.recall@10 (over 4 ranks)") == 1
    assert compare_screen(run.path).count("] over 4") == 1
    assert "4 (2 x rerank.final_k) in run-1: B four and run-2: B four: what" in compare_text(run.path, run.path)


def test_why_questions_were_left_out_stands_first(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.write_run(tmp_path / "run", {"a": {}}, {synthetic.MAIN: {"a": np.linspace(0, 1, 12)}})
    replace(run, left_out={"beyond the limit": 8}).write_plan()
    told = "12 of 20 questions are asked. Left out: 8 beyond the limit."
    found = compare(run.path)
    assert told in to_html(found) and told in found.to_markdown() and told in compare_text(run.path)


def test_passages_of_different_size_are_told_in_a_run_and_across_two(synthetic: ModuleType, tmp_path: Path) -> None:
    values = {"pages": np.linspace(0, 1, 12)}
    one = synthetic.write_run(tmp_path / "one", {"pages": {}}, {"retrieval.recall@5": values})
    other = synthetic.write_run(tmp_path / "two", {"pages": {"corpus.parents": "none"}}, {"retrieval.recall@5": values})
    plans = {"pages": {}, "children": {"corpus.parents": "none"}}
    both = synthetic.write_run(
        tmp_path / "both", plans, {"retrieval.recall@5": {"pages": values["pages"], "children": values["pages"]}}
    )
    told = "At the same rank the variants read different amounts of text"
    assert not any(told in one for one in conclusions(compare(one.path)))
    (sentence,) = (one for one in conclusions(compare(both.path)) if told in one)
    assert "pages in A pages; children of 800 characters in B children" in sentence
    assert any(told in one for one in compare_runs(one.path, other.path).sentences)


@pytest.mark.parametrize(
    ("clusters", "sentence"),
    [
        ("document", "11 of 12 questions are in 5 clusters (document)"),
        ("tag:zzz", "No question is in a cluster (tag:zzz)"),
    ],
)
def test_clusters_and_a_rule_that_matches_nothing_are_in_every_report(
    build: ModuleType, tmp_path: Path, clusters: str, sentence: str
) -> None:
    run = replace(build.build_run(tmp_path / "run"), clusters=clusters)
    run.write_plan()
    found = compare(run.path)
    texts = (found.to_markdown(), to_html(found), found._repr_html_(), " ".join(conclusions(found)))
    assert all(sentence in text and "0 clusters" not in text for text in texts)
    assert ("1 other stands alone" in texts[0]) is (clusters == "document")
