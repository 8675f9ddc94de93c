"""The toggles of the tour outlive a run of all its cells, in its kernel and in a real JupyterLab."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from browser import browser, needs_browser
from IPython.core.interactiveshell import InteractiveShell
from jupyter_lab import jupyter_lab, open_notebook, run_all
from small_dataset import write_dataset

from rag_lab.experiment.checkout import checkout_file
from rag_lab.notebook import panel as panel_module

pytestmark = pytest.mark.slow
RETRIEVAL_ALONE = "query: {rewrite: none, hyde: none}\nanswer: {name: none}\n"


def cells_of_the_tour() -> list[str]:
    book = nbformat.read(checkout_file("notebooks/01_tour.ipynb"), as_version=4)
    return [cell.source for cell in book.cells if cell.cell_type == "code"]


def test_all_cells_run_again_with_the_toggles_of_the_panel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_module, "_PANELS", {})
    (tmp_path / "start.yaml").write_text(RETRIEVAL_ALONE)
    parameters = {"DATASET": str(write_dataset(tmp_path)), "CONFIG": str(tmp_path / "start.yaml")}
    kernel = InteractiveShell()

    def run_all_cells() -> None:
        first, *others = cells_of_the_tour()
        kernel.run_cell(first).raise_error()
        kernel.push(parameters)
        for source in others:
            kernel.run_cell(source).raise_error()

    run_all_cells()
    assert kernel.user_ns["trace"].hits.keys() == {"dense"} and len(kernel.user_ns["trace"].ranked) == 4
    kernel.user_ns["panel"].widgets["retrieval.mode"].value = "bm25"
    kernel.user_ns["panel"].widgets["rerank.final_k"].value = 1
    run_all_cells()
    assert kernel.user_ns["panel"].widgets["retrieval.mode"].value == "bm25"
    assert kernel.user_ns["trace"].hits.keys() == {"bm25"} and len(kernel.user_ns["trace"].passages) == 1
    (tmp_path / "start.yaml").write_text(RETRIEVAL_ALONE + "rerank: {final_k: 2}\n")
    run_all_cells()
    assert kernel.user_ns["panel"].config.rerank.final_k == 2
    assert kernel.user_ns["panel"].config.retrieval.mode == "bm25"


SELECT = """[...document.querySelectorAll('.widget-dropdown')]
  .find(box => box.textContent.includes('query.hyde')).querySelector('select')"""
RESET = "[...document.querySelectorAll('.widget-button')].find(button => button.textContent.includes('Reset'))"


@needs_browser
def test_a_choice_in_the_browser_outlives_run_all_cells(tmp_path: Path) -> None:
    book = nbformat.read(checkout_file("notebooks/01_tour.ipynb"), as_version=4)
    book.cells = [*book.cells[:3], nbformat.v4.new_code_cell("print('HyDE is', panel.config.query.hyde)")]
    (tmp_path / "books").mkdir()
    nbformat.write(book, tmp_path / "books" / "tour.ipynb")
    with jupyter_lab(tmp_path / "books", tmp_path) as address, browser() as page:
        open_notebook(page, address, "tour.ipynb")
        run_all(page)
        page.wait_for_function(f"!!({SELECT}) && document.body.innerText.includes('HyDE is classified')")
        page.evaluate(
            f"(s => {{ s.value = 'always'; s.dispatchEvent(new Event('change', {{bubbles: true}})); }})({SELECT})"
        )
        page.wait_for_function("document.body.innerText.includes('query.hyde = always (starts as classified)')")
        run_all(page)
        page.wait_for_function("document.body.innerText.includes('HyDE is always')")
        page.wait_for_function(f"({SELECT})?.value === 'always'")
        page.screenshot(path=tmp_path / "kept.png")
        page.evaluate(f"({RESET}).click()")
        page.wait_for_function(
            f"({SELECT}).value === 'classified' && document.body.innerText.includes('Nothing changed.')"
        )
