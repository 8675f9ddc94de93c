"""The section on lost evidence: its numbers lead to their questions, and without labels it says why it is empty."""

import json
import re

import pytest
from html_page import Page
from run_folder_fixture import build_unlabelled

from rag_lab.comparison.comparison import read_comparison
from rag_lab.comparison.findings.evidence_sentences import NOTHING
from rag_lab.report.page.report_page import overview_html, to_html


def section(html):
    return html[html.index('id="evidence"') :].partition("</section>")[0]


def test_each_count_leads_to_the_questions_behind_it(wide):
    html = to_html(wide)
    Page(html)
    (values,) = re.findall(r'<script type="application/json" id="values">(.*?)</script>', html)
    data, asked = json.loads(values), list(wide.asked)
    options = re.findall(
        r'<option value="(\w+)">', html[html.index('<select name="evidence">') :].split("</select>")[0]
    )
    assert tuple(options) == wide.evidence.states
    table = wide.evidence.items
    for variant, state in table[["variant_id", "state"]].drop_duplicates().itertuples(index=False):
        code = wide.codes[variant]
        assert f'data-words="variant={code}&amp;evidence={state}"' in section(html)
        place = data["variants"].index(code)
        shown = {asked[i] for i, row in enumerate(data["evidence"]) if row[place] & (1 << options.index(state))}
        assert shown == set(table[(table["variant_id"] == variant) & (table["state"] == state)]["question_id"])


def test_nothing_leads_nowhere_and_the_figure_stands_beside_its_table(wide):
    html = section(to_html(wide))
    assert "Where each labelled piece of evidence ended" in html and "<svg" in html
    assert ">0</td>" in html and not re.search(r'evidence=\w+">0</a>', html)
    assert "Evidence that ended elsewhere" in html and "by query class" in html
    assert "no answer" not in section(to_html(wide)).split("<table")[1]


def test_a_notebook_shows_the_section_without_links(wide):
    html = overview_html(wide)
    assert "Where evidence is lost" in html and "lost in the budget" in html
    assert "data-words" not in html


def test_without_labelled_evidence_the_page_says_why(grid):
    html = section(to_html(grid))
    assert NOTHING in html and "<table" not in html and "<svg" not in html
    assert 'name="evidence"' not in to_html(grid)
    assert NOTHING in overview_html(grid)


@pytest.mark.parametrize("variants", [1, 4])
def test_a_run_without_any_label_has_no_section(tmp_path, variants):
    found = read_comparison(build_unlabelled(tmp_path / "run", 4, variants).path)
    assert 'id="evidence"' not in to_html(found) and "Where evidence is lost" not in overview_html(found)
