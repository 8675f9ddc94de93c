"""docs/your_documents.md, followed literally: from a folder of documents to a report, and what else it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rag_lab.runs.run_folder import RunFolder

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs/your_documents.md").read_text(encoding="utf-8")
SHELL = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PYTHON = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
MANUAL = """# Oven manual

## Burner lockout

The burner is locked out by alarm A7. It has to be reset by hand, at the lever behind the cover, after the gas valve was
closed and the fan has run for two minutes.

## Filter change

The filter of the oven has to be changed once a month by those who look after it, or earlier where the lamp beside the
door stays on for more than ten seconds after the start.
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the page's commands are called, with two files in `docs`."""
    folder = tmp_path_factory.mktemp("newcomer")
    (folder / "docs").mkdir()
    (folder / "docs" / "oven.md").write_text(MANUAL)
    (folder / "docs" / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    return folder


def call(folder, code):
    variables = {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path]), "RAG_LAB_HOME": str(folder / "home")}
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)


def follow(folder, line):
    argv = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]
    done = call(folder, f"import sys; sys.argv = {argv!r}; from rag_lab.cli import main; main()")
    assert done.returncode == 0, done.stderr
    return done


def test_three_commands_lead_from_documents_without_labels_to_a_report(folder):
    new, sweep, show = SHELL[0].splitlines()
    made = follow(folder, new)
    assert "broken.pdf" in made.stderr and sweep in made.stderr
    swept = follow(folder, sweep)
    told = swept.stdout
    assert "toy" not in swept.stderr  # quotes are the documents' own words
    run = RunFolder.open(folder / "results/mine")
    assert show == "rag-lab open results/mine" and "results/mine/report.html" in told
    assert {state["status"] for state in run.manifest()["variants"].values()} == {"ok"}
    report = (run.path / "report.html").read_text(encoding="utf-8")
    assert "no question has a label" in report.lower() and len(run.variants) > 2


def test_the_profile_and_a_question_are_one_command_each(folder):
    profile, ask = SHELL[1].strip(), SHELL[2].strip()
    assert "broken.pdf" in follow(folder, profile).stdout
    assert "<h2>" in (folder / "profile.html").read_text(encoding="utf-8")
    asked = follow(folder, ask)
    assert "oven.md" in asked.stdout or "(no citation)" in asked.stdout
    assert "toy" not in asked.stderr


def test_the_profile_in_a_notebook(folder):
    done = call(folder, f"{PYTHON[0]}\nprint(found, pipeline.config.retrieval.mode)")
    assert done.returncode == 0, done.stderr
    assert "broken.pdf" in done.stdout


def test_each_file_that_the_page_names_is_made(folder):
    named = re.findall(r"^\| `([\w.]+)` \|", PAGE.partition("| in `mine/` |")[2].partition("\n\n")[0], re.MULTILINE)
    assert {path.name for path in (folder / "mine").iterdir()} == set(named)
