"""removed.txt: files that stay in the corpus folder and out of the index; one path below the folder a line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from rag_lab._kit.whole_file import whole_file
from rag_lab.corpus.files.walk import rules_folder
from rag_lab.errors import DatasetError
from rag_lab.records import Problem

REMOVED_FILE = "removed.txt"
REMOVED = f"removed from the index; delete its line in {REMOVED_FILE} to bring it back."
_STALE = "is no file of the corpus, so nothing is removed by this line; correct or delete it."


def read_removed(corpus_dir: Path) -> frozenset[str]:
    """Return the sources that `removed.txt` beside the corpus folder names, none where there is no such file.

    Raises:
        DatasetError: if the file cannot be read or is not UTF-8.
    """
    path = rules_folder(corpus_dir) / REMOVED_FILE
    if not path.exists():
        return frozenset()
    try:
        lines = path.read_bytes().decode().split("\n")  # a name may hold any other kind of line end
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"Cannot read {path}: {error}; it names files of the corpus, one a line.") from None
    return frozenset(line.removesuffix("\r") for line in lines if line.strip())


def stale_lines(corpus_dir: Path, removed: Iterable[str], sources: Collection[str]) -> list[Problem]:
    """Return a problem for each name in `removed.txt` that none of `sources`, all files of the corpus, has."""
    path = rules_folder(corpus_dir) / REMOVED_FILE
    return [Problem(str(path), f"{name!r} {_STALE}") for name in sorted(removed) if name not in sources]


@contextmanager
def removing(corpus_dir: Path, names: Collection[str], sources: Collection[str]) -> Iterator[None]:
    """Add `names` to `removed.txt` while the body indexes what is left; where it fails, the file is as it was.

    Args:
        corpus_dir: the folder of the files.
        names: sources to remove; one that is removed already stays so.
        sources: the files that are indexed.

    Raises:
        DatasetError: if a name is neither among `sources` nor removed already, or `removed.txt` cannot be written.
    """
    path, removed = rules_folder(corpus_dir) / REMOVED_FILE, read_removed(corpus_dir)
    before = path.read_bytes() if path.exists() else None
    for name in names:
        _check(corpus_dir, name, {*sources, *removed})
    _write(path, "".join(f"{name}\n" for name in sorted({*removed, *names})).encode())
    try:
        yield
    except BaseException:
        if before is None:
            path.unlink()
        else:
            _write(path, before)
        raise


def _check(corpus_dir: Path, name: str, known: Collection[str]) -> None:
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`rag-lab index DATASET --list` shows all."
        raise DatasetError(f"{name!r} is no file of {corpus_dir}; {hint}")
    if "\n" in name:
        raise DatasetError(f"{name!r} holds a line break, and {REMOVED_FILE} has a name a line; rename the file.")


def _write(path: Path, content: bytes) -> None:
    try:
        with whole_file(path) as partial:
            partial.write_bytes(content)
    except OSError as error:
        raise DatasetError(f"Cannot write {path}: {error.strerror}; it says what is left out of the index.") from None
