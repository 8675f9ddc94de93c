"""A corpus made searchable: opened where it was built before, built where it was not.

The vectors of its children, for each embedding model and store, are built when first searched; an index that is
searched by words alone has none. The vector of a child that is longer than the model reads means its beginning; what
follows is not searched. How much that is, is counted once and kept with the vectors. What stands before a child where
it is searched (`corpus.context`) is in no text that is shown, read or cited.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rag_lab._kit.digest import digest, is_whole, whole_folder
from rag_lab._kit.machine import bytes_on_disk
from rag_lab._kit.observability import span
from rag_lab.access import Labels, may_see
from rag_lab.corpus import build_index as indexes
from rag_lab.corpus import folder as folders
from rag_lab.corpus.chunk_store import ChunkStore, best_units, locate_evidence
from rag_lab.corpus.chunks import ChildVectors, Contexts, cut_identity
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.folder import Changes, IndexedFile, Listing
from rag_lab.corpus.normalize import language_of, main_language
from rag_lab.corpus.reading import Reading, worker
from rag_lab.corpus.rules import ATTRIBUTES_FILE, REMOVED_FILE, Attributes, rules_folder
from rag_lab.corpus.splitters import splitter_of
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatModel, Embedder, Vectors
from rag_lab.models.remembered_vectors import RememberedEmbedder, Watch
from rag_lab.models.truncation import TruncatedChildren, Truncation
from rag_lab.records import Chunk, Evidence, Hit, Level, Problem, Question
from rag_lab.stores import registry
from rag_lab.stores.config import StoreConfig, Unit
from rag_lab.stores.engine import KEPT_FILE, KEYS_FILE, Rows, SearchedRows
from rag_lab.stores.sparse import Analyzer, AnalyzerChoice, SparseIndex, SparseName, analyzer_for, open_sparse

_COUNTS_FILE = "unread.json"
_SAMPLE = 300, 3000  # documents, and characters of each, by which the language is told
_NO_SENTENCE = "{} chunks are searched with the path of headings, for the model wrote no sentence of context: {}."
_NOT_VISIBLE = "its asker may not see this file, so it was left out; give may_see or namespace as the file asks for."
TOOK = "took.json"  # with the vectors: the seconds that embedding took, of each text as first computed


class CorpusIndex:
    """The parents and children of one corpus; read only. What is searched is built and opened on first use."""

    def __init__(
        self,
        path: Path,
        corpus_dir: Path,
        vectors: ChildVectors,
        passed_over: tuple[Problem, ...] = (),
        changes: Changes = Changes(),  # noqa: B008 (frozen)
        earlier: indexes.Earlier | None = None,
    ) -> None:
        self.path, self.corpus_dir = path, corpus_dir
        self.changes = changes  # of the files since the index of this corpus was last opened
        self._earlier = earlier  # that index; the vectors of files that are the same in it are taken over
        # Opens the index as of now, where no others than these files came, changed or went since this one.
        self.after: Callable[[Collection[str]], CorpusIndex] = lambda sources: self
        self.vectors, self.contexts = vectors, vectors.contexts  # these stand before children where they are searched
        self._passed_over = passed_over  # files that no loader was tried on
        self._store_name = ""
        self.chunks = ChunkStore(path / indexes.CHUNKS)  # documents, parents and children with their texts
        self._sparse: dict[tuple[SparseName, Analyzer, Unit, Labels | None], SparseIndex] = {}
        self._same_text: dict[str, tuple[str, ...]] | None = None
        self._languages: dict[Labels | None, str] = {}
        self._located: dict[Evidence, tuple[Evidence, str]] = {}  # repeats ask for the same

    @property
    def digest(self) -> str:
        """Identity of all that makes parents and children: files, split parameters, text libraries."""
        return self.path.name

    @property
    def vectors_identity(self) -> Mapping[str, Any]:
        """Identity of what searches the children's vectors: the embedding model, and the store."""
        return {"store": self._store_name} if self._store_name else self.vectors.identity()

    @property
    def is_built(self) -> bool:
        """Whether the index is on disk, undamaged; one that is not can only tell its digest."""
        return is_whole(self.path, except_in=indexes.SEARCHED)

    @property
    def is_retryable(self) -> bool:
        """Whether another attempt may read more: then it is built again when it is opened again."""
        return indexes.FOR_NOW in self.manifest.made_of

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was left out of the corpus or guessed while it was read."""
        read = [(bad["source"], bad["reason"]) for bad in self.manifest.problems]
        read += [(source, _NO_SENTENCE.format(len(why), why[0])) for source, why in self.contexts.problems.items()]
        return self._passed_over + tuple(Problem(str(self.corpus_dir / source), reason) for source, reason in read)

    @property
    def files(self) -> tuple[IndexedFile, ...]:
        """The files that are indexed, in order; those that could not be used are among `problems`."""
        parts, found = self.manifest.made_of, []
        labels = {name: Attributes(a["namespace"], tuple(a["permissions"])) for name, a in parts["attributes"].items()}
        for source, numbers in self.chunks.counts().items():
            label, path = labels.get(source, Attributes()), self.corpus_dir / source
            day = f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%dT%H:%M:%SZ}" if path.is_file() else ""
            found.append(IndexedFile(source, parts["files"][source], *numbers, label, day))
        return tuple(found)

    def language(self, visible: Labels | None = None) -> str:
        """Return the language of most of what is visible, as `english`, detected in a sample; '' if there is none."""
        if visible not in self._languages:
            texts = self.chunks.beginnings(*_SAMPLE, visible or self.chunks.labels) if self.is_built else []
            self._languages[visible] = main_language((language_of(text), len(text)) for text in texts)
        return self._languages[visible]

    def analyzer(self, choice: AnalyzerChoice, allowed: Labels | None = None) -> Analyzer:
        """Return the analyzer that is chosen; for `auto` that of the language of most of what is allowed."""
        return choice if choice != "auto" else analyzer_for(choice, self.language(self._visible(allowed)))

    def searched_texts(self, children: Sequence[Chunk]) -> list[str]:
        """Return the texts by which children are searched: their own, behind what stands before them."""
        if not self.contexts.words.identity():
            return [child.text for child in children]
        before = ((self._before[child.chunk_id], child.text) for child in children)
        return ["\n\n".join(filter(None, both)) for both in before]

    def searched_children(self, sources: Collection[str] | None = None) -> list[Chunk]:
        """Return the children, or those of some files, with the texts by which they are searched."""
        children = self.chunks.children(sources)
        return [replace(one, text=text) for one, text in zip(children, self.searched_texts(children), strict=True)]

    def _searched_identity(self) -> dict[str, Any]:
        """Return what tells searched texts from the children; which of them are for now is known once a model wrote."""
        return self.contexts.words.identity() if self.contexts.model is None or self._before else {}

    @cached_property
    def _before(self) -> dict[str, str]:
        return self.contexts.before(self.chunks.documents(), self.chunks.children())

    @property
    def has_vectors(self) -> bool:
        """Whether the children's vectors are on disk, undamaged."""
        return is_whole(self.vectors.folder(self.path / indexes.SEARCHED))

    @cached_property
    def vector_store(self) -> SearchedRows:
        """The children's vectors, built where they are missing."""
        self.ensure_vectors()
        folder = self.vectors.folder(self.path / indexes.SEARCHED)
        return registry.stores_of(self.vectors.store, self.vectors.override).open(folder)

    def ensure_vectors(self) -> None:
        """Embed the children and write their vectors, once for all processes, where they are missing or damaged."""
        if self.has_vectors:
            return
        made, embedder, rows, sources = self.vectors, self.vectors.embedder, None, None
        if self._earlier and made.store.vectors == "float32" and not self.contexts.model:
            earlier = made.folder(self._earlier[0] / indexes.SEARCHED)
            if is_whole(earlier) and (earlier / KEYS_FILE).exists():
                rows, sources = Rows(earlier), self._earlier[1]
        children = self.searched_children(sources)
        with whole_folder(made.folder(self.path / indexes.SEARCHED)) as partial:
            if not partial:
                return
            before = embedder.replayed.seconds + embedder.embedded.seconds
            new = self.contexts.embed(embedder, self.chunks.documents, children)
            took = embedder.replayed.seconds + embedder.embedded.seconds - before
            ids, labels = self.chunks.labelled()
            # All others have those that they had.
            vectors = new if rows is None else rows.joined(ids, [child.chunk_id for child in children], new)
            if rows is not None:
                took += json.loads((earlier / TOOK).read_bytes())["seconds"] * (1 - len(children) / len(ids))
            registry.stores_of(made.store, made.override).build(partial, ids, vectors, labels, made.store.url)
            (partial / TOOK).write_text(json.dumps({"seconds": took}), encoding="utf-8")

    def price(self, *, with_vectors: bool) -> dict[str, Any]:
        """Return the `chunks` embedded, `seconds` of that (None: not known), `bytes`, and of quantized vectors
        neighbours `kept`.
        """
        texts = bytes_on_disk(self.path / indexes.CHUNKS)
        if not with_vectors or self._store_name or not self.has_vectors:
            return {"chunks": 0, "seconds": None, "bytes": texts}
        folder = self.vectors.folder(self.path / indexes.SEARCHED)
        took = folder / TOOK
        seconds = float(json.loads(took.read_bytes())["seconds"]) if took.is_file() else None
        kept = {"kept": json.loads((folder / KEPT_FILE).read_bytes())} if (folder / KEPT_FILE).is_file() else {}
        return {"chunks": self.manifest.n_children, "seconds": seconds, "bytes": texts + bytes_on_disk(folder), **kept}

    @property
    def truncation(self) -> TruncatedChildren | None:
        """What the embedding model never reads of the children, without its weights; None where it does not say."""
        # Weights from a hub say it only once they are here: None is not kept. What a model is to write is not known.
        is_open = self.contexts.kind == "late" or (self.contexts.model is not None and not self.contexts.asks)
        return None if is_open or self.vectors.embedder.most_tokens is None else self._truncation

    @cached_property
    def _truncation(self) -> TruncatedChildren:
        embedder = self.vectors.embedder
        limit = embedder.most_tokens or 0
        # The format is raised when what is counted changes.
        whole = {"format": 1, "embedder": dict(embedder.identity()), **self._searched_identity()}
        made_of = digest(whole)
        folder = self.path / indexes.SEARCHED / f"unread-{made_of[:32]}"
        with whole_folder(folder) as partial:
            if partial:
                partial.mkdir()
                texts = {child.chunk_id: child.text for child in self.searched_children()}
                counts = embedder.text_tokens(list(texts.values()), "document")
                longer = {chunk_id: n - limit for chunk_id, n in zip(texts, counts, strict=True) if n > limit}
                total = Truncation.of(counts, sum(map(len, texts.values())), limit)
                found = asdict(TruncatedChildren(total, longer))
                (partial / _COUNTS_FILE).write_text(json.dumps(found), encoding="utf-8")
        saved = json.loads((folder / _COUNTS_FILE).read_text(encoding="utf-8"))
        return TruncatedChildren(Truncation(**saved["total"]), saved["longer"])

    def searched_in(self, store: SearchedRows, name: str) -> CorpusIndex:
        """Return this index with its children searched in `store`; `name` is the identity of what it finds."""
        index = CorpusIndex(self.path, self.corpus_dir, self.vectors, self._passed_over, self.changes)
        index.vector_store = store
        index._store_name = name
        return index

    def search(
        self, vectors: Vectors, k: int, allowed: Labels | None = None, level: Level = "parent", step: str = "dense"
    ) -> list[list[Hit]]:
        """Return the k units of `level` whose best child is nearest to each row of (n, dim) `vectors`, best first.

        Fewer only where fewer have an access label in `allowed` (None: all). A hit's score is the cosine of its best
        child, under the name `step`, too; ties go to the child that comes first in the corpus.
        """
        store = self.vector_store
        with span(f"search {step}", {"rag_lab.queries": len(vectors), "rag_lab.k": k}):
            return best_units(
                self.chunks, level, lambda rows, n: store.search(vectors[rows], n, allowed), len(vectors), k, step
            )

    def search_terms(
        self, name: SparseName, analyzer: AnalyzerChoice, texts: Sequence[str], k: int, allowed: Labels | None = None,
        level: Level = "parent", units: Unit = "child",
    ) -> list[list[Hit]]:  # fmt: skip
        """Return the k units of `level` whose best child scores highest for each text in a sparse index; see `search`.

        Scores are those of a corpus of the allowed children alone. Where `units` are documents, files are scored: the k
        highest, each with the unit of it whose child scores highest by itself, by the same method over all children.
        """
        if units == "document":
            found = zip(*self.sparse(name, analyzer, units, allowed).search(texts, k), strict=True)
            of_children = self.search_terms(name, analyzer, texts, max(1, self.manifest.n_files), allowed, "document")
            hits = []
            for (sources, scores), children in zip(found, of_children, strict=True):
                best = {child.source: child.chunk_id for child in children}
                pairs = [(best[source], score) for source, score in zip(sources, scores, strict=True) if source in best]
                hits.append(self.units([child for child, _ in pairs], [score for _, score in pairs], k, level, name))
            return hits
        words = self.sparse(name, analyzer, allowed=allowed)
        with span(f"search {name}", {"rag_lab.queries": len(texts), "rag_lab.k": k}):
            return best_units(
                self.chunks, level, lambda rows, n: words.search([texts[row] for row in rows], n), len(texts), k, name
            )

    def units(self, chunk_ids: Sequence[str], scores: Sequence[float], k: int, level: Level, step: str) -> list[Hit]:
        """Return the first k units of `level` that hold these children, given best first; see `search`."""
        return best_units(self.chunks, level, lambda rows, n: ([list(chunk_ids)], [list(scores)]), 1, k, step)[0]

    def sparse(
        self, name: SparseName, analyzer: AnalyzerChoice, units: Unit = "child", allowed: Labels | None = None
    ) -> SparseIndex:
        """Return the sparse index of children or files with allowed labels alone: other texts would show in scores."""
        visible = self._visible(allowed)
        key = (name, self.analyzer(analyzer, visible), units, visible)
        if key not in self._sparse:
            context = self._searched_identity() if units == "child" else {}
            folder = self.path / indexes.SEARCHED / (f"context-{digest(context)[:32]}" if context else "")
            texts = self.searched_children if units == "child" else self.chunks.files
            self._sparse[key] = open_sparse(folder, *key[:2], texts, units, visible)
        return self._sparse[key]

    def text(self, hit: Hit) -> str:
        """Return the text of what was retrieved."""
        return self.chunks.document(hit.source, hit.page).text[hit.start : hit.end]

    def same_files(self) -> tuple[tuple[str, ...], ...]:
        """Return the groups of files that have the same bytes."""
        same: dict[str, list[str]] = {}
        for source, content in self.manifest.made_of["files"].items():
            same.setdefault(content, []).append(source)
        return tuple(tuple(names) for names in same.values() if len(names) > 1)

    def copies(self, source: str) -> list[str]:
        """Return the other indexed files that read the same as this one, page by page."""
        if self._same_text is None:
            self._same_text = indexes.files_of_the_same_text(self.chunks.pages())
        return [name for name in self._same_text.get(source, ()) if name != source]

    def is_visible(self, source: str, question: Question) -> bool:
        """Tell whether the asker may see a file; one without attributes of its own is everybody's."""
        attributes = self.manifest.made_of["attributes"].get(source, {"namespace": "", "permissions": ()})
        return may_see(question, attributes["namespace"], attributes["permissions"])

    def locate(self, evidence: Evidence) -> tuple[Evidence, str]:
        """Return the evidence with page, span and context, else as it was; and why it was not found, else ""."""
        if evidence not in self._located:
            self._located[evidence] = locate_evidence(self.chunks, evidence, self.manifest)
        return self._located[evidence]

    def _visible(self, allowed: Labels | None) -> Labels | None:
        """Return those of the labels here that are allowed, None where all are."""
        return None if allowed is None or allowed >= self.chunks.labels else allowed & self.chunks.labels

    @cached_property
    def manifest(self) -> indexes.Manifest:
        """What is known of the index without opening it."""
        return indexes.read_manifest(self.path)


