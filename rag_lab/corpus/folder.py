"""A corpus folder: which files it holds, why others are passed over, their documents, and what changed since.

Changes are those since the index was last opened, by the SHA-256 of the files. Digests are remembered by path, size
and times, so that opening a large corpus reads no file twice.
"""

import errno
import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from types import MappingProxyType

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import counted
from rag_lab.access import may_see
from rag_lab.corpus import rules
from rag_lab.corpus.load.loader import SUFFIX, LoadError, source_in
from rag_lab.corpus.reading import ALLOWED, LOADERS, load_bounded
from rag_lab.errors import DatasetError
from rag_lab.memory.open_store import opened
from rag_lab.records import Document, Problem, Question

Page = tuple[str, int | None, str]  # file, page and text, as the corpus has them
NO_DOCUMENTS = frozenset({"attributes.yaml", "removed.txt", "questions.jsonl"})  # where the folder is its own corpus
_IGNORED = (".", "~$")  # how names begin that are passed over
_RUN_FILES = ("plan.json", "variants")  # what a folder of results has, from its first minute on
REMOVED = f"removed from the index; delete its line in {rules.REMOVED_FILE} to bring it back."
STALE = "is no file of the corpus, so nothing is removed by this line; correct or delete it."
_UNREADABLE = "the {} cannot be read ({}): change its permissions."
_NAMED = 100  # files, of which no more are named in one message
_ELSEWHERE = "the link leads to {}, which is of another namespace"


def sources_below(folder: Path) -> tuple[list[str], list[Problem]]:
    """Return the paths below `folder`, with forward slashes and sorted, and the folders that cannot be read.

    Hidden files, results of sweeps and notes of open documents (`~$report.docx`) are ignored; links are not followed.
    """
    closed: list[OSError] = []
    found: list[str] = []
    for parent, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not is_ignored(Path(parent, name))]
        links = [name for name in folders if Path(parent, name).is_symlink()]
        below = Path(parent).relative_to(folder)
        prefix = "" if below == Path() else f"{below.as_posix()}/"
        found += [f"{prefix}{name}" for name in names + links if not name.startswith(_IGNORED)]
    problems = [Problem(printable(Path(one.filename)), _UNREADABLE.format("folder", one.strerror)) for one in closed]
    return sorted(found), problems


def is_ignored(path: Path) -> bool:
    """Return whether a path is hidden, a note, or the results of a sweep."""
    return path.name.startswith(_IGNORED) or all((path / file).exists() for file in _RUN_FILES)


def refusal(path: Path, folder: Path) -> str:
    """Return why a path below `folder` is passed over, "" where it is not."""
    if printable(path) != str(path):
        return "the file's name is not UTF-8: rename it."
    with suppress(OSError):  # most files, with few questions to the disk
        if S_ISREG(path.lstat().st_mode) and os.access(path, os.R_OK):
            return ""
    with suppress(OSError, RuntimeError):  # a link that leads to itself leads nowhere
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            return "the link leaves the corpus folder and was not followed; copy the file into it."
    if path.is_dir():
        return "links to folders are not followed; copy the folder's files."
    if not path.is_file():
        return "the path is a broken link or no ordinary file; remove it."
    return "" if os.access(path, os.R_OK) else _UNREADABLE.format("file", os.strerror(errno.EACCES))


def printable(path: Path) -> str:
    """Return the path as text that can be printed and stored, whatever bytes its name is made of."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def visible_in(corpus_dir: Path, also: Mapping[str, Path]) -> Callable[[Question, str], bool]:
    """Return a function that tells whether the asker of a question may see a file of a corpus, or of those `also`."""
    labels = list_files(corpus_dir, None, also).attributes
    found = {source: (label.namespace, label.permissions) for source, label in labels.items()}
    return lambda question, source: may_see(question, *found.get(source, ("", ())))


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a corpus that a loader can read, by source in sorted order, and what was passed over."""

    files: Mapping[str, Path]
    problems: tuple[Problem, ...]
    attributes: Mapping[str, rules.Attributes] = field(default_factory=dict)  # of the files that a rule fits
    corpora: tuple[str, ...] = ()  # that are searched at the same time; each a namespace, and a folder of the sources

    def owned(self, document: Document) -> Document:
        """Return a document of one of the files with that file's attributes, and its name where it has no title."""
        attributes = self.attributes.get(document.source, rules.PUBLIC)
        title = document.title or PurePosixPath(document.source).stem
        return replace(document, title=title, namespace=attributes.namespace, permissions=attributes.permissions)

    def with_strictest_labels(self, digests: Mapping[str, str]) -> "Listing":
        """Return the listing with labels that hold for all files of the same content."""
        attributes, reasons = rules.of_copies(self.attributes, digests)
        problems = (Problem(printable(self.files[source]), reason) for source, reason in reasons)
        return replace(self, attributes=attributes, problems=(*self.problems, *problems))

    def joined(self, name: str, other: "Listing") -> "Listing":
        """Return the listing with the files of another corpus, which are a folder and a namespace of this name."""
        if any(source.startswith(f"{name}/") for source in self.files):
            raise DatasetError(f"The corpus has a folder {name!r}, so retrieval.also can name none; rename one.")
        labels = {source: other.attributes.get(source, rules.PUBLIC) for source in other.files}
        within = {
            f"{name}/{source}": replace(label, namespace=f"{name}/{label.namespace}" if label.namespace else name)
            for source, label in labels.items()
        }
        files = {f"{name}/{source}": path for source, path in other.files.items()}
        problems = (*self.problems, *other.problems)
        return Listing({**self.files, **files}, problems, {**self.attributes, **within}, (*self.corpora, name))


