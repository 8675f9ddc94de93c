"""The page in a real browser: it renders, its script runs, it reports no error and asks the network for nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rag_lab.report.page.report_page import write_report
from rag_lab.runs.run_folder import RunFolder

CHROMIUM = shutil.which("chromium")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr"),
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH"),
    pytest.mark.skipif(sys.platform == "win32", reason="flags are for POSIX"),
]


def _browse(page: Path, profile: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_the_page_runs_without_errors(run: RunFolder, tmp_path: Path) -> None:
    done = _browse(write_report(run.path), tmp_path / "profile", "--dump-dom")
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert console == []
    assert "12 of 12" in done.stdout  # the filter has counted the questions
    assert '<form class="filter" aria-label' in done.stdout  # and has shown itself


def test_the_page_draws(run: RunFolder, tmp_path: Path) -> None:
    import numpy as np
    from matplotlib.image import imread

    shot = tmp_path / "page.png"
    _browse(write_report(run.path), tmp_path / "profile", "--window-size=1280,1600", f"--screenshot={shot}")
    pixels = imread(shot)
    assert pixels.shape[1] == 1280
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 50
