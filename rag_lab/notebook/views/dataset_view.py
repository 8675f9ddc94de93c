"""A dataset: what it holds, what is wrong with it, and its first questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rag_lab._kit.wording import counted
from rag_lab.comparison.questions.replies import place
from rag_lab.corpus.files.folder import list_files
from rag_lab.data.dataset import Dataset
from rag_lab.notebook.views.view import View
from rag_lab.records import Question
from rag_lab.report.tables.table import Table

_FIRST = 5


def to_html(dataset: Dataset) -> str:
    """Return counts, problems and the first questions; everything from outside is escaped."""
    return _view(dataset).to_html()


def to_text(dataset: Dataset) -> str:
    """Return the same as text."""
    return _view(dataset).to_text()


def _view(dataset: Dataset) -> View:
    questions = dataset.questions
    return View(
        title=f"Dataset {dataset.name}",
        facts=(
            ("About", dataset.description),
            ("Folder", str(dataset.path)),
            ("Documents", _documents(dataset)),
            ("Language", dataset.language),
            ("Licence", dataset.licence),
            ("Questions", _counts(questions)),
            ("Classes", _counted(question.query_class or "none" for question in questions)),
            ("Tags", _counted(tag for question in questions for tag in question.tags)),
            ("Labels", _labels(questions)),
            ("Problems", _problems(dataset)),
        ),
        tables=(_table(questions),) if questions else (),
    )


def _documents(dataset: Dataset) -> str:
    files = list_files(dataset.corpus_dir).files
    kinds = _counted(path.suffix.lower() or "no suffix" for path in files.values())
    return f"{counted(len(files), 'file')}: {kinds}" if files else "no file that is read"


def _counts(questions: Sequence[Question]) -> str:
    if not questions:
        return "none: it can be indexed and asked, and needs labelled questions to be evaluated"
    n = sum(question.answerable for question in questions)
    return f"{len(questions):,}, of which {n:,} can be answered from the documents and {len(questions) - n:,} can not"


def _labels(questions: Sequence[Question]) -> str:
    """Return how many of the answerable questions have an answer, and evidence."""
    asked = [question for question in questions if question.answerable]
    if not asked:
        return ""
    answers, evidence = sum(bool(one.answers) for one in asked), sum(bool(one.evidence) for one in asked)
    return f"of {counted(len(asked), 'answerable question')}, {answers:,} have an answer and {evidence:,} have evidence"


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in Counter(names).most_common())


def _problems(dataset: Dataset) -> str:
    if not dataset.problems:
        return ""
    return f"{counted(len(dataset.problems), 'problem')}; the first: {dataset.problems[0]}"


def _table(questions: Sequence[Question]) -> Table:
    rows = tuple(
        (one.question_id, one.query_class or "", one.text, " / ".join(one.answers), _evidence(one))
        for one in questions[:_FIRST]
    )
    title = f"The first {_FIRST} of {len(questions):,} questions" if len(questions) > _FIRST else "The questions"
    return Table(title, ("id", "class", "question", "answer", "evidence"), rows, names=2, words=3)


def _evidence(question: Question) -> str:
    return "; ".join(place(one.source, one.page) for one in question.evidence)