@dataclass(frozen=True, slots=True)
class LoadedCorpus:
    """The documents of a folder, ordered by source and page, and the SHA-256 of every file that was read."""

    documents: tuple[Document, ...]
    digests: dict[str, str]
    problems: tuple[Problem, ...]


def list_files(
    folder: Path, suffixes: Collection[str] | None = LOADERS.keys(), also: Mapping[str, Path] = MappingProxyType({})
) -> Listing:
    """List the files below `folder` with one of these suffixes, or any where it is None, and those of other corpora.

    Links that leave it are refused. Passed over are hidden files, those that `removed.txt` names and, in a folder of
    documents that is no dataset, the files that say something about them.
    """
    if not folder.is_dir():
        raise DatasetError(f"There is no corpus folder {folder}; create it and put {ALLOWED} files into it.")
    (sources, problems), removed = sources_below(folder), rules.read_removed(folder)
    if rules.rules_folder(folder) == folder or folder.is_symlink():  # a link to a folder that has rules of its own
        sources = [source for source in sources if source not in NO_DOCUMENTS]
    removed_file = str(rules.rules_folder(folder) / rules.REMOVED_FILE)
    problems += [Problem(removed_file, f"{name!r} {STALE}") for name in sorted(removed.difference(sources))]
    files: dict[str, Path] = {}
    unsupported: dict[str, list[Path]] = defaultdict(list)
    for source in sources:
        path = folder / source
        if reason := REMOVED if source in removed else refusal(path, folder):
            problems.append(Problem(printable(path), reason))
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
    listing = _linked(Listing(files, tuple(problems), {}), folder, sources)
    for name, other in also.items():
        listing = listing.joined(name, list_files(other, suffixes))
    return listing


def _linked(listing: Listing, folder: Path, sources: Collection[str]) -> Listing:
    """Return the listing with the labels of its files; a link has that of its target, too, or is passed over."""
    files, problems = dict(listing.files), list(listing.problems)
    links = {source: path for source, path in files.items() if path.is_symlink()}
    targets = {name: path.resolve().relative_to(folder.resolve()).as_posix() for name, path in links.items()}
    attributes = rules.read_attributes(folder, {*sources, *targets.values()})
    for source, target in targets.items():
        label = attributes.get(source, rules.PUBLIC)
        strict = rules.of_link(label, attributes.get(target, rules.PUBLIC))
        if strict is None:
            problems.append(Problem(printable(files.pop(source)), f"{_ELSEWHERE.format(target)}; it was not followed."))
        elif strict != label:
            attributes[source] = strict
            reason = rules.stricter_reason(strict, f"it is a link to {target}")
            problems.append(Problem(printable(links[source]), reason))
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
        documents += [listing.owned(document) for document in loaded.documents]
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


# A file touched this shortly before may change again without its times showing it, on a coarse clock.
_SETTLED_S = 2.0
DIGESTS = "file_digests.sqlite"  # below the home folder
_SCHEMA = "CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, sha256 TEXT NOT NULL)"


def file_digests(files: Mapping[str, Path], cache: Path | None = None, *, keep: bool = True) -> dict[str, str]:
    """Return the SHA-256 (hex) of each file by its source; `cache` is the SQLite file that remembers them, or did."""
    known: dict[str, tuple[str, str]] = {}
    if cache and cache.exists():
        with opened(cache, _SCHEMA) as connection:
            rows = connection.execute("SELECT path, stamp, sha256 FROM files").fetchall()
        known = {path: (stamp, sha256) for path, stamp, sha256 in rows}
    digests, fresh = {}, []
    for source, path in files.items():
        key = str(path.absolute())  # of a link the stamp is that of its target
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
    if cache and fresh and keep:
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
    attributes: rules.Attributes
    modified: str  # day and time of the last change, ISO 8601 in UTC; '' where the file is not below the corpus folder


