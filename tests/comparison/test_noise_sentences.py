from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import numpy as np

from rag_lab.comparison.across import compare_runs
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.conclusions import NOT_MEASURED, noise_sentences
from rag_lab.report.page.report_page import to_html
from rag_lab.report.shown_comparison import compare
from rag_lab.report.tables.score_tables import noise_table
from rag_lab.statistics.noise_components import noise, noise_floor


def test_repeats_are_split_and_their_floor_stands_in_the_report(synthetic: ModuleType, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    questions = random.uniform(0.2, 0.8, 30)
    values = {name: questions + random.normal(0, 0.1, (3, 30)) for name in ("none", "always")}
    plans = {name: {synthetic.HYDE: name} for name in values}
    found = compare(synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values}).path)
    expected = noise(found.scores, synthetic.MAIN)
    floor = noise_floor(expected).value
    assert found.noise[synthetic.MAIN] == expected and floor is not None
    (row,) = noise_table(found).rows
    assert row[-1] == f"{floor:.3f}" and row[1].endswith("%") and row[3] == "–"
    page = to_html(found)
    assert noise_sentences(found)[0] in page and f"up to {floor:.3f}" in page
    assert "above the noise floor" in page


def test_the_table_of_differences_and_the_effect_of_a_pair_have_one_floor(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    none = 0.4 + random.normal(0, 0.25, (2, 60))
    always = np.where(np.arange(60) < 10, none + 0.12 + random.normal(0, 0.02, (2, 60)), np.nan)
    values = {"none": none, "always": always}
    plans = {name: {synthetic.HYDE: name} for name in values}
    run = synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values})
    found = compare(run.path)
    (effect,), (difference,) = found.effects.table["verdict"], found.differences["verdict"]
    floor = noise_floor(found.noise[synthetic.MAIN], 10).value
    assert effect == difference and f"is below the noise floor of {floor:.3f}" in difference
    later = shutil.copytree(run.path, tmp_path / "later")
    assert difference in set(compare_runs(run.path, later).differences["verdict"])


def test_one_repeat_is_one_sentence(comparison: Comparison) -> None:
    assert comparison.noise == {} and noise_sentences(comparison) == [NOT_MEASURED]
    page = to_html(comparison)
    assert "The noise was not measured, since every question was asked once" in page
    assert "<code>repeats: 2</code>" in page
