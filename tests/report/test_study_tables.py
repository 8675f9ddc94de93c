"""The table of fronts, and where it is shown."""

import numpy as np
import pytest
from html_page import Page
from synthetic_run import certain, priced

from rag_lab.comparison.findings.conclusions import front_sentences
from rag_lab.report.compare_text import compare_text
from rag_lab.report.page.report_page import overview_html, to_html, to_markdown
from rag_lab.report.sections import named_tables
from rag_lab.report.shown_comparison import compare
from rag_lab.report.study_tables import front_table, gain_table

LOSS = "ragas.noise_sensitivity"  # of which less is better


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return certain(tmp_path_factory.mktemp("certain") / "run")


def test_a_row_says_what_a_variant_takes_and_where_it_stands(planted):
    table = front_table(planted)
    fronts = ("front: seconds", "front: tokens", "front: dollars", "front: together")
    assert table.header == ("variant", "retrieval.ndcg@5", "seconds", "tokens", "dollars per 1,000", *fronts)
    good = f"{planted.cell('b', 'retrieval.ndcg@5')['mean']:.3f}"
    assert table.rows[1] == ("B b", good, "1.00", "1,000", "1.00", *["on (100%)"] * 4)
    assert table.rows[2][5:] == ("off (0%)",) * 4


@pytest.mark.slow
def test_the_front_stands_on_the_page_in_a_notebook_in_markdown_and_in_the_terminal(planted):
    page, section = to_html(planted), 'id="costs"'
    Page(page)
    shown = page[page.index(section) : page.index('id="classes"')]
    for sentence in front_sentences(planted):
        assert sentence in shown and sentence in overview_html(planted)
        assert sentence in to_markdown(planted).replace("\\", "")
    assert shown.count("<svg") == 3 and "Up and left is better" in shown and "on (100%)" in shown
    assert front_sentences(planted)[0] in compare_text(planted.run.path)
    assert "off (0%)" in compare_text(planted.run.path, only=["front"])


def test_where_costs_are_the_same_there_is_a_sentence_and_no_table(tmp_path):
    base = np.linspace(0, 1, 20)
    found = priced(tmp_path / "run", {"a": base, "b": base}, {"a": 0.1, "b": 0.1})
    assert named_tables(found)["front"][0].rows == () and "who is on the front" not in to_markdown(found)
    page = to_html(found)
    assert "All variants take about the same" in page[page.index('id="costs"') :] and 'id="front-seconds' not in page


def test_less_is_better_below(tmp_path):
    base = np.random.default_rng(0).uniform(0.4, 0.6, 30)
    found = priced(tmp_path / "run", {"a": base, "b": base - 0.3}, {"a": 0.1, "b": 1.0}, metric=LOSS)
    assert "Down and left is better" in to_html(found) and front_table(found).header[1].endswith("(lower is better)")


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