def has_copies(digests: Mapping[str, str], sources: Collection[str]) -> bool:
    """Return whether a file has the bytes of one of `sources`, itself aside."""
    contents = [digests[source] for source in sources if source in digests]
    wanted = set(contents)
    return len(wanted) < len(contents) or sum(map(wanted.__contains__, digests.values())) > len(wanted)


def list_again(
    listing: Listing, digests: Mapping[str, str], corpus_dir: Path, sources: Collection[str]
) -> tuple[Listing, dict[str, str]] | None:
    """Return what `list_corpus` would, where no others than these files are others since; None where all must be seen.

    That is so where one came, since rules decide on its rights, is no plain file, or has a copy, since the stricter of
    two labels holds.
    """
    there = {source: corpus_dir / source for source in sources if (corpus_dir / source).exists()}
    is_plain = all(S_ISREG(path.lstat().st_mode) and os.access(path, os.R_OK) for path in there.values())
    if not is_plain or not all(source in listing.files for source in sources):
        return None
    files, now, labels = dict(listing.files), {**digests, **file_digests(there)}, dict(listing.attributes)
    for source in sources:
        if source not in there:
            del files[source], now[source]
            labels.pop(source, None)
    if not files or has_copies(digests, sources) or has_copies(now, sources):
        return None
    return replace(listing, files=files, attributes=labels), now


DISTRACTORS = ".distractors/"  # before their names; no file of a corpus has such a name
_TELLING_CHARS = 40  # of a quote; a shorter one, a number say, stands in documents that answer nothing, too


def list_corpus(
    corpus_dir: Path, suffixes: Collection[str], cache: Path, n: int, others: Mapping[str, Path]
) -> tuple[Listing, dict[str, str]]:
    """Return the files of a corpus, and those of `others`, which are folders by name, with their SHA-256.

    Of the folder of `DISTRACTORS` they are `n`, which everybody may see: the first in an order that looks random and is
    the same everywhere, so that fewer are among more. A file with the bytes of one of the corpus is none of them.
    `cache` remembers digests, see `file_digests`.
    """
    corpora = {name: path for name, path in others.items() if name != DISTRACTORS}
    listing, folder = list_files(corpus_dir, suffixes, corpora), others.get(DISTRACTORS)
    digests = file_digests(listing.files, cache)
    listing = listing.with_strictest_labels(digests)
    if not n:
        return listing, digests
    if folder is None:
        raise DatasetError(f"corpus.distractors is {n:,}; name their folder or dataset in corpus.distractors_from.")
    files = list_files(folder, suffixes).files
    found, corpus = file_digests(files, cache), set(digests.values())
    order = sorted((name for name in files if found[name] not in corpus), key=digest)
    if len(order) < n:
        raise DatasetError(
            f"corpus.distractors is {n:,}, and {folder} holds {counted(len(order), 'file')} that the corpus has not; "
            "ask for at most so many, or name another folder in corpus.distractors_from."
        )
    chosen = sorted(order[:n])
    distractors = {f"{DISTRACTORS}{name}": files[name] for name in chosen}
    bytes_of = {f"{DISTRACTORS}{name}": found[name] for name in chosen}
    return replace(listing, files={**listing.files, **distractors}), {**digests, **bytes_of}


def refuse_answers(files: Collection[str], pages: Callable[[], Iterable[Page]], questions: Sequence[Question]) -> None:
    """Raise a `DatasetError` for a distractor that holds evidence: a quote, the passage of a short one, or the file."""
    if not any(one.evidence for one in questions) or not any(source.startswith(DISTRACTORS) for source in files):
        return
    texts: dict[str, str] = {}
    for source, _, text in pages():
        if source.startswith(DISTRACTORS):
            texts[source] = texts.get(source, "") + "".join(text.split())
    whole = "\n".join(texts.values())
    for question in questions:
        for evidence in question.evidence:
            quote = evidence.quote or ""
            wanted = "".join((quote if len(quote) >= _TELLING_CHARS else evidence.context).split())
            held = [source for source in evidence.copies if source in texts]
            if wanted and wanted in whole:
                held += [source for source, text in texts.items() if wanted in text]
            if held:
                raise DatasetError(
                    f"{held[0].removeprefix(DISTRACTORS)}, one of corpus.distractors, holds the evidence of question "
                    f"{question.question_id!r}, so it is none; take it out of corpus.distractors_from, or name another."
                )
