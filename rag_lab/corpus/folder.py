"""A corpus folder: which files it holds, whose they are, and the documents in them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from rag_lab.corpus.attributes import Attributes, read_attributes
from rag_lab.corpus.base import LoadError
from rag_lab.corpus.digests import file_digests
from rag_lab.corpus.loaders import LOADERS, load
from rag_lab.corpus.removed import REMOVED, read_removed
from rag_lab.errors import DatasetError
from rag_lab.records import Document, Problem


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a corpus that a loader can read, by source in sorted order, and what was passed over."""

    files: Mapping[str, Path]
    problems: tuple[Problem, ...]
    attributes: Mapping[str, Attributes] = field(default_factory=dict)  # of the files that a rule fits

    def owned(self, document: Document) -> Document:
        """Return a document of one of the files with that file's attributes."""
        attributes = self.attributes.get(document.source, Attributes())
        return replace(document, namespace=attributes.namespace, permissions=attributes.permissions)


@dataclass(frozen=True, slots=True)
class LoadedCorpus:
    """The documents of a folder, ordered by source and page, and the SHA-256 of every file that was read."""

    documents: tuple[Document, ...]
    digests: dict[str, str]
    problems: tuple[Problem, ...]


def list_files(folder: Path) -> Listing:
    """List the files below `folder` that a loader can read. Hidden files are ignored; links that leave it are refused.

    Files that `removed.txt` names, beside the folder, are passed over (see `removed`).

    Raises:
        DatasetError: if the folder is missing, holds no readable file, or its `attributes.yaml` is faulty.
    """
    if not folder.is_dir():
        raise DatasetError(f"There is no corpus folder {folder}; create it and put {_allowed()} files into it.")
    files, problems, unsupported = {}, [], defaultdict(list)
    sources, removed = sorted(_sources(folder)), read_removed(folder)
    for source in sources:
        path = folder / source
        refusal = _refusal(path, folder)
        if source in removed:
            problems.append(Problem(printable(path), REMOVED))
        elif refusal:
            problems.append(Problem(printable(path), refusal))
        elif path.suffix.lower() in LOADERS:
            files[source] = path
        else:
            unsupported[path.suffix.lower()].append(path)
    problems += [_unsupported(suffix, paths) for suffix, paths in unsupported.items()]
    if not files:
        found = f"; found: {'; '.join(str(problem) for problem in problems[:3])}" if problems else ""
        raise DatasetError(f"The corpus folder {folder} holds no {_allowed()} file: put some into it{found}")
    return Listing(files, tuple(problems), read_attributes(folder, sources))


def load_folder(folder: Path) -> LoadedCorpus:
    """Load every file below `folder`, PDFs by their text; a bad one is a problem and the rest is used.

    Raises:
        DatasetError: if the folder is missing, or no file in it can be used.
    """
    listing = list_files(folder)
    digests = file_digests(listing.files)
    documents: list[Document] = []
    problems = list(listing.problems)
    for source, path in listing.files.items():
        try:
            loaded = load(path, source)
        except LoadError as error:
            problems.append(Problem(str(path), str(error)))
            continue
        documents += [listing.owned(named(document)) for document in loaded.documents]
        problems += [Problem(str(path), warning) for warning in loaded.warnings]
    if not documents:
        reasons = "; ".join(str(problem) for problem in problems[:3])
        raise DatasetError(f"None of the {len(listing.files)} files of {folder} can be used: {reasons}")
    return LoadedCorpus(tuple(documents), digests, tuple(problems))


def named(document: Document) -> Document:
    """Return a document that has a title: its file's name, where the file gives none."""
    return document if document.title else replace(document, title=PurePosixPath(document.source).stem)


def printable(path: Path) -> str:
    """Return the path as text that can be printed and stored, whatever bytes its name is made of."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _sources(folder: Path) -> Iterator[str]:
    """Yield the paths below `folder` of its files and of its links to folders, which are not followed."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in names + links:
            if not name.startswith("."):
                yield Path(parent, name).relative_to(folder).as_posix()


def _refusal(path: Path, folder: Path) -> str:
    """Return why a path is passed over, "" where it is not."""
    if printable(path) != str(path):
        return "the file's name is not UTF-8: rename it."
    if path.is_symlink() and _leaves(path, folder):
        return "the link leaves the corpus folder and was not followed; copy the file into it."
    if path.is_dir():
        return "links to folders are not followed; copy the folder's files."
    if not path.is_file():
        return "the path is a broken link or no ordinary file; remove it."
    return ""


def _leaves(link: Path, folder: Path) -> bool:
    """Tell whether a link leads out of the folder; one that leads to itself leads nowhere."""
    try:
        return not link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return False


def _unsupported(suffix: str, paths: list[Path]) -> Problem:
    others = f" (and {len(paths) - 1} more like it)" if len(paths) > 1 else ""
    kind = f"files ending in {suffix}" if suffix else "files without a suffix"
    return Problem(str(paths[0]), f"{kind} are not read{others}; allowed are {_allowed()}.")


def _allowed() -> str:
    return ", ".join(LOADERS)
