"""The report on paper: three or four pages with what decides, and one sentence where nothing can print them."""

from pathlib import Path
from types import ModuleType

import pytest
from browser import needs_browser
from pypdf import PdfReader
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.comparison.comparison import Comparison
from rag_lab.errors import RagLabError
from rag_lab.report.page import report_page
from rag_lab.report.page.report_page import write_report
from rag_lab.report.page.templates import asset


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
