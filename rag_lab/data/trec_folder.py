"""A folder with TREC's topics.txt and qrels.txt and documents.jsonl (`docno`, `text`), as the exporter writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_lab.data.draft import Draft, as_loaded, whole_grade, with_judged
from rag_lab.data.file_names import FileNames
from rag_lab.data.trec import Qrels, read_qrels, write_qrels
from rag_lab.data.trec_topics import read_topics, write_topics
from rag_lab.data.validation import Text, describe
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Problem, Question

TOPICS, QRELS, DOCUMENTS = "topics.txt", "qrels.txt", "documents.jsonl"


class _Document(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    docno: Text = Field(min_length=1)
    text: Text


def read_trec(source: Path) -> Draft:
    """Read the folder `source`; a bad document, topic or judgement is a problem and the rest is used.

    A document is relevant where its grade is above 0; 0.5 becomes 1, as grades are whole numbers. Topics that no
    document is relevant to become unanswerable questions.

    Raises:
        DatasetError: if one of the three files cannot be read.
    """
    draft = Draft()
    sources = _add_documents(draft, source / DOCUMENTS)
    topics, faults = read_topics(source / TOPICS)
    qrels, bad_lines = read_qrels(source / QRELS)
    reasons = [f"{asked!r} is no usable topic; left out." for asked in qrels if asked not in topics]
    for topic, text in topics.items():
        question, wrong = _question(topic, text, qrels.get(topic), sources)
        draft.questions += [question] if question else []
        reasons += wrong
    draft.problems += [*faults, *bad_lines, *(Problem(str(source / QRELS), reason) for reason in reasons)]
    return draft


def _question(
    topic: str, text: str, grades: Mapping[str, float] | None, sources: Mapping[str, str]
) -> tuple[Question | None, list[str]]:
    """Return a topic as a question, None where its judgements cannot be used, and what is wrong with them."""
    judged = [name for name, grade in (grades or {}).items() if grade > 0]
    known = [
        Evidence(sources[name], grade=whole_grade(grade)) for name, grade in (grades or {}).items() if name in sources
    ]
    reasons = [f"{name!r}, relevant to {topic!r}, is no document; left out." for name in judged if name not in sources]
    if (judged and not any(item.grade for item in known)) or grades == {}:
        return None, [*reasons, f"the question {topic!r} was left out: its judgements name no document that was read."]
    return with_judged(Question(topic, text, answerable=bool(judged)), known), reasons


def write_judged(folder: Path, questions: Iterable[Question], qrels: Qrels) -> None:
    """Write what was asked and what is relevant to it: the folder's topics and qrels."""
    write_topics(folder / TOPICS, questions)
    write_qrels(folder / QRELS, qrels)


def _add_documents(draft: Draft, path: Path) -> dict[str, str]:
    """Add every document to `draft` and return the source of each by its number."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DatasetError(f"Cannot read {path}: {error.strerror}; it holds a document a line.") from None
    names = FileNames()
    sources: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            document = _Document.model_validate_json(line)
        except ValidationError as error:
            draft.problems.append(Problem(str(path), f"{describe(error)}; the line was left out.", number))
            continue
        if document.docno in sources or not (text := as_loaded(document.text)).strip():
            reason = "was used before" if document.docno in sources else "has no text"
            draft.problems.append(Problem(str(path), f"the document {document.docno!r} {reason}; left out.", number))
            continue
        sources[document.docno] = f"{names.name(document.docno, default='document')}.txt"
        draft.documents[sources[document.docno]] = text
    return sources
