from rag_lab.evaluation.metrics_page import metrics_table
from rag_lab.evaluation.registry import metric_names


def test_every_metric_has_a_row():
    rows = metrics_table().splitlines()[2:]
    assert sorted(row.split("`")[1] for row in rows) == metric_names()
