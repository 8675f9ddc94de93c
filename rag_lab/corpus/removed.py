"""removed.txt: files that stay in the corpus folder and out of the index; one path below the folder a line."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rag_lab.errors import DatasetError, unknown_name

REMOVED_FILE = "removed.txt"
REMOVED = f"removed from the index; delete its line in {REMOVED_FILE} to bring it back."


def read_removed(corpus_dir: Path) -> frozenset[str]:
    """Return the sources that `removed.txt` beside the corpus folder names, none where there is no such file.

    Raises:
        DatasetError: if the file cannot be read or is not UTF-8.
    """
    path = corpus_dir.parent / REMOVED_FILE
    if not path.exists():
        return frozenset()
    try:
        return frozenset(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"Cannot read {path}: {error}; it names files of the corpus, one a line.") from None


def remove(corpus_dir: Path, source: str, sources: Collection[str]) -> None:
    """Add `source` to `removed.txt`.

    Raises:
        DatasetError: if it is none of `sources`, the files that are indexed, or the last of them.
    """
    if source not in sources:
        raise DatasetError(unknown_name("file", source, sources))
    if len(sources) == 1:
        raise DatasetError(f"{source!r} is the last file of {corpus_dir}; an index needs one, so it was not removed.")
    path = corpus_dir.parent / REMOVED_FILE
    new = path.with_name(f".{REMOVED_FILE}.new")
    new.write_text("".join(f"{name}\n" for name in sorted({*read_removed(corpus_dir), source})), encoding="utf-8")
    new.replace(path)
