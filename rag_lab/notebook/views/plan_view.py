"""The dry run of an experiment: what would be asked under which variants, and what that would take."""

from __future__ import annotations

from markupsafe import Markup

from rag_lab.experiment.forecast.cost_estimate import estimate
from rag_lab.experiment.forecast.cost_text import COST_HEADER, cost_cells, cost_notes
from rag_lab.experiment.forecast.describe import (
    MODEL_HEADER,
    ROUND_HEADER,
    TREE_TITLE,
    VARIANT_HEADER,
    models_of,
    notes_of,
    questions_sentence,
    race_notes,
    round_rows,
    rounds_title,
    variant_rows,
)
from rag_lab.experiment.forecast.power_forecast import power_forecast, runs_of
from rag_lab.experiment.forecast.power_text import (
    POWER_HEADER,
    declared_sentences,
    not_compared_sentence,
    power_cells,
    power_notes,
    power_title,
)
from rag_lab.experiment.forecast.work import WorkTree
from rag_lab.experiment.plan import Plan
from rag_lab.notebook.views.view import View
from rag_lab.report.figures.plan_tree import plan_tree_svg, tree_lines
from rag_lab.report.tables.table import Table


def to_html(plan: Plan) -> str:
    """Return variants, bill, models and metrics as tables. Nothing is run to find out."""
    return _view(plan).to_html()


def to_text(plan: Plan) -> str:
    """Return the same as text."""
    return _view(plan).to_text()


def _view(plan: Plan) -> View:
    grown = WorkTree()
    experiment, bill = plan.experiment, estimate(plan, tree=grown)
    tree = grown.tree()
    power = power_forecast(plan, runs_of(plan))
    return View(
        title=f"{experiment.name}: {experiment.question}",
        facts=(
            ("Not compared", not_compared_sentence(plan)),
            ("Questions", questions_sentence(plan)),
            ("Metrics", ", ".join(experiment.metrics)),
            ("Declared", " ".join(declared_sentences(plan))),
        ),
        tables=(
            Table(f"{len(plan.variants)} variants ({experiment.design})", VARIANT_HEADER, tuple(variant_rows(plan)), 2),
            *([Table(rounds_title(plan), ROUND_HEADER, tuple(round_rows(plan)))] if plan.rounds else []),
            Table("What is left to do, counted once where variants share it", COST_HEADER, tuple(cost_cells(bill)), 2),
            Table("Models", MODEL_HEADER, tuple(models_of(plan)), 2),
            *([Table(power_title(power), POWER_HEADER, tuple(power_cells(power)), 2)] if power.rows else []),
        ),
        drawn=((TREE_TITLE, Markup(plan_tree_svg(tree)), tuple(tree_lines(tree))),) if tree and tree.branches else (),  # noqa: S704 (escaped)
        notes=(*race_notes(plan), *cost_notes(bill, experiment.limits), *notes_of(plan), *power_notes(power)),
    )
