"""The tour runs again in the kernel in which it ran, and tells the same whatever its user tried on the bench."""

from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from small_dataset import write_dataset

from rag_lab.experiment.config import checkout_file

pytestmark = pytest.mark.slow


def test_all_cells_of_the_tour_run_again_and_tell_the_same(tmp_path: Path) -> None:
    book = nbformat.read(checkout_file("notebooks/01_tour.ipynb"), as_version=4)
    first, *others = [cell.source for cell in book.cells if cell.cell_type == "code"]
    kernel = InteractiveShell()

    def run_all_cells() -> None:
        kernel.run_cell(first).raise_error()
        kernel.push({"DATASET": str(write_dataset(tmp_path))})
        for source in others:
            kernel.run_cell(source).raise_error()

    run_all_cells()
    bench = kernel.user_ns["bench"]
    assert bench.trace.hits.keys() == {"dense", "bm25"}
    title, ranks = bench.compared.title, [hit.parent_id for hit in kernel.user_ns["now"].trace.ranked]
    assert title.endswith("A as it started, B mode = rrf")
    bench.set({"retrieval.base_k": 2, "retrieval.mode": "tfidf"})
    bench.ask("Is there fish?")
    bench.run()
    run_all_cells()
    assert kernel.user_ns["bench"].compared.title == title
    assert [hit.parent_id for hit in kernel.user_ns["now"].trace.ranked] == ranks
