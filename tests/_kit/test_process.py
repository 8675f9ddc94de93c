import subprocess
import sys

import nbclient
import nbformat
import pytest

from rag_lab._kit.process import in_kernel


def test_what_starts_kernels_is_none():
    loaded = "import rag_lab.experiment.kernels.notebook_process, ipykernel.kernelapp"
    code = f"{loaded}; from rag_lab._kit.process import in_kernel; print(in_kernel())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    assert not in_kernel()


@pytest.mark.slow
def test_a_kernel_is_one():
    cell = nbformat.v4.new_code_cell("from rag_lab._kit.process import in_kernel; in_kernel()")
    book = nbformat.v4.new_notebook(cells=[cell])
    nbclient.execute(book)
    assert book.cells[0].outputs[0].data["text/plain"] == "True"
