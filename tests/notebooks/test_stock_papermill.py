"""The notebooks under the papermill that everybody has: a mistake ends in a sentence, before anything runs."""

import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from rag_lab.experiment.config import checkout_file

pytestmark = pytest.mark.slow
TECHNIQUES = sorted(f"techniques/{path.stem}" for path in checkout_file("notebooks/techniques").glob("*.ipynb"))


def last_words(notebook: str, output: Path, *injected: str) -> list[str]:
    """Run papermill's own command and return what it says last, below its line of dashes."""
    command = [sys.executable, "-m", "papermill", str(checkout_file(f"notebooks/{notebook}.ipynb")), str(output)]
    parameters = [word for entry in injected for word in ("-p", *entry.split("=", 1))]
    done = subprocess.run([*command, *parameters], capture_output=True, text=True, check=False, cwd=output.parent)
    assert done.returncode == 1
    return done.stderr.split("-" * 75)[-1].strip().splitlines()


@pytest.mark.parametrize(
    ("notebook", "injected", "said"),
    [
        ("01_tour", ["QUESTOIN=Why?"], ["'QUESTOIN'", "did you mean 'QUESTION'?"]),
        ("03_compare", ["metrics=retrieval.mrr@10"], ["'metrics'", "did you mean 'METRIC'?"]),
        ("02_run_variant", ["USE_HYD=always", "final_k=3"], ["'USE_HYDE'?", "did you mean 'FINAL_K'?"]),
        ("02_run_variant", ["FINAL_K=0", "USE_HYDE=never"], ["FINAL_K (rerank.final_k)", "USE_HYDE (query.hyde)"]),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, notebook: str, injected: list[str], said: list[str]) -> None:
    output = tmp_path / "out.ipynb"
    where, sentence = last_words(notebook, output, *injected)
    assert where.startswith("Exception encountered at")
    assert sentence.startswith("ConfigError: ") and all(part in sentence for part in said)
    errors = [o for cell in nbformat.read(output, as_version=4).cells for o in cell.get("outputs", []) if "ename" in o]
    assert [error["traceback"] for error in errors] == [[sentence]]


@pytest.mark.parametrize("notebook", ["01_tour", "03_compare", *TECHNIQUES])
def test_a_notebook_knows_the_parameters_that_its_cell_declares(notebook: str) -> None:
    path = checkout_file(f"notebooks/{notebook}.ipynb")
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    declared = papermill.inspect_notebook(str(path))
    called = next(line for line in cells[1].splitlines() if line.startswith("parameters("))
    known = {name: entry["inferred_type_name"] for name, entry in declared.items()}
    assert all(f'"{name}": {kind}' in called for name, kind in known.items())
    assert called.count(":") == len(known)
