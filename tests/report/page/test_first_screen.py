"""The first screen at a glance, on a phone, in the dark, by keyboard, without scripts; and the report on paper."""

from pathlib import Path
from types import ModuleType
from typing import Literal

import numpy as np
import pytest
from browser import Watched, axe_faults, browser, needs_browser, watch
from playwright.sync_api import expect
from pypdf import PdfReader
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.errors import RagLabError
from rag_lab.report.page import report_page
from rag_lab.report.page.report_page import overview_html, to_html, write_report
from rag_lab.report.page.templates import asset

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
OPEN_ALL = "document.querySelectorAll('details').forEach((one, i) => { one.open = i < 30; })"


def test_the_page_begins_with_what_to_use_and_reasons_come_below(wide: Comparison) -> None:
    for page in (to_html(wide), overview_html(wide)):
        order = ["B (rerank.name=query_likelihood) is better, at 5 times the price: it raises", "<dt>Cannot tell</dt>"]
        order += ["<dt>Answers</dt>", "<dt>Do next</dt>", "A margin, the largest loss", 'class="modules"']
        places = [page.index(part) for part in [*order, "17 questions better", 'class="scores"']]
        assert places == sorted(places)


def test_effects_wins_losses_and_classes_lead_to_the_questions_behind_them(wide: Comparison) -> None:
    page, metric = to_html(wide), "metric=retrieval.ndcg%4010"
    row = wide.difference("rerank.name-query_likelihood", "retrieval.ndcg@10") or {}
    assert (
        f'data-words="variant=B&amp;against=A&amp;{metric}&amp;order=changed"><b>+{row["difference"]:.3f}</b></a>'
        in page
    )
    assert f'data-words="variant=B&amp;against=A&amp;{metric}&amp;show=won&amp;order=changed">{row["wins"]}</a>' in page
    assert (
        f'data-words="variant=B&amp;against=A&amp;{metric}&amp;show=lost&amp;order=changed">{row["losses"]}</a>' in page
    )
    assert f'data-words="variant=B&amp;{metric}&amp;class=fuzzy">' in page
    assert "data-words" not in overview_html(wide)


def test_more_than_twelve_rows_fold(synthetic: ModuleType, tmp_path: Path) -> None:
    base = np.linspace(0.2, 0.6, 12)
    plans = {f"v{index}": {"rerank.final_k": 5 + index} for index in range(16)}
    run = synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: dict.fromkeys(plans, base)})
    page = overview_html(read_comparison(run.path))
    assert "<summary>3 more</summary>" in page and page.count('<td class="word no-difference">') == 15


@pytest.fixture(scope="module")
def address(grid: Comparison) -> str:
    return write_report(grid.run.path).as_uri()


@pytest.mark.slow
@needs_browser
def test_at_a_glance_on_a_phone_and_in_the_dark(wide: Comparison) -> None:
    with browser(height=800) as page:
        seen = watch(page)
        page.goto(write_report(wide.run.path).as_uri())
        for selector in ("h1", ".headline", "table.modules", "table.modules tr:last-child .price"):
            box = page.locator(selector).first.bounding_box()
            assert box is not None and 0 < box["y"] + box["height"] < 800, selector
        page.evaluate(OPEN_ALL)
        for width in (1280, 400):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                assert axe_faults(page) == [], (width, scheme)
    assert seen == Watched()


@pytest.mark.slow
@needs_browser
def test_by_keyboard_alone_one_skips_to_the_report_and_copies_the_configuration(address: str) -> None:
    with browser(height=800) as page:
        page.goto(address)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.url.endswith("#main")
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('.yaml summary')"):
                break
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        button = page.locator("button.copy")
        assert page.evaluate("document.activeElement.matches('button.copy')") and button.inner_text() == "Copy"
        page.keyboard.press("Enter")
        expect(button).not_to_have_text("Copy")
        assert "final_k" in page.locator(".yaml pre").inner_text()


@pytest.mark.slow
@needs_browser
def test_without_scripts_everything_is_still_there(address: str) -> None:
    with browser(height=800, java_script_enabled=False) as page:
        page.goto(address)
        assert page.locator(".headline").is_visible() and page.locator("table.modules .better").first.is_visible()
        assert not page.locator("button.copy").is_visible()
        page.locator(".yaml summary").click()
        assert "final_k" in page.locator(".yaml pre").inner_text()


@pytest.mark.slow
@needs_browser
def test_a_run_is_printed_in_at_most_four_pages_without_its_questions(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 117, 8)
    done = CliRunner().invoke(app, ["report", str(run.path), "--pdf"])
    assert done.exit_code == 0, done.output
    assert f"On paper: {run.path / 'report.pdf'}" in done.output.replace("\n", "")
    pages = [" ".join(page.extract_text().split()) for page in PdfReader(run.path / "report.pdf").pages]
    assert 2 <= len(pages) <= 4
    whole = " ".join(pages)
    assert "B (rerank.name=query_likelihood) is better, at 5 times the price: it raises" in pages[0]
    for title in ("Scores", "The three questions that changed most", "Complete cases", "Provenance"):
        assert title in whole
    assert "Every question, with the answers and passages of each variant" in pages[0]
    assert "Question by question" not in whole
    assert not list(run.path.glob("*.partial*"))


def test_without_a_browser_one_sentence_says_what_to_do(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_page.shutil, "which", lambda name: None)
    monkeypatch.setattr(report_page, "_OFF_PATH", ())
    with pytest.raises(RagLabError) as caught:
        report_page.write_pdf(tmp_path / "report.html")
    told = str(caught.value)
    assert told.startswith("No browser that prints without a window was found (chromium, ")
    assert told.endswith("install one, or open " + str(tmp_path / "report.html") + " in any browser and print it.")
    assert told.count(". ") == 0 and not (tmp_path / "report.pdf").exists()


def test_a_browser_that_fails_leaves_the_earlier_pdf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    false = tmp_path / "chromium"
    false.write_text("#!/bin/sh\nexit 7\n")
    false.chmod(0o755)
    monkeypatch.setattr(report_page, "find_browser", lambda: str(false))
    page, old = tmp_path / "report.html", tmp_path / "report.pdf"
    page.write_text("<p>new</p>")
    old.write_bytes(b"earlier")
    with pytest.raises(RagLabError, match="did not print .*: it ended with 7; open it in a browser and print it"):
        report_page.write_pdf(page)
    assert old.read_bytes() == b"earlier"


def test_what_paper_leaves_out_is_marked_in_the_page(comparison: Comparison) -> None:
    page = write_report(comparison.run.path).read_text()
    for name in ("questions", "stages", "variants", "classes", "noise", "costs"):
        assert f'<section class="off-paper" id="{name}"' in page
    for name in ("verdict", "scores", "changes", "coverage", "method"):
        assert f'<section id="{name}"' in page
    assert ".off-paper{display:none}" in asset("print.css")


def test_caveats_that_fold_on_a_screen_are_open_on_paper(comparison: Comparison) -> None:
    style = asset("print.css")
    assert ".page details.chip{display:block!important" in style and ".chip::details-content{" in style
