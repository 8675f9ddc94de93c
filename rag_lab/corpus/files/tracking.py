"""What changed in a corpus since its index was last opened, by the SHA-256 of its files.

Digests are remembered by path, size and times, so that opening a large corpus reads no file twice.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest, whole_file
from rag_lab._kit.home import PRIVATE
from rag_lab.corpus.files.attributes import Attributes
from rag_lab.errors import DatasetError
from rag_lab.memory.open_store import opened

# A file touched this shortly before may change again without its times showing it, on a coarse clock.
_SETTLED_S = 2.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, sha256 TEXT NOT NULL)"


def file_digests(files: Mapping[str, Path], cache: Path | None = None) -> dict[str, str]:
    """Return the SHA-256 (hex) of each file by its source; `cache` is the SQLite file that remembers them."""
    known: dict[str, tuple[str, str]] = {}
    if cache and cache.exists():
        with opened(cache, _SCHEMA) as connection:
            rows = connection.execute("SELECT path, stamp, sha256 FROM files").fetchall()
        known = {path: (stamp, sha256) for path, stamp, sha256 in rows}
    digests, fresh = {}, []
    for source, path in files.items():
        key = str(path.resolve())
        try:
            status = path.stat()
            stamp = f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"
            known_stamp, sha256 = known.get(key, ("", ""))
            if known_stamp != stamp:
                with path.open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                if time.time() - max(status.st_mtime, status.st_ctime) > _SETTLED_S:
                    fresh.append((key, stamp, sha256))
        except OSError as error:
            raise DatasetError(f"Cannot read {path}: {error.strerror}; check its permissions or remove it.") from None
        digests[source] = sha256
    if cache and fresh:
        with opened(cache, _SCHEMA) as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", fresh)
    return digests


@dataclass(frozen=True, slots=True)
class Changes:
    """The files that came, became different and went, each sorted; all empty where nothing did."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


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
    try:
        before: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # not known, or damaged
        before = {}
    both = digests.keys() & before.keys()
    changes = Changes(
        added=tuple(sorted(digests.keys() - before.keys())),
        changed=tuple(sorted(source for source in both if digests[source] != before[source])),
        removed=tuple(sorted(before.keys() - digests.keys())),
    )
    if changes != Changes():
        path.parent.mkdir(PRIVATE, parents=True, exist_ok=True)
        with whole_file(path) as partial:
            partial.write_text(json.dumps(dict(digests), ensure_ascii=False), encoding="utf-8")
    return changes
