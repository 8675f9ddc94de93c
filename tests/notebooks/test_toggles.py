"""The tour runs again in the kernel in which it ran, and leaves the toggles that its user changed."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from small_dataset import write_dataset

from rag_lab.experiment.checkout import checkout_file

pytestmark = pytest.mark.slow


def test_all_cells_of_the_tour_run_again_with_the_toggles_of_the_bench(tmp_path: Path) -> None:
    book = nbformat.read(checkout_file("notebooks/01_tour.ipynb"), as_version=4)
    first, *others = [cell.source for cell in book.cells if cell.cell_type == "code"]
    kernel = InteractiveShell()

    def run_all_cells() -> None:
        kernel.run_cell(first).raise_error()
        kernel.push({"DATASET": str(write_dataset(tmp_path))})
        for source in others:
            kernel.run_cell(source).raise_error()

    run_all_cells()
    assert kernel.user_ns["bench"].trace.hits.keys() == {"dense", "bm25"}
    kernel.user_ns["bench"].set("retrieval.base_k", 2)
    run_all_cells()
    assert kernel.user_ns["bench"].config.retrieval.base_k == 2
    assert len(kernel.user_ns["bench"].trace.candidates) == 2
