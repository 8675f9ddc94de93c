"""One variant: its pipeline drawn, what is asked, and what the scores came to once there are some."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rag_lab.experiment.run.variant_work import VariantWork
from rag_lab.notebook.summary import summary_view
from rag_lab.notebook.views.pipeline_view import view_of
from rag_lab.notebook.views.view import View


def to_html(variant: VariantWork) -> str:
    """Return the drawing with its counts; everything from outside is escaped."""
    return _view(variant).to_html()


def to_text(variant: VariantWork) -> str:
    """Return the same as text."""
    return _view(variant).to_text()


def _view(variant: VariantWork) -> View:
    drawn = view_of(variant.pipeline)
    asked = f"{len(variant.questions)} questions asked, {len(variant.answered)} answered"
    times = f", {variant.repeats} times" if variant.repeats > 1 else ""
    metrics = list(dict.fromkeys(score.metric for score in variant.scores))
    tables = summary_view("", metrics, variant.scores).tables if variant.scores else ()
    title = f"Variant on {variant.pipeline.dataset.name}: {asked}{times}"
    scored_by = ", ".join(map(str, variant.metrics))
    facts = (*drawn.facts, ("Scored by", scored_by), ("Home", _remembers(variant.pipeline.home)))
    return replace(drawn, title=title, facts=facts, tables=tables)


def _remembers(home: Path) -> str:
    """Say which home is used, and whether anything lies in it already."""
    stages = home / "stages.sqlite"
    if not stages.is_file():
        return f"{home}, where nothing is remembered yet"
    return f"{home}, whose {stages.stat().st_size / 1e6:,.1f} MB of remembered results are not computed again"
