"""What of a dataset no exported file holds, a sentence for each kind: whose the documents are comes first."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from rag_lab.corpus.attributes import ATTRIBUTES_FILE
from rag_lab.data.dataset import Dataset
from rag_lab.data.metadata import METADATA_FILE
from rag_lab.data.places import Documents
from rag_lab.data.questions_file import QUESTIONS_FILE
from rag_lab.records import Problem, Question
from rag_lab.wording import counted

_NO_PLACE = "the format has no place for it"


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of a question: which questions have it, and what follows where it is not written."""

    has: Callable[[Question], bool]
    consequence: str = _NO_PLACE


_KEYS = {
    "may_see": _Key(lambda asked: asked.may_see is not None, "who imports the file asks as one who may see everything"),
    "namespace": _Key(lambda asked: asked.namespace is not None, "who imports the file asks in all namespaces"),
    "history": _Key(lambda asked: bool(asked.history)),
    "class": _Key(lambda asked: asked.query_class is not None),
    "tags": _Key(lambda asked: bool(asked.tags)),
    "evidence.quote": _Key(lambda asked: any(item.quote for item in asked.evidence)),
    "evidence or answers": _Key(
        lambda asked: not asked.answerable and bool(asked.evidence or asked.answers),
        "unanswerable ones have none there",
    ),
    "answers": _Key(lambda asked: bool(asked.answers)),
    "id": _Key(lambda asked: True, "an import calls each by its row"),
}
ANSWERS, IDS = "answers", "id"  # what some formats hold


def losses(dataset: Dataset, documents: Documents, held: Collection[str]) -> list[Problem]:
    """Return a problem for each kind of thing that is lost; `held` are those of ANSWERS and IDS that are not."""
    path = str(dataset.path / QUESTIONS_FILE)
    problems = _of_files(dataset, documents)
    for name, key in _KEYS.items():
        n_lost = sum(map(key.has, dataset.questions)) if name not in held else 0
        if n_lost:
            reason = f"`{name}` of {counted(n_lost, 'question')} was not written: {key.consequence}."
            problems.append(Problem(path, reason))
    return problems + _of_metadata(dataset)


def _of_files(dataset: Dataset, documents: Documents) -> list[Problem]:
    owned = {item.source for item in documents.values() if item.namespace or item.permissions}
    if not owned:
        return []
    reason = (
        f"namespace and permissions of {counted(len(owned), 'file')} were not written: imported again, everybody may "
        "see them; write this file anew for the new corpus."
    )
    return [Problem(str(dataset.path / ATTRIBUTES_FILE), reason)]


def _of_metadata(dataset: Dataset) -> list[Problem]:
    given = {"description": dataset.description, "licence": dataset.licence, "language": dataset.language}
    lost = [name for name, value in given.items() if value]
    reason = f"not written: {', '.join(lost)}; pass them on beside the file."
    return [Problem(str(dataset.path / METADATA_FILE), reason)] if lost else []
