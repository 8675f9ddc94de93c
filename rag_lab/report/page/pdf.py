"""The report on paper: a Chromium that is found on the machine prints the page."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rag_lab._kit.digest import whole_file
from rag_lab.errors import RagLabError

PDF_FILE = "report.pdf"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge", "microsoft-edge")
_ELSEWHERE = (  # where installers put it without a name on PATH
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
_PATIENCE_S = 300


def find_browser() -> str | None:
    """Return the Chromium, Chrome or Edge of this machine, or None."""
    named = [path for name in NAMES if (path := shutil.which(name))]
    return next(iter([*named, *(path for path in _ELSEWHERE if Path(path).is_file())]), None)


def write_pdf(page: Path) -> Path:
    """Print `page`, the report of a run, into report.pdf beside it and return that path."""
    browser = find_browser()
    if browser is None:
        raise RagLabError(
            f"No browser that prints without a window was found ({', '.join(NAMES[:3])} or another Chromium); install "
            f"one, or open {page} in any browser and print it."
        )
    target = page.with_name(PDF_FILE)
    with tempfile.TemporaryDirectory() as profile, whole_file(target) as partial:
        # Chromium has no sandbox for root; the page loads nothing and its policy lets no foreign script run.
        root = ["--no-sandbox"] if sys.platform != "win32" and os.geteuid() == 0 else []
        flags = ["--headless", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
        flags += ["--no-pdf-header-footer", *root, f"--print-to-pdf={partial.resolve()}", page.resolve().as_uri()]
        reason = ""
        try:
            done = subprocess.run([browser, *flags], capture_output=True, timeout=_PATIENCE_S, check=False)  # noqa: S603 -- fixed
            if done.returncode:
                reason = f"it ended with {done.returncode}"
        except OSError as error:
            reason = str(error.strerror)
        except subprocess.TimeoutExpired:
            reason = f"it was not done after {_PATIENCE_S} seconds"
        if reason or not partial.is_file() or not partial.stat().st_size:
            raise RagLabError(
                f"{browser} did not print {page}{f': {reason}' if reason else ''}; open it in a browser and print it."
            )
    return target
