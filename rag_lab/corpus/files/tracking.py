"""What changed in a corpus since its index was last opened, and what an index says of each file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab._kit.home import PRIVATE
from rag_lab._kit.whole_file import whole_file
from rag_lab.corpus.files.attributes import Attributes


@dataclass(frozen=True, slots=True)
class Changes:
    """The files that came, became different and went, each sorted; all empty where nothing did."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @classmethod
    def between(cls, before: Mapping[str, str], now: Mapping[str, str]) -> Changes:
        """Compare the digests of files by their sources."""
        return cls(
            added=tuple(sorted(now.keys() - before.keys())),
            changed=tuple(sorted(source for source in now.keys() & before.keys() if now[source] != before[source])),
            removed=tuple(sorted(before.keys() - now.keys())),
        )


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file of an index."""

    source: str
    sha256: str
    n_documents: int
    n_parents: int
    n_children: int
    attributes: Attributes


def track(home: Path, corpus_dir: Path, cut: Mapping[str, Any], digests: Mapping[str, str]) -> Changes:
    """Return how the files differ from those of the last call for this corpus folder, cut in this way; keep them."""
    path = home / "tracked" / f"{digest([str(corpus_dir.resolve()), dict(cut)])}.json"
    before = _before(path)
    changes = Changes.between(before, digests)
    if changes != Changes():
        path.parent.mkdir(PRIVATE, parents=True, exist_ok=True)
        with whole_file(path) as partial:
            partial.write_text(json.dumps(dict(digests), ensure_ascii=False), encoding="utf-8")
    return changes


def _before(path: Path) -> dict[str, str]:
    """Return the digests of the last call; none where they are not known, also since the file is damaged."""
    try:
        before: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return before
