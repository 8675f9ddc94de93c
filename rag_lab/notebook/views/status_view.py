"""How a run stands: a line a variant, with its stage, what it took, what is left, and why something failed."""

from __future__ import annotations

from rag_lab._kit.numbers import DASH
from rag_lab.experiment.watch.sweep_status import SweepStatus, VariantStatus
from rag_lab.notebook.views.view import View
from rag_lab.report.tables.table import Table

HEADER = ("variant", "stands", "done", "remembered", "computed", "calls", "USD", "minutes", "left", "failed")


def to_html(status: SweepStatus) -> str:
    """Return the table of variants, and of a race's rounds; everything from outside is escaped."""
    return _view(status).to_html()


def to_text(status: SweepStatus) -> str:
    """Return the same as text."""
    return _view(status).to_text()


def _view(status: SweepStatus) -> View:
    ended = sum(one.state not in ("waiting", "running") for one in status.variants)
    left = status.left.told() if status.left else "not known yet" if status.state == "running" else ""
    return View(
        title=f"{status.name}: {status.state}",
        facts=(
            ("Stands", status.said),
            ("Variants", f"{ended} of {len(status.variants)} have ended"),
            ("Calls", f"{status.calls:,}, {status.cost_usd:.4f} USD"),
            ("Left", left),
        ),
        tables=tuple(_table(one, f"Round {one.path.name}: {one.state}") for one in status.rounds)
        + ((_table(status, "Proof" if status.rounds else ""),) if _is_begun(status) else ()),
        notes=tuple(
            f"{one.variant_id}: {one.reason}" for part in _parts(status) for one in part.variants if one.reason
        ),
    )


def _parts(status: SweepStatus) -> tuple[SweepStatus, ...]:
    return (*status.rounds, status)


def _is_begun(status: SweepStatus) -> bool:
    """Whether its own variants are of interest: those of a race's proof wait until its rounds have ended."""
    return not status.rounds or any(one.state != "waiting" for one in status.variants)


def _table(status: SweepStatus, title: str) -> Table:
    return Table(title or "Variants", HEADER, tuple(_row(one) for one in status.variants))


def _row(one: VariantStatus) -> tuple[str, ...]:
    return (
        one.variant_id,
        one.stage if one.state == "running" else one.state,
        f"{one.done}/{one.total}" if one.total else "",
        DASH if one.remembered is None else f"{one.remembered:,}",
        DASH if one.computed is None else f"{one.computed:,}",
        f"{one.calls:,}",
        f"{one.cost_usd:.4f}",
        f"{one.seconds / 60:.1f}",
        one.left.told() if one.left else "?" if one.state == "running" else "",
        f"{one.failed:,}" + (f" (+{one.fell_back:,} fell back)" if one.fell_back else ""),
    )
