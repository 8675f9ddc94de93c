"""The dry run of an experiment: what would be asked under which variants, and what that would take."""

from __future__ import annotations

from markupsafe import Markup

from rag_lab.experiment.forecast.declared import declared_told, not_compared_told
from rag_lab.experiment.forecast.describe import (
    BILL_HEADER,
    MODEL_HEADER,
    TREE_TITLE,
    VARIANT_HEADER,
    bill_cells,
    bill_notes,
    models_of,
    notes_of,
    questions_told,
    rounds_title,
    variant_rows,
)
from rag_lab.experiment.forecast.earlier_runs import runs_of
from rag_lab.experiment.forecast.estimate import estimate
from rag_lab.experiment.forecast.grown_tree import GrownTree
from rag_lab.experiment.forecast.power_forecast import power_forecast
from rag_lab.experiment.forecast.power_told import POWER_HEADER, power_cells, power_notes, power_title
from rag_lab.experiment.forecast.race_forecast import ROUND_HEADER, race_notes, round_rows
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
    grown = GrownTree()
    experiment, bill = plan.experiment, estimate(plan, tree=grown)
    tree = grown.tree()
    power = power_forecast(plan, runs_of(plan))
    return View(
        title=f"{experiment.name}: {experiment.question}",
        facts=(
            ("Not compared", not_compared_told(plan)),
            ("Questions", questions_told(plan)),
            ("Metrics", ", ".join(experiment.metrics)),
            ("Declared", " ".join(declared_told(plan))),
        ),
        tables=(
            Table(f"{len(plan.variants)} variants ({experiment.design})", VARIANT_HEADER, tuple(variant_rows(plan)), 2),
            *([Table(rounds_title(plan), ROUND_HEADER, tuple(round_rows(plan)))] if plan.rounds else []),
            Table("What is left to do, counted once where variants share it", BILL_HEADER, tuple(bill_cells(bill)), 2),
            Table("Models", MODEL_HEADER, tuple(models_of(plan)), 2),
            *([Table(power_title(power), POWER_HEADER, tuple(power_cells(power)), 2)] if power.rows else []),
        ),
        drawn=((TREE_TITLE, Markup(plan_tree_svg(tree)), tuple(tree_lines(tree))),) if tree and tree.branches else (),  # noqa: S704 (escaped)
        notes=(*race_notes(plan), *bill_notes(bill, experiment.limits), *notes_of(plan), *power_notes(power)),
    )
