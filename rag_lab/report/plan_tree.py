"""tree.json: the variants of a plan as a tree of shared stages; as text, and as SVG in a page's colours."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from markupsafe import Markup

from rag_lab._kit.wording import counted
from rag_lab.errors import DamagedFile
from rag_lab.redaction import visible
from rag_lab.runs.run_folder import read_record

MOST_LINES = 40
TREE_FILE = "tree.json"
MOST_ROWS = 60
_ROW, _STEP, _LETTER, _CHARS = 22, 26, 6.6, 90  # pixels a row, a level and a letter; letters a row
_FIRST_Y = 14  # pixels, of the first row


@dataclass(frozen=True, slots=True)
class Branch:
    """What some variants do alike, up to where they part.

    label: the settings that these variants have in common and their neighbours have not; of a leaf its variant.
    stage: the first stage in which they differ from their neighbours; "" of the root.
    variants: how many pipelines are on it.
    work: what is left to do on it and not before it, as (unit, how many); work that other branches need, too, stands
        where it comes first.
    at_most: whether a part of that depends on results that are not there yet.
    branches: into which it parts; none of a leaf.
    """

    label: str
    stage: str
    variants: int
    work: tuple[tuple[str, int], ...] = ()
    at_most: bool = False
    branches: "tuple[Branch, ...]" = ()


def tree_lines(tree: Branch, most: int = MOST_LINES) -> list[str]:
    """Return a line a branch, indented below that from which it parts; beyond `most` it is said how many are left."""
    lines = list(_lines(tree, "", ""))
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"… {len(lines) - most + 1:,} more branches"]


def branch_text(branch: Branch) -> str:
    """Return what a branch is and what is to do on it."""
    work = " and ".join(counted(n, unit) for unit, n in branch.work)
    bound = "≤ " if branch.at_most and work else ""
    where = f"{branch.stage}: " if branch.stage else ""
    if not branch.branches:
        return f"{where}{branch.label}{f' ({bound}{work})' if work else ''}"
    shared = f"{branch.variants} variants"
    return f"{where}{branch.label or 'alike'}: {shared}{f', {bound}{work}' if work else ''}"


def _lines(branch: Branch, before: str, below: str) -> Iterator[str]:
    yield before + branch_text(branch)
    for place, one in enumerate(branch.branches, start=1):
        is_last = place == len(branch.branches)
        yield from _lines(one, f"{below}{'└─' if is_last else '├─'} ", f"{below}{'   ' if is_last else '│  '}")


def plan_tree_svg(tree: Branch) -> str:
    """Return the figure; a tree of more rows than can be looked over ends with how many are left out."""
    rows = list(_rows(tree, 0, None))
    left = len(rows) - MOST_ROWS
    parts, width = [], 0.0
    for place, (branch, level, parent) in enumerate(rows[:MOST_ROWS]):
        text = visible(branch_text(branch))
        text = text if len(text) <= _CHARS else f"{text[: _CHARS - 1]}…"
        x, y = 10 + _STEP * level, _FIRST_Y + _ROW * place
        if parent is not None:
            line = f"M{x - _STEP} {_FIRST_Y + _ROW * parent + 4}V{y}H{x - 5}"
            parts.append(f'<path d="{line}" fill="none" stroke="currentColor" stroke-opacity=".4"/>')
        parts.append(f'<circle cx="{x}" cy="{y}" r="3.5"/><text x="{x + 9}" y="{y + 4}">{escape(text)}</text>')
        width = max(width, _STEP * level + _LETTER * len(text) + 24)
    height = _ROW * min(len(rows), MOST_ROWS + 1) + 8
    if left > 0:
        parts.append(f'<text x="10" y="{_FIRST_Y + _ROW * MOST_ROWS + 4}">… {left:,} more branches</text>')
    alt = f"{tree.variants} variants as a tree of the stages that they share"
    return (
        f'<svg role="img" aria-label="{alt}" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" font-family="inherit" font-size="12" '
        f'fill="currentColor">{"".join(parts)}</svg>'
    )


def plan_tree_of(run: Path) -> Markup:
    """Return the figure of a run folder; empty where it keeps no tree, or one of a single variant."""
    try:
        tree = read_record(run / TREE_FILE, Branch, "it holds no tree of variants")
    except DamagedFile:  # the next start makes it anew
        tree = None
    return Markup(plan_tree_svg(tree) if tree and tree.branches else "")  # noqa: S704 (every text in it is escaped)


def _rows(branch: Branch, level: int, parent: int | None, start: int = 0) -> Iterator[tuple[Branch, int, int | None]]:
    """Yield each branch from top to bottom with its level and the row of that from which it parts."""
    yield branch, level, parent
    row = start + 1
    for one in branch.branches:
        below = list(_rows(one, level + 1, start, row))
        yield from below
        row += len(below)
