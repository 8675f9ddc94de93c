"""The figures of a notebook are pictures that people see: in its file, on a page made of it, after any imports."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from browser import browser, needs_browser
from pictures import WHITE, assert_seen, pixels_of
from run_folder_fixture import build_run

from rag_lab.experiment.config import checkout_file

pytestmark = pytest.mark.slow
FIGURES = ("quality_figure(", "front_figure(", "class_figure(", "forest_figure(", "paired_figure(")


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("figures") / "run", 12, 6).path


@pytest.fixture(scope="module")
def book(run_dir: Path) -> Path:
    """03_compare as stock papermill executes it, in a kernel that it starts."""
    output = run_dir.parent / "out.ipynb"
    command = [sys.executable, "-m", "papermill", str(checkout_file("notebooks/03_compare.ipynb")), str(output)]
    subprocess.run([*command, "-p", "RUN_DIR", str(run_dir)], check=True, capture_output=True)
    return output


def pictures(path: Path) -> dict[str, dict[str, Any]]:
    """Return source -> output of the cells that draw."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    return {cell.source: cell.outputs[-1] for cell in cells if any(draw in cell.source for draw in FIGURES)}


def test_every_figure_of_the_comparison_is_a_picture(book: Path) -> None:
    drawn = pictures(book)
    assert len(drawn) == len(FIGURES)
    for output in drawn.values():
        assert_seen(output)


def test_a_figure_is_a_picture_in_the_order_of_any_imports(run_dir: Path, tmp_path: Path) -> None:
    draw = f"quality_figure(compare({str(run_dir)!r}), 'retrieval.ndcg@10')"
    imports = "from rag_lab import compare\nfrom rag_lab.report.figures import quality_figure"
    for first in ("import matplotlib; matplotlib.use('svg')", "%matplotlib inline"):
        sources = [first, f"{imports}\n{draw}", "import matplotlib.pyplot as plt", draw, "%matplotlib inline", draw]
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        nbclient.execute(book)
        for cell in book.cells[1::2]:
            assert "image/png" in cell.outputs[-1].data, f"after {first!r}: {cell.source}"
            pixels = pixels_of(cell.outputs[-1])
            assert tuple(pixels[0, 0]) == WHITE and pixels[..., :3].min() < 0.3


@needs_browser
def test_a_page_made_of_the_notebook_shows_every_figure(book: Path, tmp_path: Path) -> None:
    convert = [sys.executable, "-m", "nbconvert", "--to", "html", f"--output-dir={tmp_path}", str(book)]
    subprocess.run(convert, check=True, capture_output=True)
    with browser() as page:
        page.goto((tmp_path / "out.html").as_uri())
        seen = page.evaluate(
            "[...document.images].filter(i => i.complete && i.checkVisibility())"
            ".map(i => [i.naturalWidth, i.getBoundingClientRect().width])"
        )
    assert len(seen) == len(FIGURES)
    assert all(natural == 2 * round(width) for natural, width in seen)