def open_index(
    corpus_dir: Path,
    config: CorpusConfig,
    embedder: Embedder,
    *,
    home: Path,
    store: StoreConfig = StoreConfig(),  # noqa: B008 - frozen
    vision: ChatModel | None = None,
    splitter: Any = None,
    readers: Mapping[str, Any] = MappingProxyType({}),
    custom_store: Any = None,
    writer: ChatModel | None = None,
    asks: bool = True,
    others: Mapping[str, Path] = MappingProxyType({}),
    progress: Watch = False,
    build: bool = True,
) -> CorpusIndex:
    """Open the index of a corpus folder below `home`, building it where it is missing or damaged, which is logged.

    An unchanged corpus is not read again; after a change, only files never read are read. Vectors are built once they
    are searched, and only texts never seen are embedded.

    Args:
        embedder: embeds the children, and sentences for a splitter that asks it to.
        home: where indexes, and all that is remembered, are kept.
        vision: reads PDF files where `config.pdf` is `vision`.
        splitter: an object in place of the splitter that is named, as are `custom_store` and `readers` (by suffix).
        writer: writes what stands before a child where `config.context` is `llm`; not where `asks` is False.
        others: folders by name that are indexed, too: corpora, and that of distractors; see `list_corpus`.
        progress: show a bar while texts are embedded, or call this with their number.
        build: False names an index that is missing without building it; its `is_built` is False.
    """
    reading = Reading(config, vision, home, readers)
    if isinstance(embedder, RememberedEmbedder):
        remembered = replace(embedder, progress=progress)
    else:
        remembered = RememberedEmbedder(embedder, home / "vectors.sqlite", progress)
    recipe = indexes.Recipe(config, reading, splitter_of(config, remembered, splitter))
    contexts = Contexts(config.context, writer, Memory(home / "files.sqlite"), asks, config.sheet_rows == "one")
    vectors = ChildVectors(remembered, store, custom_store, contexts)

    def opened(known: tuple[Listing, dict[str, str], dict[str, str]] | None, sources: Collection[str]) -> CorpusIndex:
        files = (rules_folder(corpus_dir) / name for name in (ATTRIBUTES_FILE, REMOVED_FILE))
        rules = folders.file_digests({path.name: path for path in files if path.exists()}, None)
        is_known = known is not None and known[2] == rules and not config.distractors
        again = folders.list_again(*known[:2], corpus_dir, sources) if known and is_known else None
        if again:
            worker.start()  # it is ready when the files that differ are known
        listing, digests = again or folders.list_corpus(
            corpus_dir, reading.loaders, home / folders.DIGESTS, config.distractors, others
        )
        parts = indexes.made_of(listing, digests, recipe)
        if not build:
            return CorpusIndex(home / "indexes" / digest(parts), corpus_dir, vectors, listing.problems)
        cuts = {**cut_identity(config, recipe.splitter), "distractors": config.distractors, "also": listing.corpora}
        last = home / "tracked" / digest([str(corpus_dir.resolve()), cuts])
        path, earlier, was = indexes.ensure_index(listing, parts, recipe, home, last)
        names = sorted(earlier[1] if earlier else digests.keys() | was.keys())
        changes = Changes(
            added=tuple(name for name in names if name not in was),
            changed=tuple(name for name in names if name in was and digests.get(name, was[name]) != was[name]),
            removed=tuple(name for name in names if name not in digests),
        )
        index = CorpusIndex(path, corpus_dir, vectors, listing.problems, changes, earlier)
        index.after = lambda others: opened((listing, digests, rules), others)
        return index

    return opened(None, ())


def locate_all(index: CorpusIndex, questions: Sequence[Question]) -> tuple[list[Question], list[Problem]]:
    """Return the questions with their evidence located, and a problem for each piece of evidence that was not found.

    Evidence in a document that the asker may not see is taken off the question, with its answers in words.
    """
    located, problems = [], []
    for question in questions:
        kept = []
        for evidence in question.evidence:
            reason = _NOT_VISIBLE
            if index.is_visible(evidence.source, question):
                found, reason = index.locate(evidence)
                copies = tuple(source for source in index.copies(found.source) if index.is_visible(source, question))
                kept.append(replace(found, copies=copies) if copies else found)
            if reason:
                reason = f"evidence of question {question.question_id!r}: {reason}"
                problems.append(Problem(str(index.corpus_dir / evidence.source), reason))
        answers = question.answers if len(kept) == len(question.evidence) else ()
        located.append(replace(question, evidence=tuple(kept), answers=answers))
    folders.refuse_answers(index.manifest.made_of["files"], index.chunks.pages, located)
    return located, problems
