import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.report.page.report_page import to_html
from rag_lab.report.score_tables import effect_tables
from rag_lab.report.sections import draw_effects
from rag_lab.report.shown_comparison import compare


def test_a_grid_says_that_hyde_adds_alone_and_nothing_beside_the_reranker(
    grid: Comparison, synthetic: ModuleType
) -> None:
    told = [one for one in grid.effects.sentences(synthetic.MAIN) if "while" in one]
    assert len(told) == 1
    way = re.search(r"query.hyde=always (.*?) while rerank.name=none, and (.*?) once rerank.name=query_like", told[0])
    assert way is not None and way[1].startswith("adds +0.0")
    assert way[2].startswith("does nothing that the data can tell from chance")
    assert "is reliable" in told[0]
    assert grid.effects.kind == "grid"
    assert told[0] in conclusions(grid)


def test_effects_stand_in_the_page_and_in_markdown_as_text_and_figure(grid: Comparison) -> None:
    page, markdown = to_html(grid), grid.to_markdown()
    assert [title for title, _ in draw_effects(grid)] == [
        "The changes one by one, added up, and all together",
        f"Effects on {grid.main_metric}",
        "The effect of rerank.name at each level of query.hyde",
        "The effect of query.hyde at each level of rerank.name",
    ]
    assert 'id="effects"' in page and 'aria-label="The effect of rerank.name at each level' in page
    for sentence in grid.effects.sentences(str(grid.main_metric)):
        assert sentence in page.replace("&#39;", "'")
        assert sentence.replace("[", "\\[").replace("]", "\\]").replace("_", "\\_") in markdown
    kinds = [table.title.split(": ")[1] for table in effect_tables(grid.effects, str(grid.main_metric))]
    assert kinds == ["main effects", "interactions", "each effect at each level beside it"]
    assert "main effects" in grid.to_latex()


def test_one_factor_designs_tell_each_toggle_with_the_numbers_of_the_comparison(routed: Comparison) -> None:
    found = routed.effects
    assert found.kind == "one_factor" and "One module was changed at a time" in found.note
    toggles = found.table.set_index("level")["effect"]
    for level in ("always", "classified"):
        row = routed.difference(level, str(routed.main_metric))
        assert row is not None and toggles[level] == row["difference"]
    assert effect_tables(found, str(routed.main_metric)) == []


def test_a_grid_with_a_hole_falls_back_to_single_changes_and_says_so(synthetic: ModuleType, tmp_path: Path) -> None:
    values = synthetic.factorial()
    del values["none-query_likelihood"]
    run = synthetic.write_run(tmp_path / "run", synthetic.GRID, {synthetic.MAIN: values}, design="grid")
    found = compare(run.path).effects
    assert found.kind == "other" and "lacks 1 of 4 combinations" in found.note
    assert "Without scores and left out: B none-query_likelihood" in found.note
    assert set(found.table["kind"]) == {"toggle"}


def test_a_fraction_tells_main_effects_and_what_they_are_confounded_with(synthetic: ModuleType, tmp_path: Path) -> None:
    parts = {"query.hyde": ("none", "always"), "rerank.name": ("none", "query_likelihood"), "rerank.final_k": (5, 3)}
    runs = [(a, b, a ^ b) for a in (0, 1) for b in (0, 1)]
    plans = {str(run): {key: parts[key][level] for key, level in zip(parts, run, strict=True)} for run in runs}
    random = np.random.default_rng(0)
    values = {str(run): 0.3 + 0.2 * run[0] + random.normal(0, 0.02, 40) for run in runs}
    run = synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values}, design="fractional")
    comparison = compare(run.path)
    assert comparison.effects.kind == "fraction" and set(comparison.effects.table["kind"]) == {"main"}
    confounded = (
        "The fraction, 4 of the 8 combinations, has resolution III: it confounds the main effect of rerank.name with "
        "rerank.final_k × query.hyde; of rerank.final_k with rerank.name × query.hyde; of query.hyde with "
    )
    assert comparison.effects.note.startswith(confounded)
    assert confounded in to_html(comparison) and confounded in comparison.to_markdown().replace("\\", "")
    assert "the effects that the fraction can tell" in to_html(comparison)


def test_whole_systems_side_by_side_have_no_effects_of_modules(synthetic: ModuleType, tmp_path: Path) -> None:
    parts = ("retrieval.base_k", "retrieval.hyde_k", "rerank.input_limit", "rerank.final_k")
    plans = {f"system{n}": dict.fromkeys(parts, n) for n in (51, 52, 53)}
    random = np.random.default_rng(0)
    values = {name: random.uniform(0, 1, 20) for name in plans}
    found = compare(synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values}).path).effects
    assert found.table.empty
    assert found.note == "The variants differ in several settings at once, so what each one adds cannot be told."


def test_noise_larger_than_an_effect_keeps_it_from_being_one(synthetic: ModuleType, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    base = random.uniform(0.3, 0.5, 40)
    noisy = np.stack([base + sign * 0.2 for sign in (1, -1)])
    values = {"none": noisy, "always": noisy + 0.015 + 0.001 * (np.arange(40) % 10)}
    plans = {name: {synthetic.HYDE: name} for name in values}
    found = compare(synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values}).path)
    row = found.effects.table.iloc[0]
    assert row["p_corrected"] < 0.05 and row["low"] > 0
    assert "below the noise floor" in row["verdict"]
    assert found.reliable("always", synthetic.MAIN) == 0
    assert "below the noise floor" in str(found.difference("always", synthetic.MAIN))


def test_the_sum_of_the_parts_is_that_of_single_changes_on_the_same_questions(grid: Comparison) -> None:
    found = grid.parts
    assert found is not None
    means = {name: {q: s.value for q, s in scores.items()} for name, scores in _scores(grid).items()}
    shared = set.intersection(*map(set, means.values()))
    mean = {name: sum(of[q] for q in shared) / len(shared) for name, of in means.items()}
    (first, second), both = (
        [v for v in means if len(_changes(grid, v)) == 1],
        next(v for v in means if len(_changes(grid, v)) == 2),
    )
    base = mean[grid.run.baseline]
    assert found.total == pytest.approx(mean[first] + mean[second] - 2 * base)
    assert found.together.mean == pytest.approx(mean[both] - base)
    assert found.gap.mean == pytest.approx(found.together.mean - found.total)
    assert found.gap.n == len(shared) and found.sentence.startswith("Added up, ")


def _changes(comparison: Comparison, variant: str) -> dict[str, object]:
    return next(plan.changes for plan in comparison.variants if plan.variant_id == variant)


def _scores(comparison: Comparison) -> dict[str, dict[str, object]]:
    rows = comparison.scores[
        (comparison.scores["metric"] == comparison.main_metric) & comparison.scores["value"].notna()
    ]
    return {v: {row.question_id: row for row in part.itertuples()} for v, part in rows.groupby("variant_id")}
