import math
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rag_lab.comparison.comparison import Comparison, with_answers
from rag_lab.comparison.findings.conclusions import conclusions, study_conclusion, study_sentences
from rag_lab.config import PipelineConfig
from rag_lab.report.page.report_page import to_html, write_report
from rag_lab.report.shown_comparison import compare


def test_the_study_finds_its_arms_classes_ceiling_and_mistakes(routed: Comparison) -> None:
    (study,) = routed.routing
    assert list(study.arms) == ["none", "always", "classified"]
    assert study.where == "" and study.column == "labelled"
    rows = study.by_class.set_index(["query_class", "arm", "against"])["verdict"]
    assert rows["fuzzy", "always", "none"] == "better" and rows["specific", "always", "none"] == "worse"
    assert study.class_ceiling is not None and study.class_ceiling.low > 0
    assert study.confusion is not None and study.confusion.to_numpy().trace() == 64
    assert study.mistakes is not None and study.mistakes.iloc[0]["cost"] > 0


def test_its_sentences_quote_the_numbers_with_intervals(routed: Comparison) -> None:
    (study,) = routed.routing
    told = " ".join(study_sentences(study))
    assert "The pipeline gave 64 of 80 labelled questions the dataset's class (80%)" in told
    assert "its mistakes sent 16 of 80 to another arm, which cost 0.0" in told
    assert "By class, reliable differences: specific" in told
    assert study_conclusion(study) in conclusions(routed)
    assert "HyDE for fuzzy" in study_conclusion(
        study
    ) and "a rule learned from these questions pays" in study_conclusion(study)


def test_the_learned_rule_is_a_file_that_a_user_can_adopt(routed: Comparison) -> None:
    page = write_report(routed.run.path)
    config = PipelineConfig.load(page.parent / "learned_class_to_hyde.yaml")
    assert config.query.hyde == "classified"
    assert [name for name, on in config.query.class_to_hyde.items() if on] == ["fuzzy"]
    text = page.read_text()
    assert "learned_class_to_hyde.yaml" in text and "class_to_hyde:" in text
    assert (
        "learned\\_class" in (page.parent / "report.md").read_text()
        or "learned_class" in (page.parent / "report.md").read_text()
    )


def test_a_grid_holds_a_study_for_each_setting_of_the_rest(grid: Comparison) -> None:
    alone, beside = grid.routing
    assert (alone.where, beside.where) == ("rerank.name=none", "rerank.name=query_likelihood")
    assert beside.file_name == "learned_class_to_hyde__rerank.name-query_likelihood.yaml"
    assert alone.learned is None and alone.confusion is None  # nobody gave a class
    assert "No question has a class" in study_conclusion(alone)
    assert 'id="routing"' in to_html(grid)


def test_without_hyde_arms_there_is_no_section(comparison: Comparison) -> None:
    assert comparison.routing == ()
    assert 'id="routing"' not in to_html(comparison)


def test_clusters_widen_the_intervals_of_the_study(routed: Comparison) -> None:
    together = {f"q{index}": str(index // 8) for index in range(80)}
    (study,), (clustered,) = routed.routing, with_answers(replace(routed, clusters=together)).routing
    rows = [one.by_class[one.by_class["query_class"] == "fuzzy"].iloc[0] for one in (study, clustered)]
    widths = [row["high"] - row["low"] for row in rows]
    assert widths[0] != widths[1] and all(math.isfinite(width) for width in widths)


@pytest.mark.parametrize("n", [1, 4])
def test_few_questions_give_sentences(synthetic: ModuleType, tmp_path: Path, n: int) -> None:
    values = {name: np.full(n, 0.5) for name in ("none", "always", "classified")}
    plans = {name: {synthetic.HYDE: name} for name in values}
    classes = ["fuzzy"] * n
    (study,) = compare(
        synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values}, classes, classes).path
    ).routing
    told = [*study_sentences(study), study_conclusion(study)]
    assert told and not any("nan" in sentence.lower() for sentence in told)


def test_the_study_has_the_answer_of_the_table_of_differences(routed: Comparison) -> None:
    (study,) = routed.routing
    whole = study.by_class[study.by_class["query_class"] == "all"]
    quoted = 0
    for row in whole.to_dict("records"):
        if row["against"] != "none":  # the baseline, against which the table of differences is
            continue
        told = routed.difference(row["arm"], study.metric)
        assert told is not None
        for name in ("n", "difference", "low", "high", "p_value", "p_corrected", "verdict", "doubt"):
            assert row[name] == told[name], name
        quoted += 1
    assert quoted == 2


def test_an_arm_that_is_the_baseline_is_told_as_the_table_tells_it(synthetic: ModuleType, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    plans = {name: {synthetic.HYDE: name} for name in ("classified", "none", "always")}
    values = {name: random.uniform(0.3, 0.6, 40) for name in plans}
    values["always"][:3] = np.nan  # what both arms have is more than what all arms have
    base = PipelineConfig().override({synthetic.HYDE: "classified"})
    made = compare(synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values}, base=base).path)
    (study,) = made.routing
    whole = study.by_class[study.by_class["query_class"] == "all"].set_index(["arm", "against"])
    row, told = whole.loc[("classified", "none")], made.difference("none", synthetic.MAIN)
    assert told is not None and row["n"] == told["n"] == 40
    assert (row["p_value"], row["p_corrected"]) == (told["p_value"], told["p_corrected"])
    assert row["difference"] == pytest.approx(row["mean"] - row["mean_against"])
    assert row["difference"] == pytest.approx(-told["difference"])
