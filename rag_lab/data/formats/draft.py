"""What an importer has read, and how it becomes a dataset's folder: whole or not at all."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rag_lab._kit.whole_folder import put_in_place
from rag_lab.corpus.files.walk import CORPUS_FOLDER
from rag_lab.corpus.normalize import normalize
from rag_lab.data.dataset import Dataset, is_dataset
from rag_lab.data.metadata import Metadata
from rag_lab.data.questions_file import MAX_GRADE, QUESTIONS_FILE, write_questions
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Problem, Question


@dataclass(slots=True)
class Draft:
    """A dataset in memory. Documents and quotes are `as_loaded`."""

    documents: dict[str, str] = field(default_factory=dict)  # source -> text
    questions: list[Question] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def write_draft(draft: Draft, metadata: Metadata, target: Path, force: bool) -> None:
    """Write `draft` to the folder `target`.

    Raises:
        DatasetError: if the draft holds no question or no document or cannot be loaded, `target` exists and `force` is
            not set, `target` is something else than a dataset, or it cannot be written.
    """
    if not draft.questions or not draft.documents:
        missing = "question" if draft.documents else "document"
        first = f"; the first of {len(draft.problems)} problems: {draft.problems[0]}" if draft.problems else ""
        raise DatasetError(f"Nothing was imported: there is no usable {missing}{first}")
    with _new_folder(target, force) as folder:
        for source, text in draft.documents.items():
            path = folder / CORPUS_FOLDER / source
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        write_questions(folder / QUESTIONS_FILE, draft.questions)
        metadata.save(folder)
        _refuse_unusable(folder)


def whole_grade(score: float) -> int:
    """Return a judgement as a grade: the next whole number, 0 for what is not relevant, as spam of -2."""
    return min(max(0, math.ceil(score)), MAX_GRADE)


def with_judged(question: Question, judged: Sequence[Evidence]) -> Question:
    """Return the question with what was judged: its evidence, and what is not relevant (grade 0)."""
    return replace(
        question,
        evidence=tuple(item for item in judged if item.grade),
        not_relevant=tuple(item for item in judged if not item.grade),
    )


def as_loaded(text: str) -> str:
    """Return `text` as the corpus reads it from a file."""
    return normalize(text)


def _refuse_unusable(folder: Path) -> None:
    """Load the dataset before it is put in place: one that cannot be loaded replaces nothing."""
    try:
        Dataset.load(folder)
    except DatasetError as error:
        raise DatasetError(f"Nothing was imported: {str(error).replace(f'{folder}{os.sep}', 'the new ')}") from None


@contextmanager
def _new_folder(target: Path, force: bool) -> Iterator[Path]:
    """Yield a fresh folder that becomes `target` at the end, or vanishes if anything fails."""
    _refuse_to_overwrite(target, force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            folder = Path(scratch, "new")
            folder.mkdir()
            yield folder
            put_in_place(folder, target)
    except OSError as error:
        raise DatasetError(f"Cannot write {target}: {error.strerror}; choose another folder or mend that.") from None


def _refuse_to_overwrite(target: Path, force: bool) -> None:
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not is_dataset(target):
        raise DatasetError(f"{target} exists and is no dataset; choose another folder, it is never overwritten.")
    if not force:
        raise DatasetError(f"The dataset {target} exists; choose another folder, or replace it with --force.")
