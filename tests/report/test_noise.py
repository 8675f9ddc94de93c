from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np

from rag_lab.report.compare import compare
from rag_lab.report.comparison import Comparison
from rag_lab.report.html import to_html
from rag_lab.report.noise import NOT_MEASURED, noise_sentences, noise_table
from rag_lab.statistics.noise import noise, noise_floor


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


def test_one_repeat_is_one_sentence(comparison: Comparison) -> None:
    assert comparison.noise == {} and noise_sentences(comparison) == [NOT_MEASURED]
    page = to_html(comparison)
    assert "The noise was not measured, since every question was asked once" in page
    assert "<code>repeats: 2</code>" in page
