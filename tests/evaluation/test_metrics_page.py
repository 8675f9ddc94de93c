from pathlib import Path

from rag_lab.evaluation.metrics_page import metrics_table
from rag_lab.evaluation.registry import metric_names

MEASURING = Path(__file__).parents[2] / "docs" / "measuring.md"


def test_the_documentation_s_table_is_the_registry_s():
    assert metrics_table() in MEASURING.read_text(encoding="utf-8")


def test_every_metric_has_a_row():
    rows = metrics_table().splitlines()[2:]
    assert sorted(row.split("`")[1] for row in rows) == metric_names()
