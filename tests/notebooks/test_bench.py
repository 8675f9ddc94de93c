"""The bench in a real JupyterLab: switch and run, compare, keep it when all cells run again and without a kernel."""

from pathlib import Path

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import browser, needs_browser, watch
from jupyter_lab import jupyter_lab, open_notebook, run_all, set_theme
from nbconvert import HTMLExporter
from playwright.sync_api import Page
from small_dataset import write_dataset

pytestmark = [pytest.mark.slow, needs_browser]
WORDS_ALONE = "retrieval: {mode: bm25}\nquery: {rewrite: none, hyde: none}\nanswer: {name: none}\n"
COLUMNS = ".bench .out .bench-columns section"


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """A folder with a notebook whose one cell makes a bench on documents that are searched by words."""
    (tmp_path / "start.yaml").write_text(WORDS_ALONE)
    start, documents = str(tmp_path / "start.yaml"), str(write_dataset(tmp_path))
    source = f"import rag_lab as rl\nbench = rl.Bench({documents!r}, rl.PipelineConfig.load({start!r}))\nbench"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)], metadata=kernel)
    (tmp_path / "books").mkdir()
    nbformat.write(book, tmp_path / "books" / "bench.ipynb")
    return tmp_path / "books"


def choose(page: Page, key: str, value: str) -> None:
    page.locator(f".bench [data-key='{key}'] select").select_option(value)


def heads(page: Page) -> list[str]:
    return [head.strip() for head in page.locator(f"{COLUMNS} .bench-head").all_inner_texts()]


def test_switch_run_compare_and_reopen(books: Path, tmp_path: Path) -> None:
    with jupyter_lab(books, tmp_path) as address, browser(1400, 1600) as page:
        seen = watch(page)
        open_notebook(page, address, "bench.ipynb")
        run_all(page)
        page.wait_for_selector(".bench .bench-box")
        choose(page, "retrieval.mode", "tfidf")  # the two actions of the question what a module does
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_function(f"document.querySelectorAll('{COLUMNS}').length === 2")
        page.wait_for_selector(".bench .out >> text=The evidence stands at rank 1 in both A and B.")
        assert heads(page) == ["A as it started", "B mode = tfidf"]
        passage = page.locator(".bench .out details.passage").first
        passage.locator("summary").click()
        assert passage.locator("mark").last.inner_text() == "opens at 290 bar"

        page.locator(".bench textarea").fill("What does alarm A7 of the oven mean?")  # it keeps its labels
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(".bench .out >> text=The burner is locked out.")
        assert heads(page) == ["A as it started", "B mode = tfidf"]

        pin = page.get_by_role("button", name="Pin A").element_handle()
        for mode, changed in (("bm25", ":not(.changed)"), ("tfidf", ".changed")):
            choose(page, "retrieval.mode", mode)
            page.wait_for_selector(f".bench [data-key='retrieval.mode']{changed}")
        pin.click()  # it is still the same one, so a click is not missed while something runs
        page.wait_for_selector(".bench >> text=pinned")
        page.locator(".bench [data-box='rerank'] summary").click()
        final_k = page.locator(".bench [data-key='rerank.final_k'] input")
        final_k.fill("1000")
        final_k.press("Tab")
        page.wait_for_selector(".bench .said.bad >> text=less than or equal to 100")
        assert final_k.input_value() == "5"

        run_all(page)
        page.wait_for_function(f"document.querySelectorAll('{COLUMNS}').length === 2")
        assert page.locator(".bench [data-key='retrieval.mode'] select").input_value() == "tfidf"
        for theme in ("light", "dark"):
            set_theme(page, theme)
            faults = Axe().run(page, context=".bench").response["violations"]
            assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in faults] == []
            page.screenshot(path=tmp_path / f"{theme}.png")
        choose(page, "retrieval.mode", "hybrid")
        choose(page, "retrieval.mode", "tfidf")
        page.locator(".bench [data-box='rerank'] summary").click()
        page.locator(".bench [data-key='rerank.final_k'] input").fill("1")
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_function(f"document.querySelectorAll('{COLUMNS}').length === 3")
        page.wait_for_function("document.querySelector('.rl-kept').textContent.includes('mode = tfidf, final_k = 1')")
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
        assert seen.dialogs == []

        page.evaluate("jupyterapp.commands.execute('kernelmenu:shutdown')")
        open_notebook(page, address, "bench.ipynb")
        kept = page.locator(".rl-kept")
        kept.wait_for()
        assert "mode = tfidf, final_k = 1" in kept.inner_text()
        page.screenshot(path=tmp_path / "reopened.png")
    page_without_scripts, _ = HTMLExporter().from_filename(str(books / "bench.ipynb"))
    assert "The burner is locked out." in page_without_scripts
