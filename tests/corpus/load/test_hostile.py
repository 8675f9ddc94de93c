import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hostile_files import HOSTILE, write_hostile

ROOT = Path(__file__).parents[3]
LONGEST_S = 280  # for all of them; one that hangs would take for ever
MOST_MB = 700
LINKS = {
    "escape.txt": "leaves the corpus",
    "device.txt": "leaves the corpus",
    "itself.txt": "broken link",
    "pipe.txt": "no ordinary file",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Index them all in a process that may take only so much time and memory."""
    folder = tmp_path_factory.mktemp("hostile")
    corpus = write_hostile(folder / "corpus")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/hostile_run.py"), str(corpus), str(folder / "home")],
        capture_output=True,
        timeout=LONGEST_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    report: dict[str, Any] = json.loads(done.stdout)
    reasons = defaultdict(list)
    for name, reason in report["problems"]:
        reasons[name].append(reason)
    return {**report, "reasons": reasons}


def test_there_are_enough_of_every_type() -> None:
    assert len(HOSTILE) >= 30
    assert {Path(name).suffix for name in HOSTILE} >= {".pdf", ".docx", ".xlsx", ".xls", ".csv", ".html", ".txt", ".md"}


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, (_, words) in HOSTILE.items()])
def test_each_is_read_or_named_with_its_reason(report: dict[str, Any], name: str, words: str) -> None:
    reasons = report["reasons"][name]
    assert reasons or name in report["indexed"]
    assert any(words in reason for reason in reasons) if words else name in report["indexed"]
    assert all("\n" not in reason and len(reason) < 300 for reason in reasons)


@pytest.mark.parametrize("name", LINKS)
def test_links_and_pipes_are_not_opened(report: dict[str, Any], name: str) -> None:
    assert LINKS[name] in report["reasons"][name][0] and name not in report["indexed"]


def test_the_rest_is_indexed_within_bounded_memory(report: dict[str, Any]) -> None:
    assert "good.txt" in report["indexed"]
    assert report["peak_mb"] < MOST_MB
