from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rag_lab.comparison.advice.module_rows import module_rows
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.read_comparison import read_comparison, with_answers
from rag_lab.statistics.scales import Scale


def test_a_grid_has_a_row_a_main_effect_with_what_it_costs(grid: Comparison) -> None:
    rows = {row.name: row for row in module_rows(grid)}
    table = grid.effects.table[grid.effects.table["kind"] == "main"]
    assert rows.keys() == {"rerank.name = query_likelihood", "query.hyde = always"} and len(table) == 2
    for effect in table.to_dict("records"):
        row = rows[f"{effect['factor']} = {effect['level']}"]
        assert (row.effect, row.low, row.high, row.n) == tuple(effect[k] for k in ("effect", "low", "high", "n"))
        assert (row.word, row.against, row.price.signed) == ("better", "none", "about the same")


def test_other_designs_have_a_row_a_variant_the_best_first_and_the_unscored_last(wide: Comparison) -> None:
    rows = module_rows(wide)
    assert [row.word for row in rows] == ["better", "better", "cannot tell", "cannot tell", "failed"]
    assert [row.effect for row in rows[:2]] == sorted((row.effect or 0 for row in rows[:2]), reverse=True)
    assert rows[-1].effect is None and "is not on this machine" in rows[-1].why
    assert {row.variant_id for row in rows} == {plan.variant_id for plan in wide.variants[1:]}
    assert rows[0].price.seconds is not None and rows[0].price.seconds > 5


def test_what_only_the_correction_takes_back_is_undecided_and_says_so(promising: Comparison) -> None:
    row = next(row for row in module_rows(promising) if row.name == "v0")
    assert row.word == "cannot tell"
    assert row.why.startswith("alone it would count as better; corrected p = ")


@pytest.mark.parametrize(("shift", "word"), [(0.1, "worse"), (-0.1, "better")])
def test_of_a_metric_in_which_less_is_better_less_is_better(
    synthetic: ModuleType, tmp_path: Path, shift: float, word: str
) -> None:
    base = np.linspace(0.3, 0.6, 30)
    values = {"a": base, "b": base + shift + 0.001 * (np.arange(30) % 3)}
    plans = {"a": {}, "b": {"rerank.final_k": 3}}
    found = read_comparison(synthetic.write_run(tmp_path / "run", plans, {"retrieval.ndcg@5": values}).path)
    scales = {"retrieval.ndcg@5": Scale(0.0, 1.0, higher_is_better=False)}
    turned = with_answers(replace(found, scales=scales))
    assert [row.word for row in module_rows(turned)] == [word]


def test_a_metric_that_reads_nothing_that_changed_is_called_blind(synthetic: ModuleType, tmp_path: Path) -> None:
    base = np.linspace(0.3, 0.6, 30)
    plans = {"a": {}, "b": {"answer.context_tokens": 250}}
    run = synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: {"a": base, "b": base}})
    (row,) = module_rows(read_comparison(run.path))
    assert (row.word, row.why) == ("no difference", "the metric is blind to it: it reads the ranking")
