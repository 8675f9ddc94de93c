"""A corpus folder: which files it holds, whose they are, and the documents in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from rag_lab._kit.wording import counted
from rag_lab.access import may_see
from rag_lab.corpus.files import walk
from rag_lab.corpus.files.attributes import PUBLIC, Attributes, of_copies, of_link, read_attributes, stricter_reason
from rag_lab.corpus.files.reader_process import ALLOWED, LOADERS, load_bounded
from rag_lab.corpus.files.tracking import file_digests
from rag_lab.corpus.load.loader import SUFFIX, LoadError, source_in
from rag_lab.errors import DatasetError
from rag_lab.records import Document, Problem, Question

_NAMED = 100  # files, of which no more are named in one message
_ELSEWHERE = "the link leads to {}, which is of another namespace"


def visible_in(corpus_dir: Path) -> Callable[[Question, str], bool]:
    """Return a function that tells whether the asker of a question may see a file below `corpus_dir`."""
    rules = read_attributes(corpus_dir, list_files(corpus_dir, None).files)

    def visible(question: Question, source: str) -> bool:
        label = rules.get(source, PUBLIC)
        return may_see(question, label.namespace, label.permissions)

    return visible


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a corpus that a loader can read, by source in sorted order, and what was passed over."""

    files: Mapping[str, Path]
    problems: tuple[Problem, ...]
    attributes: Mapping[str, Attributes] = field(default_factory=dict)  # of the files that a rule fits

    def owned(self, document: Document) -> Document:
        """Return a document of one of the files with that file's attributes."""
        attributes = self.attributes.get(document.source, PUBLIC)
        return replace(document, namespace=attributes.namespace, permissions=attributes.permissions)

    def with_strictest_labels(self, digests: Mapping[str, str]) -> Listing:
        """Return the listing with labels that hold for all files of the same content."""
        attributes, reasons = of_copies(self.attributes, digests)
        problems = (Problem(walk.printable(self.files[source]), reason) for source, reason in reasons)
        return replace(self, attributes=attributes, problems=(*self.problems, *problems))


@dataclass(frozen=True, slots=True)
class LoadedCorpus:
    """The documents of a folder, ordered by source and page, and the SHA-256 of every file that was read."""

    documents: tuple[Document, ...]
    digests: dict[str, str]
    problems: tuple[Problem, ...]


def list_files(folder: Path, suffixes: Collection[str] | None = LOADERS.keys()) -> Listing:
    """List the files below `folder` with one of these suffixes, or any where it is None.

    Hidden files are ignored; links that leave it are refused. Files that `removed.txt` names are passed over (see
    `removed`), as are, in a folder of documents that is no dataset, the files that say something about them.
    """
    if not folder.is_dir():
        raise DatasetError(f"There is no corpus folder {folder}; create it and put {ALLOWED} files into it.")
    (sources, problems), removed = walk.sources_below(folder), walk.read_removed(folder)
    if walk.rules_folder(folder) == folder or folder.is_symlink():  # a link to a folder that has rules of its own
        sources = [source for source in sources if source not in walk.NO_DOCUMENTS]
    removed_file = str(walk.rules_folder(folder) / walk.REMOVED_FILE)
    problems += [Problem(removed_file, f"{name!r} {walk.STALE}") for name in sorted(removed.difference(sources))]
    files: dict[str, Path] = {}
    unsupported: dict[str, list[Path]] = defaultdict(list)
    for source in sources:
        path = folder / source
        if reason := walk.REMOVED if source in removed else walk.refusal(path, folder):
            problems.append(Problem(walk.printable(path), reason))
        elif suffixes is None or path.suffix.lower() in suffixes:
            stored = source_in(path) if path.suffix == SUFFIX else ""  # how documents that came from Python are named
            files[stored if stored and stored not in files else source] = path
        else:
            unsupported[path.suffix.lower()].append(path)
    for suffix, paths in unsupported.items():
        others = f" (and {len(paths) - 1} more like it)" if len(paths) > 1 else ""
        kind = f"files ending in {suffix}" if suffix else "files without a suffix"
        allowed = f"allowed are {ALLOWED}, and what corpus.readers names."
        problems.append(Problem(str(paths[0]), f"{kind} are not read{others}; {allowed}"))
    if not files:
        found = f"; found:{_listed(list(map(str, problems)))}" if problems else ""
        raise DatasetError(f"The corpus folder {folder} holds no {ALLOWED} file: put some into it{found}")
    return _linked(Listing(files, tuple(problems), {}), folder, sources)


def _linked(listing: Listing, folder: Path, sources: Collection[str]) -> Listing:
    """Return the listing with the labels of its files; a link has that of its target, too, or is passed over."""
    files, problems = dict(listing.files), list(listing.problems)
    links = {source: path for source, path in files.items() if path.is_symlink()}
    targets = {name: path.resolve().relative_to(folder.resolve()).as_posix() for name, path in links.items()}
    attributes = read_attributes(folder, {*sources, *targets.values()})
    for source, target in targets.items():
        label = attributes.get(source, PUBLIC)
        strict = of_link(label, attributes.get(target, PUBLIC))
        if strict is None:
            problems.append(
                Problem(walk.printable(files.pop(source)), f"{_ELSEWHERE.format(target)}; it was not followed.")
            )
        elif strict != label:
            attributes[source] = strict
            reason = stricter_reason(strict, f"it is a link to {target}")
            problems.append(Problem(walk.printable(links[source]), reason))
    return Listing(files, tuple(problems), attributes)


def load_folder(folder: Path) -> LoadedCorpus:
    """Load every file below `folder`, PDFs by their text; a bad one is a problem and the rest is used."""
    listing = list_files(folder)
    digests = file_digests(listing.files)
    listing = listing.with_strictest_labels(digests)
    documents: list[Document] = []
    problems = list(listing.problems)
    for source, path in listing.files.items():
        try:
            loaded = load_bounded(path, source)
        except LoadError as error:
            problems.append(Problem(str(path), str(error)))
            continue
        documents += [listing.owned(named(document)) for document in loaded.documents]
        problems += [Problem(str(path), warning) for warning in loaded.warnings]
    if not documents:
        raise DatasetError(none_usable(len(listing.files), list(map(str, problems))))
    return LoadedCorpus(tuple(documents), digests, tuple(problems))


def none_usable(n_files: int, reasons: Sequence[str]) -> str:
    """Return the message for a folder of which no file can be used: every reason, a line each."""
    return f"None of {counted(n_files, 'file')} can be used:{_listed(reasons)}"


def _listed(reasons: Sequence[str]) -> str:
    rest = [f"and {len(reasons) - _NAMED:,} more"] if len(reasons) > _NAMED else []
    return "".join(f"\n  {reason}" for reason in [*reasons[:_NAMED], *rest])


def named(document: Document) -> Document:
    """Return a document that has a title: its file's name, where the file gives none."""
    return document if document.title else replace(document, title=PurePosixPath(document.source).stem)
