"""An experiment: the dry run of its plan, and how a run of it stands."""

from markupsafe import Markup

from rag_lab._kit.wording import DASH
from rag_lab.experiment.forecast import caveats, cost_estimate, describe, power_forecast
from rag_lab.experiment.forecast.work import PlanTree, branch_of
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.sweep_status import SweepStatus
from rag_lab.notebook.views.view import View
from rag_lab.report.plan_tree import plan_tree_svg, tree_lines
from rag_lab.report.table import Table

HEADER = ("variant", "stands", "done", "remembered", "computed", "calls", "USD", "minutes", "left", "failed")


def plan_view(plan: Plan) -> View:
    """Return what would be asked under which variants, and what that would take. Nothing is run to find out."""
    experiment, paths = plan.experiment, PlanTree()
    bill, tree = cost_estimate.estimate(plan, tree=paths), branch_of([*paths.values()])
    power = power_forecast.power_forecast(plan, power_forecast.runs_of(plan))
    tables = (
        describe.variants_table(plan, paths),
        describe.rounds_table(plan) if plan.rounds else None,
        describe.cost_table(bill),
        describe.models_table(plan),
        power_forecast.power_table(power) if power.rows else None,
    )
    drawn = []
    if tree.branches:
        drawn.append((describe.TREE_TITLE, Markup(plan_tree_svg(tree)), tuple(tree_lines(tree))))  # noqa: S704 (escaped)
    notes = [
        *describe.inert_sentences(plan),
        *describe.race_notes(plan),
        *describe.cost_notes(bill, experiment.limits),
        *describe.notes_of(plan),
    ]
    return View(
        title=f"{experiment.name}: {experiment.question}",
        facts=(
            ("Not compared", caveats.not_compared_sentence(plan)),
            ("Questions", describe.questions_sentence(plan)),
            ("Metrics", ", ".join(experiment.metrics)),
            ("Declared", " ".join(caveats.declared_sentences(plan))),
        ),
        tables=tuple(filter(None, tables)),
        drawn=tuple(drawn),
        notes=(*notes, *power_forecast.power_notes(power)),
    )


def status_view(status: SweepStatus) -> View:
    """Return a line for each variant, and of a race for each round: stage, what it took, what is left, failures."""
    ended = sum(one.state not in ("waiting", "running") for one in status.variants)
    left = status.left.text() if status.left else "not known yet" if status.state == "running" else ""
    parts = (*status.rounds, status)
    # Variants of a race's proof wait until its rounds have ended.
    is_begun = not status.rounds or any(one.state != "waiting" for one in status.variants)
    return View(
        title=f"{status.name}: {status.state}",
        facts=(
            ("Stands", status.said),
            ("Variants", f"{ended} of {len(status.variants)} have ended"),
            ("Calls", f"{status.calls:,}, {status.cost_usd:.4f} USD"),
            ("Left", left),
        ),
        tables=tuple(_table(one, f"Round {one.path.name}: {one.state}") for one in status.rounds)
        + ((_table(status, "Proof" if status.rounds else "Variants"),) if is_begun else ()),
        notes=tuple(f"{one.variant_id}: {one.reason}" for part in parts for one in part.variants if one.reason),
    )


def _table(status: SweepStatus, title: str) -> Table:
    rows = tuple(
        (
            one.variant_id,
            one.stage if one.state == "running" else one.state,
            f"{one.done}/{one.total}" if one.total else "",
            DASH if one.remembered is None else f"{one.remembered:,}",
            DASH if one.computed is None else f"{one.computed:,}",
            f"{one.calls:,}",
            f"{one.cost_usd:.4f}",
            f"{one.seconds / 60:.1f}",
            one.left.text() if one.left else "?" if one.state == "running" else "",
            f"{one.failed:,}" + (f" (+{one.fell_back:,} fell back)" if one.fell_back else ""),
        )
        for one in status.variants
    )
    return Table(title, HEADER, rows)
