import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from html_page import Page
from run_folder_fixture import build_unlabelled

from rag_lab._kit import wording as numbers
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.findings.trace_findings import NOTHING
from rag_lab.report.page.report_page import overview_html, question_html, to_html, write_report
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def html(comparison: Comparison) -> str:
    return to_html(comparison)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_tags_nest_and_ids_are_unique(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))
    targets = {attrs["href"][1:] for tag, attrs in page.tags if tag == "a" and (attrs["href"] or "").startswith("#")}
    assert targets <= set(page.ids)


def test_it_loads_nothing_from_anywhere(html: str, page: Page) -> None:
    loading = {"src", "srcset", "data", "poster", "action", "formaction", "background"}
    assert not [attrs for _, attrs in page.tags if loading & set(attrs)]
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "object", "embed", "base", "img")]
    hrefs = [attrs[name] or "" for _, attrs in page.tags for name in ("href", "xlink:href") if name in attrs]
    assert all(href.startswith(("#", "variants/")) for href in hrefs)
    assert "@import" not in html and "url(" not in re.sub(r"url\(#", "", html)
    policy = next(attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'")


def test_hostile_text_stays_text(build: ModuleType, html: str, page: Page) -> None:
    assert "<script>alert" not in html and "onerror=alert(1)>" not in html
    assert build.HOSTILE in "".join(page.text)
    assert [attrs for tag, attrs in page.tags if tag == "script"] == [
        {"type": "application/json", "id": "pairs"},
        {"type": "application/json", "id": "values"},
        {},
    ]


def test_every_question_and_variant_is_there(page: Page, comparison: Comparison) -> None:
    text = "".join(page.text)
    assert sum(attrs.get("class") == "q" for _, attrs in page.tags) == len(comparison.questions) == 12
    for row in comparison.questions.itertuples():
        assert row.question in text
    for plan in comparison.variants:
        assert plan.label in text
        assert {"href": f"variants/{plan.variant_id}/notebook.ipynb"} in [
            attrs for tag, attrs in page.tags if tag == "a"
        ]
    assert comparison.failed["rerank.name-cross_encoder"] in text
    assert "where this page was sent without it, their links lead nowhere" in text


def test_numbers_are_those_of_the_tables(page: Page, comparison: Comparison) -> None:
    text = " ".join("".join(page.text).split())
    for row in comparison.summary[comparison.summary["metric"].isin(comparison.quality_metrics)].itertuples():
        counts = f"{row.scored}/{row.asked} scored"
        between = numbers.interval(row.low, row.high)
        assert re.search(rf"{re.escape(numbers.plain(row.mean))} {re.escape(between)} {re.escape(counts)}", text)
    for row in comparison.differences.itertuples():
        assert f"{numbers.signed(row.difference)}{numbers.signed_interval(row.low, row.high)}{row.n}" in text


def test_failed_scores_show_count_bounds_and_reason(page: Page, comparison: Comparison) -> None:
    text = " ".join("".join(page.text).split())
    cell = comparison.cell("rerank.name-query_likelihood", "citations.precision")
    assert cell is not None and cell["failed"] == 1
    assert "11/12 scored, 1 failed" in text
    assert f"worst {cell['worst']:.3f}, best {cell['best']:.3f}" in text
    assert "no answer: the reply is no JSON object (1×)" in text


def test_figures_have_text_alternatives_and_follow_the_page(page: Page, html: str) -> None:
    figures = [attrs for tag, attrs in page.tags if tag == "svg" and attrs.get("aria-hidden") != "true"]
    assert len(figures) == 7
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in figures)
    assert "var(--ink)" in html and "#1f2a33" not in re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)


def test_tables_have_captions_and_scopes(page: Page) -> None:
    assert all("scope" in attrs for tag, attrs in page.tags if tag == "th")
    assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in page.tags}


def test_secrets_do_not_pass(build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "correct-horse-battery")
    run = build.build_run(tmp_path / "run", 2, 2)
    manifest = run.path / "manifest.json"
    leaks = "correct-horse-battery sk-abcdefghijklmnop1234 AIza" + "x" * 35 + " ?key=1234567890&x=1"
    manifest.write_text(manifest.read_text().replace("run it through OCR", leaks))
    written = write_report(run.path).read_text() + (run.path / "report.md").read_text()
    for secret in ("correct-horse", "sk-abc", "AIzax", "1234567890"):
        assert secret not in written
    assert "[hidden]" in written


def test_an_unfinished_run_says_so(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 3, 2)
    (run.path / "manifest.json").unlink()
    text = write_report(run.path).read_text()
    assert "This run is not finished" in text
    Page(text)


def test_nothing_but_failures_still_makes_a_page(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 3, 1)
    run.scores().iloc[:0].to_parquet(run.path / "scores.parquet")
    (run.variant_dir("baseline") / "traces.jsonl").unlink()
    page = Page(write_report(run.path).read_text())
    assert "No variant has scores" in " ".join(page.text)


def test_repeats_are_told_apart(build: ModuleType, tmp_path: Path) -> None:
    text = to_html(compare(build.build_run(tmp_path / "run", 3, 2, repeats=2).path))
    assert "A·1" in text and "A·2" in text and "2 repeats" in text


@pytest.mark.slow
def test_a_large_run_stays_small(build: ModuleType, tmp_path: Path) -> None:
    run: RunFolder = build.build_run(tmp_path / "run", 12, 12)
    size = write_report(run.path).stat().st_size
    assert size * 10 < 10_000_000  # 120 questions under 12 variants


def test_notebook_pieces_nest_too(comparison: Comparison) -> None:
    Page(overview_html(comparison))
    Page(comparison._repr_html_())
    for name in comparison.questions["question_id"]:
        Page(question_html(comparison, name))
    assert question_html(comparison, "nothing") == ""


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
