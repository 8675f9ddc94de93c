"""What people read, word for word, against the files in this folder: `pytest tests/golden --approve` rewrites them.

A difference is a change of wording or of a figure. Approve only what was intended, and read the diff.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from golden_runs import RUNS
from html_page import page_text
from small_plans import install_doubles, race_plan
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.experiment.config import checkout_file
from rag_lab.report.page.report_page import write_report

FOLDER = Path(__file__).parent
CHANGING = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?"), "DATE"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "DIGEST"),
)

Approved = Callable[[str, str], None]


@pytest.fixture
def approved(request: pytest.FixtureRequest, tmp_path: Path) -> Approved:
    """Compare a text with the stored one of this name, or store it with --approve."""

    def compare(name: str, text: str) -> None:
        text = text.replace(str(tmp_path), "FOLDER").replace(str(FOLDER.parents[1]), "CHECKOUT")
        for pattern, word in CHANGING:
            text = pattern.sub(word, text)
        text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        path = FOLDER / name
        if request.config.getoption("--approve"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{name} differs; read the diff, then --approve"

    return compare


def screen(*arguments: str) -> str:
    """Return what a command prints, which has to end well."""
    with patch.object(sys, "argv", ["rag-lab", *arguments]):  # which the next steps repeat
        done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("name", RUNS)
def test_report_screens_and_page(
    name: str, approved: Approved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    RUNS[name](Path("run"))
    page = write_report("run", one_file=name == "few")
    approved(f"{name}/report.md", Path("run/report.md").read_text(encoding="utf-8"))
    approved(f"{name}/page.txt", page_text(page.read_text(encoding="utf-8")))
    approved(f"{name}/compare.txt", screen("compare", "run"))
    approved(f"{name}/compare_all.txt", screen("compare", "run", "--all"))


def test_dry_run_of_the_demo(approved: Approved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where no results/ tells how much questions differ
    approved("dry_run/demo.txt", screen("sweep", str(checkout_file("experiments/decisive.yaml")), "--dry-run"))


def test_dry_run_of_a_race(approved: Approved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_doubles(monkeypatch)
    race_plan(tmp_path)
    monkeypatch.chdir(tmp_path)
    approved("dry_run/race.txt", screen("sweep", "experiment.yaml", "--dry-run"))
