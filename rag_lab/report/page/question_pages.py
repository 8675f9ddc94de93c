"""A page for each question, beside a report that is too small to hold them; plain pages that work without scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.questions.question_cards import cards
from rag_lab.errors import RagLabError
from rag_lab.report.page.anchors import anchors
from rag_lab.report.page.question_list import card_body
from rag_lab.report.page.templates import asset, render, script_digest

_PAGES = "q-*.html"


def write_pages(comparison: Comparison, folder: Path, report_file: str, write: Callable[[Path, str], None]) -> None:
    """Write a page for each question into `folder`, replacing those that are there one by one."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise RagLabError(f"Cannot make {folder}: {error.strerror}; make room or move away what is there.") from None
    names = anchors(comparison.asked)
    order = list(names.values())
    places = {anchor: place for place, anchor in enumerate(order)}
    script, style = asset("pair.js"), asset("card.css") + asset("style.css") + asset("questions.css")
    for card in cards(comparison):
        anchor = names[card.question.question_id]
        place = places[anchor]
        page = render(
            "question_page.html",
            c=comparison,
            card=card,
            body=card_body(comparison, card),
            anchor=anchor,
            before=order[place - 1] if place else "",
            after=order[place + 1] if place + 1 < len(order) else "",
            report_file=report_file,
            style=style,
            script=script,
            script_digest=script_digest(script),
        )
        write(folder / f"{anchor}.html", page)


def remove_pages(folder: Path, kept: set[str]) -> None:
    """Remove the pages of `folder` that are of an earlier report, by name, and the folder once it is empty.

    What is not ours stays.
    """
    if not folder.is_dir():
        return
    for path in folder.glob(_PAGES):
        if path.stem not in kept:
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
