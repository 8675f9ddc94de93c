"""Documents, parents and children of one index in a SQLite file: written once, then only read, and searched by units.

What others name in it is found here: where a question's evidence stands, the span of its quote and the text of the
parent around it; and the children that the results of a custom search mean.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from rag_lab.access import Labels, access_label
from rag_lab.corpus.chunks import Chunks
from rag_lab.corpus.normalize import find_quote
from rag_lab.corpus.spans import PageStarts, page_span
from rag_lab.records import Chunk, Document, Evidence, Hit, Level
from rag_lab.stores.engine import Found

Children = list[Chunk]  # of one unit
AnyRecord = TypeVar("AnyRecord", Document, Chunk)
Place = tuple[str, int | None, int, int]  # source, page, start, end
Counts = tuple[int, int, int]  # of documents, parents and children

_SCHEMA = Path(__file__).with_name("chunks.sql").read_text(encoding="utf-8")
_TABLES = ("documents", "parents", "children")
_APART = 2**20  # between the numbers of two rows, so that others may come between them
Search = Callable[[Sequence[int], int], Found]  # (rows of queries, children wanted of each) -> ids and scores
# First guess of how many children must be searched for one more unit.
_CHILDREN_PER_UNIT: dict[Level, int] = {"child": 1, "parent": 4, "document": 8}


def write_chunks(
    path: Path, documents: Sequence[Document], chunks: Chunks, order: Sequence[str] = (), sources: Collection[str] = ()
) -> Counts:
    """Write a file that `ChunkStore` reads, in the order of documents and chunks; return how many it holds.

    Where `path` is a copy of one, `documents` stand in place of those of `sources`, `order` are all files, and
    OverflowError means that there is no room. What a crash leaves is no index, so nothing waits for the disk.
    """
    before, is_new = dict(zip(order, ("", *order), strict=False)), not path.exists()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA if is_new else ''}")
        all_records: tuple[Sequence[Document | Chunk], ...] = (documents, chunks.parents, chunks.children)
        for table, records in zip(_TABLES, all_records, strict=True):
            names = [each.name for each in fields(Document if table == "documents" else Chunk)]
            columns = ", ".join(f'"{name}"' for name in names)
            insert = f"INSERT INTO {table} (rowid, {columns}) VALUES (?{', ?' * len(names)})"  # noqa: S608 - our names
            connection.executemany(f"DELETE FROM {table} WHERE source = ?", [(source,) for source in sources])  # noqa: S608 - our names
            of_file: Iterable[tuple[str, Iterable[Document | Chunk]]] = groupby(records, lambda record: record.source)
            for source, some in [("", records)] if is_new else of_file:
                found, other, low = list(some), before.get(source), None
                while other and low is None:  # the last row of the file before; one that cannot be used has none
                    query = f"SELECT max(rowid) FROM {table} WHERE source = ?"  # noqa: S608 - our names
                    (low,), other = connection.execute(query, (other,)).fetchone(), before[other]
                low = low or 0
                query = f"SELECT min(rowid) FROM {table} WHERE rowid > ?"  # noqa: S608 - our names
                (high,) = connection.execute(query, (low,)).fetchone()
                apart = (high - low) // (len(found) + 1) if high else _APART
                if not apart:
                    raise OverflowError
                values = [[getattr(one, name) for name in names] for one in found]
                rows = [[json.dumps(one) if isinstance(one, tuple) else one for one in row] for row in values]
                connection.executemany(insert, ([low + n * apart, *row] for n, row in enumerate(rows, start=1)))
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _TABLES]  # noqa: S608 - our names
    return counts[0], counts[1], counts[2]


class ChunkStore:
    """Reads what `write_chunks` wrote. Each thread of each process opens its own connection on first use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._places: dict[str, Place] = {}

    def place(self, parent_id: str) -> Place:
        """Return source, page, start and end of a parent."""
        if parent_id not in self._places:
            query = 'SELECT source, page, start, "end" FROM parents WHERE chunk_id = ?'
            self._places[parent_id] = self._rows(query, parent_id)[0]
        return self._places[parent_id]

    def places(self) -> list[Place]:
        """Return the places of all parents, without their texts."""
        return self._rows('SELECT source, page, start, "end" FROM parents ORDER BY rowid')

    def parent(self, parent_id: str) -> Chunk:
        """Return a parent; KeyError if there is none of that id."""
        return self._one("SELECT * FROM parents WHERE chunk_id = ?", parent_id)

    def child(self, chunk_id: str) -> Chunk:
        """Return a child; KeyError if there is none of that id."""
        return self._one("SELECT * FROM children WHERE chunk_id = ?", chunk_id)

    def _one(self, query: str, chunk_id: str) -> Chunk:
        rows = self._rows(query, chunk_id)
        if not rows:
            raise KeyError(chunk_id)
        return _record(Chunk, rows[0])

    def documents(self, source: str | None = None) -> list[Document]:
        """Return the documents, or those of one file, in the order of the corpus; empty if it has no such file."""
        if source is None:
            rows = self._rows("SELECT * FROM documents ORDER BY rowid")
        else:  # a query of its own, which an index serves: it is asked for each piece of evidence
            rows = self._rows("SELECT * FROM documents WHERE source = ? ORDER BY rowid", source)
        return [_record(Document, row) for row in rows]

    def document(self, source: str, page: int | None) -> Document:
        """Return the document that holds a page, be it the file in one; KeyError if there is none."""
        rows = self._rows(
            "SELECT * FROM documents WHERE source = ? AND (page IS ? OR page IS NULL) ORDER BY page DESC", source, page
        )
        if not rows:
            raise KeyError((source, page))
        return _record(Document, rows[0])

    def beginnings(self, n: int, characters: int, visible: Labels) -> list[str]:
        """Return how `n` of the visible documents begin, evenly spread over the corpus; all where there are no more."""
        rows = self._rows("SELECT rowid, namespace, permissions FROM documents ORDER BY rowid")
        seen = [row for row, namespace, held in rows if access_label(namespace, json.loads(held)) in visible]
        step = max(1, len(seen) // n)
        query = "SELECT substr(text, 1, ?) FROM documents WHERE rowid = ?"
        return [self._rows(query, characters, row)[0][0] for row in seen[step - 1 :: step]]

    def children(self, sources: Collection[str] | None = None) -> list[Chunk]:
        """Return all children, or those of some files, in the order of the corpus."""
        some = "" if sources is None else "WHERE source IN (SELECT value FROM json_each(?))"
        values = [] if sources is None else [json.dumps([*sources])]
        return [_record(Chunk, row) for row in self._rows(f"SELECT * FROM children {some} ORDER BY rowid", *values)]  # noqa: S608 - ours

    def labelled(self) -> tuple[list[str], list[str]]:
        """Return the ids of the children and their access labels, in the order of the corpus, without their texts."""
        rows = self._connection().execute("SELECT chunk_id, namespace, permissions FROM children ORDER BY rowid")
        label = cache(lambda namespace, permissions: access_label(namespace, json.loads(permissions)))
        found = {chunk_id: label(namespace, permissions) for chunk_id, namespace, permissions in rows}
        return [*found], [*found.values()]

    def files(self) -> list[Chunk]:
        """Return each file as one text under its own name, in the order of the corpus."""
        found = []
        for source, documents in groupby(self.documents(), key=lambda document: document.source):
            first, *rest = documents
            text = "\n".join(document.text for document in (first, *rest))
            found.append(Chunk(source, source, source, None, 0, len(text), text, first.namespace, first.permissions))
        return found

    def pages(self) -> Iterator[tuple[str, int | None, str]]:
        """Yield file, page and text of all documents, in the order of the corpus, one at a time."""
        yield from self._connection().execute("SELECT source, page, text FROM documents ORDER BY rowid")

    def parents(self, source: str | None = None, page: int | None = None) -> list[Chunk]:
        """Return the parents, or those of one document, in order; those of a file that is one text have own pages."""
        if source is None:
            return [_record(Chunk, row) for row in self._rows("SELECT * FROM parents ORDER BY rowid")]
        rows = self._rows(
            "SELECT * FROM parents WHERE source = ?1 AND (page IS ?2 OR ?2 IS NULL AND "
            "(SELECT count(*) FROM documents WHERE source = ?1) = 1) ORDER BY start",
            source,
            page,
        )
        return [_record(Chunk, row) for row in rows]

    def counts(self) -> dict[str, Counts]:
        """Return how many documents, parents and children each file has, by its source."""
        queries = [f"SELECT source, count(*) FROM {table} GROUP BY source ORDER BY min(rowid)" for table in _TABLES]  # noqa: S608 - our names
        documents, parents, children = (dict(self._rows(query)) for query in queries)
        return {source: (n, parents.get(source, 0), children.get(source, 0)) for source, n in documents.items()}

    @cached_property
    def labels(self) -> Labels:
        """The distinct access labels of the children."""
        rows = self._rows("SELECT DISTINCT namespace, permissions FROM children")
        return frozenset(access_label(namespace, json.loads(permissions)) for namespace, permissions in rows)

    def _rows(self, query: str, *values: str | int | None) -> list[tuple[Any, ...]]:
        return self._connection().execute(query, values).fetchall()

    def _connection(self) -> sqlite3.Connection:
        if getattr(self._local, "process", None) != os.getpid():  # a forked child must not use its parent's
            uri = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"  # never changes: no locks are needed
            self._local.connection = sqlite3.connect(uri, uri=True)
            self._local.process = os.getpid()
        connection: sqlite3.Connection = self._local.connection
        return connection


def _record(kind: type[AnyRecord], row: Sequence[Any]) -> AnyRecord:
    values = dict(zip((field.name for field in fields(kind)), row, strict=True))
    return kind(**{**values, "permissions": tuple(json.loads(values["permissions"]))})


def best_units(chunks: ChunkStore, level: Level, search: Search, n_queries: int, k: int, step: str) -> list[list[Hit]]:
    """Return, for each query, the k units of `level` whose best child scores highest, best first.

    Fewer only where the search finds fewer. A hit has the score of its best child, under the name `step`, too; ties go
    to the child that `search` has first. A document is a file, read whole; of one with pages, the page that matched
    best.
    """
    hits: list[list[Hit]] = [[] for _ in range(n_queries)]
    pending = list(range(n_queries))
    fan_out = k * _CHILDREN_PER_UNIT[level]
    while pending:
        found = list(zip(pending, *search(pending, fan_out), strict=True))
        for row, ids, scores in found:
            best: dict[str, Hit] = {}
            for chunk_id, score in zip(ids, scores, strict=True):
                parent_id = chunk_id.rpartition("/")[0]
                unit_id = {"child": chunk_id, "parent": parent_id}.get(level) or f"{chunks.place(parent_id)[0]}#"
                if unit_id not in best:
                    place = chunks.place(parent_id)
                    if level == "child":
                        child = chunks.child(chunk_id)
                        place = child.source, child.page, child.start, child.end
                    elif level == "document":
                        document = chunks.document(*place[:2])
                        place = document.source, document.page, 0, len(document.text)
                    best[unit_id] = Hit(unit_id, chunk_id, *place, score, {step: score})
                if len(best) == k:
                    break
            hits[row] = list(best.values())
        pending = [row for row, ids, _ in found if len(hits[row]) < k and len(ids) == fan_out]
        fan_out *= 4
    return hits


class FoundChunks:
    """Finds the children of a corpus by what others call them. Texts are compared by their words."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._chunks = chunks
        found = chunks.children()
        self._by_id = {child.chunk_id: child for child in found}
        pairs = groupby(found, key=lambda child: child.parent_id)
        self._by_parent: dict[str, Children] = {parent_id: list(children) for parent_id, children in pairs}

    def units(self, found: Any) -> list[Children]:
        """Return the units that one result may mean, the likeliest first, as their children; none where it is unknown.

        `found` is the id of a child or a parent; the text of one, or a piece of it; or an object with `page_content`
        and `metadata`, of which `chunk_id` is such an id, and `source` and `page` tell equal texts apart.
        """
        metadata = {"chunk_id": found} if isinstance(found, str) else found.metadata
        name = str(metadata.get("chunk_id", ""))
        if name in self._by_id:
            return [[self._by_id[name]]]
        if name in self._by_parent:
            return [self._by_parent[name]]
        if isinstance(found, str):
            return self._with_text(found)
        source, page = "/" + str(metadata.get("source", "")).replace("\\", "/"), metadata.get("page")
        units = self._with_text(found.page_content)
        units.sort(key=lambda unit: (not source.endswith(f"/{unit[0].source}"), page != unit[0].page))
        return units

    def _with_text(self, text: str) -> list[Children]:
        words = " ".join(text.split())
        if not words:
            return []
        children, parents = (found.items() for found in self._words)
        return (
            [[self._by_id[name]] for name, whole in children if whole == words]
            or [self._by_parent[name] for name, whole in parents if whole == words]
            or [[self._by_id[name]] for name, whole in children if words in whole]
            or [self._around(name, text) for name, whole in parents if words in whole]
        )

    def _around(self, parent_id: str, text: str) -> Children:
        """Return the children of a parent that a piece of its text touches; all where its white space differs."""
        parent, children = self._chunks.parent(parent_id), self._by_parent[parent_id]
        start = parent.text.find(text.strip())
        if start < 0:
            return children
        start, end = parent.start + start, parent.start + start + len(text.strip())
        return [child for child in children if child.start < end and child.end > start] or children

    @cached_property
    def _words(self) -> tuple[dict[str, str], dict[str, str]]:
        """The words of the children, and of the parents, by their ids."""
        parents = (self._chunks.parent(parent_id) for parent_id in self._by_parent)
        return (
            {child.chunk_id: " ".join(child.text.split()) for child in self._by_id.values()},
            {parent.chunk_id: " ".join(parent.text.split()) for parent in parents},
        )


@dataclass(frozen=True, slots=True)
class AsRead:
    """By file: where its pages begin in its text, and the file that stands in the index in its place."""

    page_starts: Mapping[str, PageStarts] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def locate_evidence(store: ChunkStore, evidence: Evidence, as_read: AsRead = AsRead()) -> tuple[Evidence, str]:
    """Return the evidence with page, `start`, `end` and `context` filled, and why it was not found ("" if it was).

    The context is the parent or parents that hold the quote; without a quote, the only parent of the page or file, and
    "" where it has several. Evidence that was not found is returned as it was. The file is the one that is indexed; in
    one whose pages are one text, the evidence has a span and no page.
    """
    evidence = replace(evidence, source=as_read.left_out.get(evidence.source, evidence.source))
    documents = store.documents(evidence.source)
    if not documents:
        return evidence, "no such file was read into the corpus; correct the name or add the file."
    if starts := as_read.page_starts.get(evidence.source):
        return _within_file(store, documents[0], evidence, starts)
    if evidence.page is not None:
        paged = [document for document in documents if document.page == evidence.page]
        if not paged:
            return evidence, _no_page([one.page for one in documents if one.page is not None], evidence.page)
        documents = paged
    if not evidence.quote:
        return replace(evidence, context=_only_parent(store, documents)), ""
    for document in documents:
        span = find_quote(document.text, evidence.quote)
        if span:
            context = _context(store, document, *span)
            return replace(evidence, page=document.page, start=span[0], end=span[1], context=context), ""
    return evidence, _no_quote(evidence.quote, evidence.page)


def _within_file(store: ChunkStore, document: Document, evidence: Evidence, starts: PageStarts) -> tuple[Evidence, str]:
    """Locate evidence in a file whose pages are one text; a quote has to begin on the page that is named."""
    text = document.text
    page = (0, len(text)) if evidence.page is None else page_span(starts, evidence.page, len(text))
    if page is None:
        return evidence, _no_page([number for number, _ in starts], evidence.page or 0)
    if not evidence.quote:
        if evidence.page is None:
            return replace(evidence, context=_only_parent(store, [document])), ""
        return replace(evidence, page=None, start=page[0], end=page[1], context=text[slice(*page)]), ""
    found = find_quote(text[page[0] :], evidence.quote)
    start, end = (page[0] + place for place in found or (len(text), len(text)))
    if start >= page[1]:
        return evidence, _no_quote(evidence.quote, evidence.page)
    context = _context(store, document, start, end)
    return replace(evidence, page=None, start=start, end=end, context=context), ""


def _no_quote(quote: str, page: int | None) -> str:
    where = "the file" if page is None else f"page {page}"
    words = " ".join(quote.split())
    words = words if len(words) <= 60 else words[:57] + "..."
    return f"the quote {words!r} does not stand on {where}; correct the quote or the page."


def _only_parent(store: ChunkStore, documents: list[Document]) -> str:
    if len(documents) > 1:
        return ""
    parents = store.parents(documents[0].source, documents[0].page)
    return parents[0].text if len(parents) == 1 else ""


def _context(store: ChunkStore, document: Document, start: int, end: int) -> str:
    parents = store.parents(document.source, document.page)
    touched = [parent for parent in parents if parent.start < end and parent.end > start]
    whole = [parent for parent in touched if parent.start <= start and parent.end >= end]
    if whole:  # parents of neighbouring children overlap, and several may hold the quote
        return min(whole, key=lambda parent: (parent.end - parent.start, parent.start)).text
    return document.text[touched[0].start : max(parent.end for parent in touched)]


def _no_page(pages: list[int], page: int) -> str:
    if not pages:
        return f"page {page} is named, but the file has no pages; leave the page out."
    return f"page {page} was not read: it does not exist or holds no text (last page with text: {max(pages)})."
