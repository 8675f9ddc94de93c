"""Which files lie below a folder, and why a path among them is passed over.

`removed.txt` names files that stay in the folder and out of the index, one path below the folder a line.
"""

import errno
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path

from rag_lab._kit.digest import whole_file
from rag_lab.errors import DatasetError
from rag_lab.records import Problem

CORPUS_FOLDER = "corpus"
NO_DOCUMENTS = frozenset({"attributes.yaml", "removed.txt", "questions.jsonl"})  # where the folder is its own corpus
_IGNORED = (".", "~$")  # how names begin that are passed over
_RUN_FILES = ("plan.json", "variants")  # what a folder of results has, from its first minute on
REMOVED_FILE = "removed.txt"
REMOVED = f"removed from the index; delete its line in {REMOVED_FILE} to bring it back."
STALE = "is no file of the corpus, so nothing is removed by this line; correct or delete it."


def rules_folder(corpus_dir: Path) -> Path:
    """Return where attributes.yaml and removed.txt stand: beside the folder `corpus` of a dataset, else in it."""
    return corpus_dir.parent if corpus_dir.name == CORPUS_FOLDER else corpus_dir


def sources_below(folder: Path) -> tuple[list[str], list[Problem]]:
    """Return the paths below `folder`, with forward slashes and sorted, and the folders that cannot be read.

    Hidden files and folders are ignored, as are the results of sweeps and the notes of programs that have a document
    open (`~$report.docx`); links to folders are among the paths and are not followed.
    """
    closed: list[OSError] = []
    found: list[str] = []
    for parent, folders, names in os.walk(folder, onerror=closed.append):
        runs = {name for name in folders if all(Path(parent, name, file).exists() for file in _RUN_FILES)}
        folders[:] = [name for name in folders if not name.startswith(_IGNORED) and name not in runs]
        links = [name for name in folders if Path(parent, name).is_symlink()]
        wanted = (name for name in names + links if not name.startswith(_IGNORED))
        found += [Path(parent, name).relative_to(folder).as_posix() for name in wanted]
    problems = [Problem(printable(Path(error.filename)), _unreadable("folder", error.strerror)) for error in closed]
    return sorted(found), problems


def refusal(path: Path, folder: Path) -> str:
    """Return why a path below `folder` is passed over, "" where it is not."""
    if printable(path) != str(path):
        return "the file's name is not UTF-8: rename it."
    with suppress(OSError, RuntimeError):  # a link that leads to itself leads nowhere
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            return "the link leaves the corpus folder and was not followed; copy the file into it."
    if path.is_dir():
        return "links to folders are not followed; copy the folder's files."
    if not path.is_file():
        return "the path is a broken link or no ordinary file; remove it."
    return "" if os.access(path, os.R_OK) else _unreadable("file", os.strerror(errno.EACCES))


def _unreadable(kind: str, reason: str | None) -> str:
    return f"the {kind} cannot be read ({reason}): change its permissions."


def printable(path: Path) -> str:
    """Return the path as text that can be printed and stored, whatever bytes its name is made of."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def read_removed(corpus_dir: Path) -> frozenset[str]:
    """Return the sources that `removed.txt` beside the corpus folder names, none where there is no such file."""
    path = rules_folder(corpus_dir) / REMOVED_FILE
    if not path.exists():
        return frozenset()
    try:
        lines = path.read_bytes().decode().split("\n")  # a name may hold any other kind of line end
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"Cannot read {path}: {error}; it names files of the corpus, one a line.") from None
    return frozenset(line.removesuffix("\r") for line in lines if line.strip())


@contextmanager
def removing(corpus_dir: Path, names: Collection[str], sources: Collection[str]) -> Iterator[None]:
    """Add `names` to `removed.txt` while the body indexes what is left; where it fails, the file is as it was."""
    path, removed = rules_folder(corpus_dir) / REMOVED_FILE, read_removed(corpus_dir)
    before = path.read_bytes() if path.exists() else None
    known = {*sources, *removed}
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "`rag-lab index DATASET --list` shows all."
            raise DatasetError(f"{name!r} is no file of {corpus_dir}; {hint}")
        if "\n" in name:
            raise DatasetError(f"{name!r} holds a line break, and {REMOVED_FILE} has a name a line; rename the file.")
    _write(path, "".join(f"{name}\n" for name in sorted({*removed, *names})).encode())
    try:
        yield
    except BaseException:
        if before is None:
            path.unlink()
        else:
            _write(path, before)
        raise


def _write(path: Path, content: bytes) -> None:
    try:
        with whole_file(path) as partial:
            partial.write_bytes(content)
    except OSError as error:
        raise DatasetError(f"Cannot write {path}: {error.strerror}; it says what is left out of the index.") from None
