"""What the bench shows of its results, as HTML that stands alone; everything from outside is escaped."""

from __future__ import annotations

from markupsafe import Markup

from rag_lab.models.toy_note import toy_note
from rag_lab.notebook.bench.bench_work import BenchWork
from rag_lab.notebook.bench.side_by_side import SideBySide
from rag_lab.report.page.templates import asset, render


def result_html(bench: BenchWork, *, styled: bool) -> str:
    """Return the last result; `styled` with the rules that it needs where the bench's own page does not bring them."""
    shown, compared = bench.result, bench.compared
    return render(
        "bench.html",
        shown=shown,
        answers=shown.answers() if shown else [],
        is_running=bench.is_running,
        toy=_toy(shown) if shown else "",
        compared=Markup(compared.html) if compared else "",  # noqa: S704 - a page of ours, which escapes
        compared_title=compared.title if compared else "",
        style=style() if styled else "",
    )


def style() -> Markup:
    """Return the rules of what is shown."""
    return asset("card.css") + asset("bench.css")


def _toy(shown: SideBySide) -> str:
    """Return the note on the packaged model, where one wrote any of the answers."""
    models = {record.model for column in shown.columns for record in column.records if record.stage == "generate"}
    return next((note for model in models if (note := toy_note(model, "an answer here"))), "")
