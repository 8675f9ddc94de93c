from __future__ import annotations

import io
from itertools import product

import numpy as np
import pandas as pd
import pytest
from all_effects import effects

from rag_lab.report.figures.effects_figure import forest_figure, interaction_figure

VALUES = {f"{a}{b}": {"query.hyde": a, "rerank.name": b} for a, b in product(["none", "always"], ["none", "$x$"])}


def table(value: float | None = None) -> pd.DataFrame:
    random = np.random.default_rng(0)
    rows = [
        {
            **{"variant_id": variant, "question_id": f"q{q}", "metric": "m", "reason": "", "status": "scored"},
            "value": random.random() if value is None else value,
        }
        for variant in VALUES
        for q in range(20)
    ]
    return effects(pd.DataFrame(rows), VALUES, "nonenone")


def test_the_forest_has_a_row_an_effect() -> None:
    axes = forest_figure(table(), "m").axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["query.hyde=always", r"rerank.name=\$x\$", r"query.hyde=always × rerank.name=\$x\$"]


def test_the_interaction_shows_every_level() -> None:
    axes = interaction_figure(table(), "m", "query.hyde", "rerank.name").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["none", r"\$x\$"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["always"]


@pytest.mark.parametrize("metric", ["m", "absent"])
def test_figures_can_be_drawn_of_anything(metric: str) -> None:
    for effects_table in (table(), table(0.5), table().iloc[:0]):
        for figure in (
            forest_figure(effects_table, metric),
            interaction_figure(effects_table, metric, "query.hyde", "rerank.name"),
        ):
            drawn = io.BytesIO()
            figure.savefig(drawn, format="svg")
            assert b"</svg>" in drawn.getvalue()
