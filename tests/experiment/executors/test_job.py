"""What a notebook may be given is checked before anything runs; papermill itself is not imported for it."""

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from rag_lab.errors import ConfigError
from rag_lab.experiment.config import NOTEBOOK, checkout_file
from rag_lab.experiment.executors.local import check_parameters


def test_it_knows_the_parameters_that_papermill_finds():
    found = papermill.inspect_notebook(str(checkout_file(NOTEBOOK)))
    check_parameters(checkout_file(NOTEBOOK), dict.fromkeys(found, ""))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([new_code_cell("OUT = 1")], "has no cell with the tag 'parameters'"),
        ([new_code_cell("OUT = ", metadata={"tags": ["parameters"]})], "cannot be read as a notebook with parameters"),
    ],
)
def test_a_notebook_without_parameters_is_a_sentence(tmp_path, cells, message):
    nbformat.write(new_notebook(cells=cells), tmp_path / "book.ipynb")
    with pytest.raises(ConfigError, match=message):
        check_parameters(tmp_path / "book.ipynb", {"OUT": 1})


def test_what_is_no_notebook_is_a_sentence(tmp_path):
    (tmp_path / "book.ipynb").write_text("not JSON")
    with pytest.raises(ConfigError, match="cannot be read as a notebook"):
        check_parameters(tmp_path / "book.ipynb", {})
