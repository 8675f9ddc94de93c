"""The answers a judge is tried on: right ones from the dataset, and each made wrong in one respect.

A right answer is the first reference, given the passages that hold its evidence. A wrong one is the same answer after a
perturbation, given the same passages; where the citation is moved, the answer stays and the passage is another one's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.files.folder import load_folder
from rag_lab.corpus.index.build import CHUNKS
from rag_lab.corpus.index.chunk_store import ChunkStore, write_chunks
from rag_lab.corpus.index.locate import locate_evidence
from rag_lab.corpus.split.chunks import split
from rag_lab.data.dataset import Dataset
from rag_lab.data.perturb import (
    Perturbation,
    add_unsupported_sentence,
    change_number,
    entities,
    move_citation,
    negate,
    swap_entity,
)
from rag_lab.data.sampling import stratified
from rag_lab.errors import DatasetError
from rag_lab.records import Answer, Citation, Passage, Question, StageRecord, Trace


@dataclass(frozen=True, slots=True)
class TrialItem:
    """An answer that the judge must score; `perturbation` is None where it is right."""

    trace: Trace
    perturbation: Perturbation | None = None


def trial_items(dataset: Dataset, n_questions: int, seed: int = 0) -> list[TrialItem]:
    """Return the right answer of each of `n_questions` questions, followed by what could be made of it.

    Raises:
        DatasetError: if no question has a reference answer and evidence that was found in the corpus.
    """
    usable = [question for question in _located(dataset) if _contexts(question)]
    if not usable:
        reason = "no question has both a reference answer and evidence of which the passage is known"
        raise DatasetError(f"Dataset {dataset.name!r} cannot try a judge: {reason}; add them, or take another dataset.")
    chosen = set(stratified(usable, n_questions, seed))
    places = [place for place, question in enumerate(usable) if question.question_id in chosen]
    return [item for place in places for item in _items(usable[place], [*usable[place + 1 :], *usable[:place]])]


def _located(dataset: Dataset) -> list[Question]:
    answered = [q for q in dataset.questions if q.answerable and q.answers and q.answers[0].strip() and q.evidence]
    if not answered:
        return []
    with tempfile.TemporaryDirectory() as folder:
        documents = load_folder(dataset.corpus_dir).documents
        write_chunks(Path(folder) / CHUNKS, documents, split(documents, CorpusConfig()))
        store = ChunkStore(Path(folder) / CHUNKS)
        return [replace(q, evidence=tuple(locate_evidence(store, item)[0] for item in q.evidence)) for q in answered]


def _contexts(question: Question) -> list[str]:
    return list(dict.fromkeys(item.context for item in question.evidence if item.context))


def _items(question: Question, others: Sequence[Question]) -> list[TrialItem]:
    right, contexts = question.answers[0], _contexts(question)
    wrong: dict[Perturbation, str | None] = {
        "swapped_entity": swap_entity(right, [name for other in others for name in entities(other.answers[0])]),
        "negation": negate(right),
        "changed_number": change_number(right),
        "unsupported_sentence": add_unsupported_sentence(right, [other.answers[0] for other in others]),
    }
    items = [TrialItem(_trace(question, right, contexts))]
    items += [TrialItem(_trace(question, text, contexts), name) for name, text in wrong.items() if text is not None]
    moved = move_citation(contexts, [context for other in others for context in _contexts(other)])
    if moved is not None:
        items.append(TrialItem(_trace(question, right, [moved]), "moved_citation"))
    return items


def _trace(question: Question, answer: str, contexts: Sequence[str]) -> Trace:
    source = question.evidence[0].source
    passages = tuple(
        Passage(number, f"{source}:{number}", source, None, 0, len(text), text)
        for number, text in enumerate(contexts, 1)
    )
    citations = tuple(Citation(passage.number, source, None) for passage in passages)
    stages = (StageRecord("context"), StageRecord("generate"))
    return Trace(question, passages=passages, answer=Answer(answer, citations), stages=stages)
