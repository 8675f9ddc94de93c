from __future__ import annotations

import numpy as np

from rag_lab.report.page.report_page import to_html
from rag_lab.report.shown_comparison import compare
from rag_lab.report.tables.comparison_tables import bill_table
from rag_lab.runs.run_folder import MANIFEST_FILE, read_json, write_json


def test_spent_stands_beside_estimated_and_is_no_provenance(synthetic, tmp_path):
    values = {synthetic.MAIN: {"base": np.linspace(0, 1, 5)}}
    run = synthetic.write_run(tmp_path / "run", {"base": {}}, values)
    spent = {"purpose": "generate", "calls_estimated": None, "calls_spent": 3, "minutes_spent": 1.5}
    other = {"purpose": "rerank", "calls_estimated": 0, "calls_spent": 0, "minutes_spent": 9.0}  # of an older run
    write_json(run.path / MANIFEST_FILE, read_json(run.path / MANIFEST_FILE) | {"spent": [spent, other]})
    found = compare(run.path)
    table = bill_table(found)
    rows = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert list(rows) == ["generate", "total"]
    assert (rows["total"]["calls spent"], rows["total"]["calls estimated"]) == ("3", "–")
    page = to_html(found)
    assert "Estimated and spent" in page
    assert "minutes of calls, one after the other: ? estimated, 1.5 spent" in page
    assert "spent: purpose" not in page and "<dt>spent</dt>" not in page


def test_an_unfinished_run_has_no_bill(comparison):
    assert bill_table(comparison).rows == ()
    assert "Estimated and spent" not in to_html(comparison)
