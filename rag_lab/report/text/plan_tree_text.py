"""The variants of a plan as a tree of shared stages, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from rag_lab._kit.wording import counted
from rag_lab.runs.plan_tree import Branch

MOST_LINES = 40


def tree_lines(tree: Branch, most: int = MOST_LINES) -> list[str]:
    """Return a line a branch, indented below that from which it parts; beyond `most` it is said how many are left."""
    lines = list(_lines(tree, "", ""))
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"… {len(lines) - most + 1:,} more branches"]


def branch_told(branch: Branch) -> str:
    """Return what a branch is and what is to do on it."""
    work = " and ".join(counted(n, unit) for unit, n in branch.work)
    bound = "≤ " if branch.at_most and work else ""
    where = f"{branch.stage}: " if branch.stage else ""
    if not branch.branches:
        return f"{where}{branch.label}{f' ({bound}{work})' if work else ''}"
    shared = f"{branch.variants} variants"
    return f"{where}{branch.label or 'alike'}: {shared}{f', {bound}{work}' if work else ''}"


def _lines(branch: Branch, before: str, below: str) -> Iterator[str]:
    yield before + branch_told(branch)
    for place, one in enumerate(branch.branches, start=1):
        is_last = place == len(branch.branches)
        yield from _lines(one, f"{below}{'└─' if is_last else '├─'} ", f"{below}{'   ' if is_last else '│  '}")
