"""Files to documents and chunks, each file once: what was read and cut before is remembered by the file's content.

Files that read the same may be indexed once, be their bytes the same or not: a copy with other line ends, a PDF saved
again.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from tqdm.auto import tqdm

from rag_lab._kit.digest import digest
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.files.folder import Listing, named, none_usable
from rag_lab.corpus.files.reading import Reading
from rag_lab.corpus.files.tracking import file_digests
from rag_lab.corpus.index.locate import AsRead
from rag_lab.corpus.load.loader import Loaded, LoadError, loaded_from, loaded_json
from rag_lab.corpus.spans import joined
from rag_lab.corpus.split.chunks import Chunks, Cut, chunks, cut, cut_identity
from rag_lab.corpus.split.splitter import CustomSplitter, Splitter, Unsplit
from rag_lab.errors import DatasetError
from rag_lab.memory.results import Memory
from rag_lab.memory.sharing import Work
from rag_lab.records import Document

Page = tuple[str, int | None, str]  # file, page and text, as the corpus has them


def files_of_the_same_text(pages: Iterable[Page]) -> dict[str, tuple[str, ...]]:
    """Return, of each file that shares all of its text, page by page, with others, these and itself, sorted.

    The texts are compared as they were read: Unicode and white space are normalized, letters are not.
    """
    digests: dict[str, blake2b] = {}
    for source, page, text in pages:
        digest = digests.setdefault(source, blake2b(digest_size=16))
        digest.update(f"{page}\0{len(text)}\0{text}".encode(errors="surrogatepass"))
    files: dict[bytes, list[str]] = {}
    for source, digest in digests.items():
        files.setdefault(digest.digest(), []).append(source)
    groups = (tuple(sorted(names)) for names in files.values() if len(names) > 1)
    return {name: names for names in groups for name in names}


def repeats(pages: Iterable[Page], labels: Mapping[str, Hashable]) -> dict[str, str]:
    """Return each file that reads as one before it by name and has its label, and the first such."""
    groups = files_of_the_same_text(pages)
    first = {
        name: min(other for other in same if labels.get(other) == labels.get(name)) for name, same in groups.items()
    }
    return {name: original for name, original in first.items() if original != name}


_LEFT_OUT = "the file reads the same as {}, which stands in its place: corpus.duplicates is skip."
_FILES_AT_ONCE = 64  # read or cut before they are remembered: what a kill loses at most


@dataclass(frozen=True, slots=True)
class Processed:
    """A corpus, ordered by source and page, and what was wrong with its files: (source, reason).

    `curable` are the files of which another attempt may read more: a model that reads them was down, say.
    """

    documents: tuple[Document, ...]
    chunks: Chunks
    problems: tuple[tuple[str, str], ...]
    curable: tuple[str, ...] = ()
    as_read: AsRead = field(default_factory=AsRead)


def process(
    listing: Listing,
    digests: Mapping[str, str],
    reading: Reading,
    config: CorpusConfig,
    splitter: Splitter,
    memory: Memory,
) -> Processed:
    """Read and cut the files of `listing`; only those whose content was never read and cut so are opened."""
    keys = {
        source: digest(["load", digests[source], dict(reading.identity_of(path.suffix.lower()))])
        for source, path in listing.files.items()
    }
    loaded = _load_all(listing, digests, keys, reading, memory)
    problems = [(source, reason) for source in listing.files for reason in loaded[source].warnings]
    usable = {source: found for source, found in loaded.items() if isinstance(found, Loaded)}
    usable, as_read = _whole(usable, listing, config)
    cuts = _cut_all(usable, keys, config, splitter, memory)
    documents: list[Document] = []
    flat: list[list[Cut]] = []
    curable = {source for source in listing.files if not loaded[source].lasting}
    for source, found in usable.items():
        for document, spans in zip(found.documents, cuts[source], strict=True):
            if reason := _unsplit_or_lossy(document, spans, splitter):
                problems.append((source, reason))
            if isinstance(spans, Unsplit):
                curable.add(source)
                continue
            documents.append(listing.owned(named(replace(document, source=source))))
            flat.append(spans)
    if not documents:
        reasons = [f"{listing.files[source]}: {reason}" for source, reason in problems]
        raise DatasetError(none_usable(len(listing.files), [*map(str, listing.problems), *reasons]))
    problems += _duplicates(usable, digests) + [(name, _LEFT_OUT.format(one)) for name, one in as_read.left_out.items()]
    curable_in_order = tuple(source for source in listing.files if source in curable)
    made = chunks(documents, flat, config, as_read.page_starts)
    return Processed(tuple(documents), made, tuple(problems), curable_in_order, as_read)


def _whole(usable: Mapping[str, Loaded], listing: Listing, config: CorpusConfig) -> tuple[dict[str, Loaded], AsRead]:
    """Return the files that are indexed, those with pages as one document each where it is asked for."""
    pages = ((source, item.page, item.text) for source, found in usable.items() for item in found.documents)
    left_out = repeats(pages, listing.attributes) if config.duplicates == "skip" else {}
    kept = {source: found for source, found in usable.items() if source not in left_out}
    one = {source: joined(found.documents) for source, found in kept.items()} if config.pdf_unit == "file" else {}
    starts = {source: whole[1] for source, whole in one.items() if whole}
    kept |= {source: replace(kept[source], documents=(whole[0],)) for source, whole in one.items() if whole}
    return kept, AsRead(starts, left_out)


def _unsplit_or_lossy(document: Document, spans: list[Cut] | Unsplit, splitter: Splitter) -> str:
    """Return what a splitter that somebody brought did not do for a document, '' for nothing."""
    page = f"page {document.page}: " if document.page is not None else ""
    if isinstance(spans, Unsplit):
        return f"{page}left out, since {spans.reason}"
    if not isinstance(splitter, CustomSplitter):
        return ""
    lost = splitter.losses(document.text, [child for item in spans for child in item.children])
    return f"{page}{lost}" if lost else ""


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

    work = Work("load", read, lambda item: _to_text(item) if item.lasting else None, _load_from, _FILES_AT_ONCE)
    found = work.recall(memory, sources)
    new = [key for key in sources if key not in found]
    hidden = None if new else True  # shown where someone watches
    with tqdm(total=len(new), desc="reading", unit="file", disable=hidden) as bar:
        found |= work.do(memory, new)
    return {source: found[key] for source, key in keys.items()}


def _cut_all(
    usable: Mapping[str, Loaded],
    keys: Mapping[str, str],
    config: CorpusConfig,
    splitter: Splitter,
    memory: Memory,
) -> dict[str, list[list[Cut] | Unsplit]]:
    """Return the cuts of each file's documents. Files that a cut needs a model for are cut together.

    A document that could not be split is not remembered.
    """
    identity = dict(cut_identity(config, splitter))
    cut_keys = {source: digest(["cut", keys[source], identity]) for source in usable}
    items = {key: usable[source] for source, key in cut_keys.items()}

    def cut_some(some: list[str]) -> dict[str, list[list[Cut] | Unsplit]]:
        done = iter(cut([document for key in some for document in items[key].documents], config, splitter))
        return {key: [next(done) for _ in items[key].documents] for key in some}

    work = Work("cut", cut_some, _cuts_to_text, _cuts_from, _FILES_AT_ONCE)
    found = work.recall(memory, items)
    new = [key for key in items if key not in found]
    found |= work.do(memory, [key for key in new if items[key].lasting])
    found |= work.do(None, [key for key in new if not items[key].lasting])
    return {source: found[key] for source, key in cut_keys.items()}


def _duplicates(usable: Iterable[str], digests: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return a problem for each usable file whose content is another's, the first of them by name excepted."""
    first: dict[str, str] = {}
    problems = []
    for source in sorted(usable):
        original = first.setdefault(digests[source], source)
        if original != source:
            reason = (
                f"the file is the same as {original}, byte for byte: both are indexed; remove one if it is surplus."
            )
            problems.append((source, reason))
    return problems


def _to_text(found: Loaded | LoadError) -> str:
    if isinstance(found, LoadError):
        return json.dumps({"error": str(found)}, ensure_ascii=False)
    return json.dumps(loaded_json(found), ensure_ascii=False)


def _load_from(text: str) -> Loaded | LoadError:
    data = json.loads(text)
    if "error" in data:
        return LoadError(data["error"])
    return loaded_from(data)


def _cuts_to_text(cuts: Sequence[list[Cut] | Unsplit]) -> str | None:
    if any(isinstance(found, Unsplit) for found in cuts):
        return None
    return json.dumps([[[item.parent, item.children] for item in found] for found in cuts if isinstance(found, list)])


def _cuts_from(text: str) -> list[list[Cut] | Unsplit]:
    return [
        [Cut((start, end), tuple((first, last) for first, last in children)) for (start, end), children in found]
        for found in json.loads(text)
    ]
