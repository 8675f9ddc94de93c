import numpy as np
import pytest

from rag_lab.report.page.report_page import to_html
from rag_lab.report.shown_comparison import compare
from rag_lab.report.tables.gain_table import gain_table
from rag_lab.report.text.markdown import to_markdown

F1, CONTEXT = "answer.token_f1", "answer.context"
SHARES = {"base": 0.5, "closed": 0.0, "gold": 1.0, "quotes": 0.4}
PLANS = {"base": {}, "closed": {CONTEXT: "none"}, "gold": {CONTEXT: "gold"}, "quotes": {"answer.name": "llm"}}


@pytest.fixture(scope="module")
def found(synthetic, tmp_path_factory):
    floor = np.random.default_rng(0).uniform(0.0, 0.2, 40)
    values = {F1: {name: floor + share * 0.5 for name, share in SHARES.items()}}
    return compare(synthetic.write_run(tmp_path_factory.mktemp("gain") / "run", PLANS, values).path)


def test_a_row_has_the_bounds_the_mean_and_the_share(found):
    (row,) = gain_table(found).rows
    assert row[0].startswith("A base")
    assert row[1:3] == (F1, "40")
    assert row[-3:] == ("50%", "50% to 50%", "")
    floor, mean, ceiling = map(float, row[3:6])
    assert floor < mean < ceiling


def test_page_and_markdown_show_it_where_there_are_bounds(found, comparison):
    assert "What retrieval can bring" in to_html(found)
    assert "## What retrieval can bring" in to_markdown(found)
    assert "What retrieval can bring" not in to_html(comparison)
    assert "What retrieval can bring" not in to_markdown(comparison)


def test_without_the_other_bound_there_is_no_section_and_nothing_leads_to_one(synthetic, tmp_path):
    plans = {name: PLANS[name] for name in ("base", "closed")}
    values = {F1: {name: np.linspace(0.2, 0.6, 40) for name in plans}}
    found = compare(synthetic.write_run(tmp_path / "run", plans, values).path)
    assert found.gain and not gain_table(found).rows
    assert 'id="gain"' not in to_html(found)
    assert "#gain" not in to_html(found)
