"""The report of a run as it is now: the page that lies in its folder once it is finished, else one that follows it.

What makes a page is imported when the first is made: until then the address has been told.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from threading import Lock

from rag_lab.errors import RagLabError
from rag_lab.runs.run_folder import MANIFEST_FILE, RunFolder, refuse_links_out

_QUESTION_PAGE = re.compile(r"q-[A-Za-z0-9._-]+\.html")
REPORT = "report.html"
QUESTIONS = "questions"  # the folder of their pages
_POLICY = "script-src '"  # of a page, where one more script is allowed


class LiveReport:
    """The report of the run in `folder`. Safe to ask from several threads; a page is made once for what is there."""

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self.name = RunFolder.open(folder).name
        self._lock = Lock()
        self._made = ("", "")

    def state(self) -> str:
        """Return what changes where the page does: which variants have scores, and whether the run is finished."""
        run = RunFolder.open(self._folder)
        manifest = run.path / MANIFEST_FILE
        ended = str(manifest.stat().st_mtime_ns) if manifest.is_file() else ""
        told = "\n".join([*(variant.variant_id for variant in run.variants), "", *run.scored(), "", ended])
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def page(self) -> str:
        """Return the page; where it cannot be made yet, one that says why and waits."""
        with self._lock:
            state = self.state()
            if self._made[0] != state:
                self._made = (state, self._page(state))
            return self._made[1]

    def question_page(self, name: str) -> str | None:
        """Return the page of one question, of a run whose report is too long for one file; None for any other name."""
        refuse_links_out(self._folder)
        path = self._folder / QUESTIONS / name
        is_one = _QUESTION_PAGE.fullmatch(name) and path.is_file() and not path.is_symlink()
        return path.read_text(encoding="utf-8") if is_one else None

    def _page(self, state: str) -> str:
        run = RunFolder.open(self._folder)
        report, is_finished = run.path / REPORT, (run.path / MANIFEST_FILE).is_file()
        if is_finished and report.is_file():
            return report.read_text(encoding="utf-8")
        from rag_lab.comparison.read_comparison import read_comparison
        from rag_lab.report.page.report_page import to_html

        scored = f"{len(run.scored())} of {len(run.variants)} variants have scores"
        try:
            page = to_html(read_comparison(run.path))
        except RagLabError as error:
            page = _waiting(run, scored, str(error) if run.scored() else "")
        return page if is_finished else following(page, state, f"Running: {scored}.")


def _waiting(run: RunFolder, scored: str, reason: str) -> str:
    from rag_lab.report.page.templates import asset, render, script_digest

    style, digest = asset("card.css") + asset("style.css"), script_digest(asset("live.js"))
    return render("waiting.html", run=run, scored=scored, reason=reason, style=style, script_digest=digest)


def following(page: str, state: str, told: str) -> str:
    """Return a page with a notice, and a script that loads it anew where the server's state is no longer this one."""
    from rag_lab.report.page.templates import asset, render, script_digest

    script = asset("live.js")
    allowed = page.replace(_POLICY, f"connect-src 'self'; {_POLICY}{script_digest(script)}' '", 1)
    notice = render("live.html", told=told, state=state, script=script)
    head, end, rest = allowed.rpartition("</body>")
    return f"{head}{notice}{end}{rest}" if end else allowed
