"""What others name in a corpus, found in its index."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any

from rag_lab.access import Labels
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.records import Chunk, Hit, Level, Problem, Question
from rag_lab.stores.sparse import AnalyzerChoice, SparseName

_NOT_VISIBLE = "its asker may not see this file, so it was left out; give may_see or namespace as the file asks for."
Children = list[Chunk]  # of one unit


def locate_all(index: CorpusIndex, questions: Sequence[Question]) -> tuple[list[Question], list[Problem]]:
    """Return the questions with their evidence located, and a problem for each piece of evidence that was not found.

    Evidence in a document that the asker may not see is taken off the question, and its answers in words with it:
    nothing of such a document may stand in a trace, be it as a label.
    """
    located, problems = [], []
    for question in questions:
        kept = []
        for evidence in question.evidence:
            if index.is_visible(evidence.source, question):
                found, reason = index.locate(evidence)
                copies = tuple(source for source in index.copies(found.source) if index.is_visible(source, question))
                kept.append(replace(found, copies=copies) if copies else found)
            else:
                reason = _NOT_VISIBLE
            if reason:
                reason = f"evidence of question {question.question_id!r}: {reason}"
                problems.append(Problem(str(index.corpus_dir / evidence.source), reason))
        answers = question.answers if len(kept) == len(question.evidence) else ()
        located.append(replace(question, evidence=tuple(kept), answers=answers))
    return located, problems


def search_files(
    index: CorpusIndex,
    name: SparseName,
    analyzer: AnalyzerChoice,
    texts: Sequence[str],
    k: int,
    allowed: Labels | None,
    level: Level,
) -> list[list[Hit]]:
    """Return, for each text, a unit of `level` of each of the k files that score highest, best first.

    A unit has its file's score, kept under the name of the index, too. Of a file it is the unit whose child scores
    highest by itself, by the same method over all children.
    """
    found = zip(*index.sparse(name, analyzer, "document", allowed).search(texts, k), strict=True)
    of_children = index.search_terms(name, analyzer, texts, max(1, index.manifest.n_files), allowed, "document")
    hits = []
    for (sources, scores), children in zip(found, of_children, strict=True):
        best = {child.source: child.chunk_id for child in children}
        pairs = [(best[source], score) for source, score in zip(sources, scores, strict=True) if source in best]
        hits.append(index.units([child for child, _ in pairs], [score for _, score in pairs], k, level, name))
    return hits


class FoundChunks:
    """Finds the children of a corpus by what others call them. Texts are compared by their words."""

    def __init__(self, index: CorpusIndex) -> None:
        self._index = index
        found = index.chunks.children()
        self._by_id = {child.chunk_id: child for child in found}
        pairs = groupby(found, key=lambda child: child.parent_id)
        self._by_parent: dict[str, Children] = {parent_id: list(children) for parent_id, children in pairs}

    def units(self, found: Any) -> list[Children]:
        """Return the units that one result may mean, the likeliest first, as their children; none where it is unknown.

        `found` is the id of a child or a parent; the text of one, or a piece of it; or an object with `page_content`
        and `metadata`, of which `chunk_id` is such an id, and `source` and `page` tell equal texts apart.
        """
        if isinstance(found, str):
            return self._named(found) or self._with_text(found)
        metadata = found.metadata
        if named := self._named(str(metadata.get("chunk_id", ""))):
            return named
        source, page = "/" + str(metadata.get("source", "")).replace("\\", "/"), metadata.get("page")
        units = self._with_text(found.page_content)
        units.sort(key=lambda unit: (not source.endswith(f"/{unit[0].source}"), page != unit[0].page))
        return units

    def _named(self, name: str) -> list[Children]:
        if name in self._by_id:
            return [[self._by_id[name]]]
        return [self._by_parent[name]] if name in self._by_parent else []

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
        parent, children = self._index.chunks.parent(parent_id), self._by_parent[parent_id]
        start = parent.text.find(text.strip())
        if start < 0:
            return children
        start, end = parent.start + start, parent.start + start + len(text.strip())
        return [child for child in children if child.start < end and child.end > start] or children

    @cached_property
    def _words(self) -> tuple[dict[str, str], dict[str, str]]:
        """The words of the children, and of the parents, by their ids."""
        parents = (self._index.chunks.parent(parent_id) for parent_id in self._by_parent)
        return (
            {child.chunk_id: " ".join(child.text.split()) for child in self._by_id.values()},
            {parent.chunk_id: " ".join(parent.text.split()) for parent in parents},
        )
