"""What an importer has read, and how it becomes a dataset's folder, with names for its files: whole or not at all."""

import os
import tempfile
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rag_lab._kit.digest import put_in_place
from rag_lab.corpus.files.walk import CORPUS_FOLDER
from rag_lab.data.dataset import Dataset, Metadata, is_dataset
from rag_lab.data.questions_file import QUESTIONS_FILE, write_questions
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Problem, Question

_MAX_CHARS = 60  # at most 240 bytes in UTF-8, which leaves room for a number and a suffix within 255


@dataclass(slots=True)
class Draft:
    """A dataset in memory. Documents and quotes are `normalize`d, as the corpus reads them."""

    documents: dict[str, str] = field(default_factory=dict)  # source -> text
    questions: list[Question] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def write_draft(draft: Draft, metadata: Metadata, target: Path, force: bool) -> None:
    """Write `draft` to the folder `target`, which appears whole or not at all."""
    if not draft.questions or not draft.documents:
        missing = "question" if draft.documents else "document"
        first = f"; the first of {len(draft.problems)} problems: {draft.problems[0]}" if draft.problems else ""
        raise DatasetError(f"Nothing was imported: there is no usable {missing}{first}")
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        if not is_dataset(target):
            raise DatasetError(f"{target} exists and is no dataset; choose another folder, it is never overwritten.")
        if not force:
            raise DatasetError(f"The dataset {target} exists; choose another folder, or replace it with --force.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            folder = Path(scratch, "new")
            folder.mkdir()
            for source, text in draft.documents.items():
                path = folder / CORPUS_FOLDER / source
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="\n")
            write_questions(folder / QUESTIONS_FILE, draft.questions)
            metadata.save(folder)
            try:  # before it is put in place: one that cannot be loaded replaces nothing
                Dataset.load(folder)
            except DatasetError as error:
                reason = str(error).replace(f"{folder}{os.sep}", "the new ")
                raise DatasetError(f"Nothing was imported: {reason}") from None
            put_in_place(folder, target)
    except OSError as error:
        raise DatasetError(f"Cannot write {target}: {error.strerror}; choose another folder or mend that.") from None


def with_judged(question: Question, judged: Sequence[Evidence]) -> Question:
    """Return the question with what was judged: its evidence, and what is not relevant (grade 0)."""
    return replace(
        question,
        evidence=tuple(item for item in judged if item.grade),
        not_relevant=tuple(item for item in judged if not item.grade),
    )


class FileNames:
    """Hands out names that are safe on every file system and distinct, also where upper and lower case are the same."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # of each stem the last number that was tried: the lower ones are taken

    def name(self, text: str, default: str) -> str:
        """Return a name for `text` that no earlier call returned; letters and digits of every script are kept."""
        stem = safe_name(text) or default
        number = self._numbers.get(stem.casefold(), 0)
        name = ""
        while not name or name.casefold() in self._taken:
            number += 1
            name = stem if number == 1 else f"{stem}_{number}"
        self._numbers[stem.casefold()] = number
        self._taken.add(name.casefold())
        return name


def safe_name(text: str) -> str:
    """Return `text` as the stem of a file name: all but letters, marks, digits and `-` becomes `_`; may be empty."""
    normal = unicodedata.normalize("NFC", text)
    kept = "".join(char if (char == "-" or unicodedata.category(char)[0] in "LMN") else "_" for char in normal)
    return "_".join(part for part in kept.split("_") if part)[:_MAX_CHARS]
