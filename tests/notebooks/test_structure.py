"""The notebooks are thin: they set parameters, call the package, and show what comes back."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from rag_lab.config import PipelineConfig
from rag_lab.experiment.run.variant_work import NAMES, from_parameters, to_parameters
from rag_lab.notebook.variant import PARAMETERS, parameters

FOLDER = Path(__file__).parents[2] / "notebooks"
TECHNIQUES = sorted((FOLDER / "techniques").glob("*.ipynb"))
NOTEBOOKS = [*sorted(FOLDER.glob("*.ipynb")), *TECHNIQUES]
MAX_CELLS = MAX_LINES = 15


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def defaults(path):
    namespace = {}
    exec(code_cells(path)[0].source, namespace)  # noqa: S102 - our own notebook
    return namespace


def words(path):
    return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")


def test_every_notebook_is_told_of_and_every_link_leads_somewhere():
    page = FOLDER / "README.md"
    texts = {page: page.read_text()} | {path: words(path) for path in NOTEBOOKS}
    links = {path: re.findall(r"\]\(([^)#:]+)\)", text) for path, text in texts.items()}
    assert [
        (path.name, link) for path, found in links.items() for link in found if not (path.parent / link).exists()
    ] == []
    told = {(FOLDER / link).resolve() for link in links[page]}
    assert [path.name for path in NOTEBOOKS if path not in told] == []
    assert [path.name for path in NOTEBOOKS if not any("README.md" in link for link in links[path])] == []


@pytest.mark.parametrize("path", TECHNIQUES, ids=lambda path: path.stem)
def test_a_technique_has_its_paper_its_harm_and_a_cell_of_ones_own(path):
    text = words(path)
    assert re.search(r"\*Papers:\* .*\(\d{4}\)", text)
    assert text.index("## When it hurts") < text.index("## Now yours")
    after = [cell.cell_type for cell in nbformat.read(path, as_version=4).cells][-2:]
    assert after == ["markdown", "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_thin(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert book.cells[0].cell_type == "markdown"
    assert "*Runtime:*" in book.cells[0].source
    assert "*Needs:*" in book.cells[0].source
    assert book.metadata.kernelspec.name == "python3"
    cells = code_cells(path)
    assert len(cells) <= MAX_CELLS
    for cell in cells[1:]:
        assert len(cell.source.splitlines()) <= MAX_LINES
        tree = ast.parse(cell.source)
        written = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        assert not written or path in TECHNIQUES  # where a metric of one's own is shown
        capitals = [
            node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        capitals += [name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names]
        assert not [name for name in capitals if name.isupper()]  # `given` would refuse them where all cells run again
        assert not re.search(r"\.style\.(hide|format|set_)", cell.source)  # which takes texts for HTML: texts_table
        assert not re.search(r"sys\.path|pip install|[\"']/[a-z]", cell.source)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_parameters_stand_alone_in_the_first_code_cell_each_with_its_help(path):
    tagged = [cell for cell in code_cells(path) if "parameters" in cell.metadata.get("tags", [])]
    assert tagged == code_cells(path)[:1]
    declared = papermill.inspect_notebook(str(path))
    assigned = ast.parse(tagged[0].source).body
    assert all(isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Constant) for line in assigned)
    assert list(declared) == [line.target.id for line in assigned]  # papermill parses by a regex, and skips silently
    assert all(entry["help"] and entry["inferred_type_name"] in {"str", "int", "bool"} for entry in declared.values())


def test_the_variant_notebook_declares_the_names_that_the_sweep_sends_with_the_pipelines_defaults():
    values = defaults(FOLDER / "02_run_variant.ipynb")
    given = {name: values[name] for name in NAMES}
    assert given == to_parameters(PipelineConfig())
    assert from_parameters(PipelineConfig(), given) == PipelineConfig()
    assert parameters(values, PARAMETERS) == {name: values[name] for name in PARAMETERS}


def test_notebooks_are_committed_without_outputs():
    strip = Path(sys.executable).with_name("nbstripout")
    ended = subprocess.run([strip, "--verify", *NOTEBOOKS], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("name", ["rewriting", "hyde", "citations"])
def test_what_a_dozen_questions_leave_open_stands_beside_it_for_all(name):
    """The next cell after the live comparison, made by a command; other techniques ask all questions live."""
    cells = nbformat.read(FOLDER / f"techniques/{name}.ipynb", as_version=4).cells
    live = next(n for n, cell in enumerate(cells) if cell.source.startswith("**On all questions**"))
    assert cells[live - 1].source.endswith("\ncomparison") and "benchmarks/techniques.py" in cells[live].source
    n = int(re.search(r"of which (\d+) have a score", cells[live].source)[1])
    assert n == 117 or name == "citations"
    assert re.search(r"\| A .* \[.*\] \|", cells[live].source) and re.search(r"\| B .* \[.*\] \|", cells[live].source)
