"""docs/adding_a_module.md, followed literally and in order, from outside the package."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs/adding_a_module.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w.]+\.(?:py|yaml|toml))`")

pytestmark = pytest.mark.slow


def blocks(title):
    """The code below a heading: its language, the file that the paragraph above names last (or ''), and the text."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    found, end = [], 0
    for block in BLOCK.finditer(section):
        above = section[end : block.start()].strip().rpartition("\n\n")[2]
        found.append((block[1], (FILE.findall(above) or [""])[-1], block[2]))
        end = block.end()
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def follow(home, tmp_path):
    """Write the files of a section into a folder and run its commands there; return what they print."""
    scripts = tmp_path / "bin"
    scripts.mkdir()
    (scripts / "rag-lab").write_text(f'#!/bin/sh\nexec {sys.executable} -c "from rag_lab.cli import main; main()" "$@"')
    (scripts / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"')
    for script in scripts.iterdir():
        script.chmod(0o755)

    def run(title, folder, *also_on_path, **environment):
        folder.mkdir(exist_ok=True)
        told = []
        path = os.pathsep.join(map(str, (*also_on_path, REPOSITORY)))
        variables = {**os.environ, "RAG_LAB_HOME": str(home), "PYTHONPATH": path, **environment}
        variables["PATH"] = f"{scripts}{os.pathsep}{os.environ['PATH']}"
        for language, file, text in blocks(title):
            if language == "sh":
                done = subprocess.run(["sh", "-ec", text], cwd=folder, env=variables, capture_output=True, text=True)
                assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
                told.append(done.stdout)
            elif file:
                (folder / file).write_text(text, encoding="utf-8")
        return told

    return run


def test_from_a_notebook(home, tmp_path, monkeypatch):
    from nbclient import NotebookClient

    monkeypatch.setenv("RAG_LAB_HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    cells = [nbformat.v4.new_code_cell(text) for language, _, text in blocks("From a notebook") if language == "python"]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    assert len([line for line in cells[0].source.splitlines() if line.strip()]) <= 12
    shown = [output["data"] for output in cells[1].outputs if output.output_type == "execute_result"]
    assert "mine" in shown[0]["text/html"]
    assert re.match(r"\[\d", cells[2].outputs[-1]["data"]["text/plain"])


def test_from_a_file(follow, tmp_path):
    begun, swept = follow("From a file", tmp_path / "mine")
    assert "my_reranker.py" in begun
    assert "passed" in swept
    results = tmp_path / "mine/results/shortest"
    assert (results / "report.html").is_file()
    assert "shortest:Shortest?keep=2" in (results / "report.md").read_text(encoding="utf-8")


def test_from_a_package(follow, tmp_path):
    (_, _, module) = next(block for block in blocks("From a file") if block[1] == "shortest.py")
    package, site = tmp_path / "package", tmp_path / "site"
    package.mkdir()
    (package / "shortest.py").write_text(module, encoding="utf-8")
    # With PIP_NO_BUILD_ISOLATION pip reads its option `--no-build-isolation`: 0 switches isolation off.
    pip = {"PIP_TARGET": str(site), "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    told = follow("From a package", package, site, **pip)
    assert "rerank.name = shortest" in told[-1]
    assert (site / "shortest.py").is_file()
