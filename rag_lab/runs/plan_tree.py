"""tree.json: the variants of a plan as a tree of the stages that they share, with the work on each branch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rag_lab._kit.whole_file import whole_file
from rag_lab.errors import DamagedFile
from rag_lab.redaction import hide_known_json
from rag_lab.visible import visible_json

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


_TREE = TypeAdapter(Branch)


def read_tree(run: Path) -> Branch | None:
    """Return the tree of a run folder, or None where none was kept.

    Raises:
        DamagedFile: if its file holds none.
    """
    path = run / TREE_FILE
    try:
        return _TREE.validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError:
        raise DamagedFile(path, "it holds no tree of variants") from None


def write_tree(run: Path, tree: Branch) -> None:
    """Write the tree, replacing it at the end."""
    text = hide_known_json(_TREE.dump_json(tree, indent=1).decode(), indent=1)
    with whole_file(run / TREE_FILE) as partial:
        partial.write_text(visible_json(text) + "\n", encoding="utf-8")
