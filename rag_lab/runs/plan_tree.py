"""tree.json: the variants of a plan as a tree of the stages that they share, with the work on each branch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rag_lab.errors import DamagedFile
from rag_lab.runs.run_folder import write_json

TREE_FILE = "tree.json"


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
    branches: tuple[Branch, ...] = ()


def read_tree(run: Path) -> Branch | None:
    """Return the tree of a run folder, or None where none was kept.

    Raises:
        DamagedFile: if its file holds none.
    """
    path = run / TREE_FILE
    try:
        return TypeAdapter(Branch).validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError:
        raise DamagedFile(path, "it holds no tree of variants") from None


def write_tree(run: Path, tree: Branch) -> None:
    """Write the tree."""
    write_json(run / TREE_FILE, tree)
