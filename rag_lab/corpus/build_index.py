"""Building an index: read, split, write. It appears under its name whole, or not at all; searches add their own.

Each file is read once: what was read and cut before is remembered by the file's content. Files that read the same may
be indexed once, be their bytes the same or not: a copy with other line ends, a PDF saved again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from tqdm.auto import tqdm

from rag_lab._kit.digest import canonical, digest, is_whole, whole_file, whole_folder
from rag_lab._kit.registry import version
from rag_lab.corpus.chunk_store import AsRead, write_chunks
from rag_lab.corpus.chunks import Chunks, Cut, chunks, cut, cut_identity
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.folder import Listing, Page, file_digests, has_copies, none_usable
from rag_lab.corpus.load.loader import Loaded, LoadError, loaded_from, loaded_json
from rag_lab.corpus.reading import Reading
from rag_lab.corpus.spans import joined
from rag_lab.corpus.splitters import CustomSplitter, Splitter, Unsplit
from rag_lab.errors import DatasetError
from rag_lab.memory.results import Memory, Work
from rag_lab.records import Document

MANIFEST = "index.json"
CHUNKS = "chunks.sqlite"
SEARCHED = "searched"  # vectors and sparse indexes of the children, each whole by itself

FOR_NOW = "for_now"  # what was wrong with the files of an index that another attempt may make whole
_FORMAT = 6  # raised when the files of an index change
_LIBRARIES = ("langchain-text-splitters",)
_LEFT_OUT = "the file reads the same as {}, which stands in its place: corpus.duplicates is skip."
_SAME_BYTES = "the file is the same as {}, byte for byte: both are indexed; remove one if it is surplus."
_FEW = 20  # files that differ, for which it is sooner to look for each in a long text
_FILES_AT_ONCE = 64  # read or cut before they are remembered: what a kill loses at most


@dataclass(frozen=True, kw_only=True)
class Manifest(AsRead):
    """What is known of an index without opening it. Its JSON stays readable, or `_FORMAT` is raised."""

    n_files: int  # with a suffix that is read, bad ones included
    n_documents: int  # pages of paged files, and files without pages
    n_parents: int
    n_children: int
    problems: tuple[dict[str, str], ...]  # `source` and `reason`: what was left out or guessed while it was read
    made_of: dict[str, Any]  # see `made_of`

    @property
    def corpora(self) -> tuple[str, ...]:
        """Corpora that are searched beside the first, each a namespace; see `retrieval.also`."""
        return tuple(self.made_of.get("corpora", ()))


@dataclass(frozen=True)
class Recipe:
    """How files become an index."""

    config: CorpusConfig
    reading: Reading
    splitter: Splitter

    def identity(self) -> dict[str, Any]:
        """Return whatever can change an index beside its files."""
        found = {
            "format": _FORMAT,
            "reading": dict(self.reading.identity()),
            "cut": dict(cut_identity(self.config, self.splitter)),
            "libraries": {name: version(name) for name in _LIBRARIES},
        }
        if self.config.distractors:  # two variants that differ in them alone read different corpora
            found["distractors"] = [self.config.distractors, self.config.distractors_from]
        if self.config.folder:
            found["folder"] = self.config.folder
        return found if self.config.duplicates == "keep" else {**found, "duplicates": self.config.duplicates}


def made_of(listing: Listing, digests: Mapping[str, str], recipe: Recipe) -> dict[str, Any]:
    """Return whatever can change an index: files, whose they are, and the recipe."""
    distinct = {id(label): label for label in listing.attributes.values()}  # many files have the same
    labels = {key: {"namespace": a.namespace, "permissions": list(a.permissions)} for key, a in distinct.items()}
    attributes = {source: labels[id(label)] for source, label in listing.attributes.items() if source in digests}
    corpora = {"corpora": list(listing.corpora)} if listing.corpora else {}
    return {"files": dict(digests), "attributes": attributes, **corpora, **recipe.identity()}


_manifests: dict[Path, Manifest] = {}  # of two indexes: to read one of many files takes long


def read_manifest(index: Path, built: Manifest | None = None) -> Manifest:
    """Return what is known of the index in a folder, or of one that was `built` now."""
    if built or index not in _manifests:
        _manifests[index] = built or TypeAdapter(Manifest).validate_json((index / MANIFEST).read_bytes())
        for other in [*_manifests][:-2]:
            del _manifests[other]
    return _manifests[index]


Earlier = tuple[Path, set[str]]  # another index that is made alike, and the files that are not the same in it


def ensure_index(
    listing: Listing, parts: Mapping[str, Any], recipe: Recipe, home: Path, last: Path
) -> tuple[Path, Earlier | None, Mapping[str, str]]:
    """Return the folder of the index of `parts`, building it first where it is not there, or damaged; see `made_of`.

    The file `last` names the one that was opened before. It is returned, too, with the files that differ, and after it
    the digests of its files. An index begins as a copy of it, and is the same so, but where the recipe is another, or a
    file that differs has a copy, since of both it is said that they are the same.

    Where another attempt may read more of a file, the folder is one for now: the next call reads those files again.
    """
    before = home / "indexes" / ((last.exists() and last.read_text(encoding="utf-8")) or "none")
    known = read_manifest(before).made_of if is_whole(before, SEARCHED) else {}
    recipes = [{key: each[key] for key in each.keys() - {"files", "attributes"}} for each in (known, parts)]
    earlier = None
    if known and FOR_NOW not in known and "duplicates" not in parts and digest(recipes[0]) == digest(recipes[1]):
        found = set[str]()
        for was, now in ((known[what], parts[what]) for what in ("files", "attributes") if known[what] != parts[what]):
            found |= {source for source, item in now.items() if was.get(source) != item} | (was.keys() - now.keys())
        earlier = None if any(has_copies(each["files"], found) for each in (known, parts)) else (before, found)
    memory, digests = Memory(home / "files.sqlite"), parts["files"]
    try:
        try:
            path = _ensure(lambda: process(listing, digests, recipe, memory, earlier), parts, home, earlier)
        except (OverflowError, _Retryable):
            if earlier is None:
                raise
            path = _ensure(lambda: process(listing, digests, recipe, memory), parts, home)
    except _Retryable as error:
        processed: Processed = error.args[0]
        # Another index, so that no result of it is taken for one of the whole.
        path = _ensure(lambda: processed, {**parts, FOR_NOW: processed.problems}, home)
    if path != before:
        last.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(last) as partial:
            partial.write_text(path.name, encoding="utf-8")
    return path, earlier, digests if path == before else known.get("files", {})


class _Retryable(Exception):  # noqa: N818
    """Another attempt may read more of some files; its argument is what was processed."""


def _ensure(
    read: Callable[[], Processed], parts: Mapping[str, Any], home: Path, earlier: Earlier | None = None
) -> Path:
    """Return the folder of the index of `parts`, building it where it is not there of what `read` returns."""
    made = _made_text(parts, earlier)  # many files make it long: it is put together once
    target = home / "indexes" / sha256(made.encode()).hexdigest()
    with whole_folder(target, except_in=SEARCHED) as partial:
        if partial:
            processed = read()
            if processed.retryable and FOR_NOW not in parts:
                raise _Retryable(processed)
            partial.mkdir()
            if earlier:
                shutil.copyfile(earlier[0] / CHUNKS, partial / CHUNKS)
            others = earlier[1] if earlier else ()
            counts = write_chunks(partial / CHUNKS, processed.documents, processed.chunks, [*parts["files"]], others)
            if not counts[0]:  # of the earlier index nothing is left that can be used, which is said where all is read
                raise _Retryable(processed)
            manifest = Manifest(
                n_files=len(parts["files"]),
                n_documents=counts[0],
                n_parents=counts[1],
                n_children=counts[2],
                problems=tuple({"source": source, "reason": reason} for source, reason in sorted(processed.problems)),
                made_of=dict(parts),
                page_starts=processed.as_read.page_starts,
                left_out=processed.as_read.left_out,
            )
            rest = {each.name: getattr(manifest, each.name) for each in fields(manifest) if each.name != "made_of"}
            (partial / MANIFEST).write_text(f'{canonical(rest)[:-1]},"made_of":{made}}}', encoding="utf-8")
            read_manifest(target, manifest)
    return target


def _made_text(parts: Mapping[str, Any], earlier: Earlier | None) -> str:
    """Return `canonical(parts)`; few files that differ are put into what an earlier index has, which is sooner."""
    known, others = (read_manifest(earlier[0]).made_of, earlier[1]) if earlier else ({}, ())
    text = (earlier[0] / MANIFEST).read_text(encoding="utf-8") if earlier and len(others) <= _FEW else ""
    made = text.partition(',"made_of":{')[2]
    for source in others:
        was, now = (f'{canonical(source)}:"{each["files"].get(source)}"' for each in (known, parts))
        is_alike = source in parts["files"] and known["attributes"].get(source) == parts["attributes"].get(source)
        made = made.replace(was, now) if is_alike and made.count(was) == 1 else ""
    return f"{{{made[:-1]}" if made else canonical(parts)


def files_of_the_same_text(pages: Iterable[Page]) -> dict[str, tuple[str, ...]]:
    """Return, of each file that reads page by page as others do, these and itself, sorted."""
    digests: dict[str, blake2b] = {}
    for source, page, text in pages:
        content = digests.setdefault(source, blake2b(digest_size=16))
        content.update(f"{page}\0{len(text)}\0{text}".encode(errors="surrogatepass"))
    files: dict[bytes, list[str]] = {}
    for source, content in digests.items():
        files.setdefault(content.digest(), []).append(source)
    groups = (tuple(sorted(names)) for names in files.values() if len(names) > 1)
    return {name: names for names in groups for name in names}


def repeats(groups: Mapping[str, Sequence[str]], labels: Mapping[str, Hashable]) -> dict[str, str]:
    """Return each file that reads as one before it by name with its label, and the first such; `groups` as above."""
    first = {name: min(one for one in same if labels.get(one) == labels.get(name)) for name, same in groups.items()}
    return {name: original for name, original in first.items() if original != name}


@dataclass(frozen=True, slots=True)
class Processed:
    """A corpus by source and page, problems of files (source, reason), and files that may be read better later."""

    documents: tuple[Document, ...]
    chunks: Chunks
    problems: tuple[tuple[str, str], ...]
    retryable: tuple[str, ...]
    as_read: AsRead


def process(
    listing: Listing, digests: Mapping[str, str], recipe: Recipe, memory: Memory, earlier: Earlier | None = None
) -> Processed:
    """Read and cut the files of `listing`; only those whose content was never read and cut so are opened.

    Where there is an earlier index, those that are not the same in it; what it says of the others is taken over.
    """
    config, splitter = recipe.config, recipe.splitter
    if earlier:
        some = {source: listing.files[source] for source in sorted(earlier[1] & listing.files.keys())}
        listing = replace(listing, files=some)
    keys = {
        source: digest(["load", digests[source], dict(recipe.reading.identity_of(path.suffix.lower()))])
        for source, path in listing.files.items()
    }
    loaded = _load_all(listing, digests, keys, recipe.reading, memory)
    problems = [(source, reason) for source in listing.files for reason in loaded[source].warnings]
    usable = {source: found for source, found in loaded.items() if isinstance(found, Loaded)}
    usable, as_read = _whole(usable, listing, config)
    cuts = _cut_all(usable, keys, recipe, memory)
    documents: list[Document] = []
    flat: list[list[Cut]] = []
    retryable = {source for source in listing.files if not loaded[source].lasting}
    for source, found in usable.items():
        for document, spans in zip(found.documents, cuts[source], strict=True):
            page = f"page {document.page}: " if document.page is not None else ""
            if isinstance(spans, Unsplit):
                problems.append((source, f"{page}left out, since {spans.reason}"))
                retryable.add(source)
                continue
            if isinstance(splitter, CustomSplitter):
                children = [child for item in spans for child in item.children]
                if losses := splitter.losses(document.text, children):
                    problems.append((source, page + losses))
            documents.append(listing.owned(replace(document, source=source)))
            flat.append(spans)
    if not documents and not earlier:
        reasons = [f"{listing.files[source]}: {reason}" for source, reason in problems]
        raise DatasetError(none_usable(len(listing.files), [*map(str, listing.problems), *reasons]))
    first: dict[str, str] = {}
    for source in sorted(usable):
        if (original := first.setdefault(digests[source], source)) != source:
            problems.append((source, _SAME_BYTES.format(original)))
    problems += [(name, _LEFT_OUT.format(one)) for name, one in as_read.left_out.items()]
    in_order = tuple(source for source in listing.files if source in retryable)
    cut_so = chunks(documents, flat, config, as_read.page_starts)
    if earlier:
        before, others = read_manifest(earlier[0]), earlier[1]
        problems += [(one["source"], one["reason"]) for one in before.problems if one["source"] not in others]
        kept = {source: starts for source, starts in before.page_starts.items() if source not in others}
        as_read = replace(as_read, page_starts={**kept, **as_read.page_starts})
    return Processed(tuple(documents), cut_so, tuple(problems), in_order, as_read)


def _whole(usable: Mapping[str, Loaded], listing: Listing, config: CorpusConfig) -> tuple[dict[str, Loaded], AsRead]:
    """Return the files that are indexed, those with pages as one document each where it is asked for."""
    pages = ((source, item.page, item.text) for source, found in usable.items() for item in found.documents)
    left_out = repeats(files_of_the_same_text(pages), listing.attributes) if config.duplicates == "skip" else {}
    kept = {source: found for source, found in usable.items() if source not in left_out}
    one = {source: joined(found.documents) for source, found in kept.items()} if config.pdf_unit == "file" else {}
    starts = {source: whole[1] for source, whole in one.items() if whole}
    kept |= {source: replace(kept[source], documents=(whole[0],)) for source, whole in one.items() if whole}
    return kept, AsRead(starts, left_out)


def _load_all(
    listing: Listing, digests: Mapping[str, str], keys: Mapping[str, str], reading: Reading, memory: Memory
) -> dict[str, Loaded | LoadError]:
    sources = {key: source for source, key in keys.items()}

    def read(some: list[str]) -> dict[str, Loaded | LoadError]:
        fresh: dict[str, Loaded | LoadError] = {}
        for key in some:
            try:
                fresh[key] = reading.load(listing.files[sources[key]], sources[key])
            except LoadError as error:
                fresh[key] = error
            bar.update()
        read_now = {sources[key]: listing.files[sources[key]] for key in some}
        if changed := [name for name, now in file_digests(read_now).items() if now != digests[name]]:
            first = listing.files[changed[0]]
            raise DatasetError(f"Files changed while they were read, {first} first; run again later.")
        return fresh

    def encode(found: Loaded | LoadError) -> str | None:
        data = {"error": str(found)} if isinstance(found, LoadError) else loaded_json(found)
        return json.dumps(data, ensure_ascii=False) if found.lasting else None

    work = Work(
        "load",
        read,
        encode,
        lambda text: LoadError(data["error"]) if "error" in (data := json.loads(text)) else loaded_from(data),
        _FILES_AT_ONCE,
    )
    found = work.recall(memory, sources)
    new = [key for key in sources if key not in found]
    hidden = None if new else True  # shown where someone watches
    with tqdm(total=len(new), desc="reading", unit="file", disable=hidden) as bar:
        found |= work.do(memory, new)
    return {source: found[key] for source, key in keys.items()}


def _cut_all(
    usable: Mapping[str, Loaded], keys: Mapping[str, str], recipe: Recipe, memory: Memory
) -> dict[str, list[list[Cut] | Unsplit]]:
    """Return the cuts of each file's documents, made together; one that could not be split is not remembered."""
    identity = dict(cut_identity(recipe.config, recipe.splitter))
    cut_keys = {source: digest(["cut", keys[source], identity]) for source in usable}
    items = {key: usable[source] for source, key in cut_keys.items()}

    def cut_some(some: list[str]) -> dict[str, list[list[Cut] | Unsplit]]:
        documents = [document for key in some for document in items[key].documents]
        done = iter(cut(documents, recipe.config, recipe.splitter))
        return {key: [next(done) for _ in items[key].documents] for key in some}

    def encode(cuts: Sequence[list[Cut] | Unsplit]) -> str | None:
        whole = [found for found in cuts if not isinstance(found, Unsplit)]
        rows = [[[item.parent, item.children] for item in found] for found in whole]
        return json.dumps(rows) if len(whole) == len(cuts) else None

    def decode(text: str) -> list[list[Cut] | Unsplit]:
        return [
            [Cut((start, end), tuple((first, last) for first, last in children)) for (start, end), children in found]
            for found in json.loads(text)
        ]

    work = Work("cut", cut_some, encode, decode, _FILES_AT_ONCE)
    found = work.recall(memory, items)
    new = [key for key in items if key not in found]
    found |= work.do(memory, [key for key in new if items[key].lasting])
    found |= work.do(None, [key for key in new if not items[key].lasting])
    return {source: found[key] for source, key in cut_keys.items()}
