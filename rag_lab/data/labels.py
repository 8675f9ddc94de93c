"""Labels written by hand into questions.jsonl: one line is changed or added, and every other stays as it is."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from rag_lab._kit.digest import digest, whole_file
from rag_lab._kit.home import usable_home
from rag_lab.corpus.files.folder import list_files
from rag_lab.data.dataset import Dataset
from rag_lab.data.questions_file import read_questions, same_text
from rag_lab.errors import DatasetError
from rag_lab.records import Question

Line = dict[str, Any]  # a line of questions.jsonl
Asked = tuple[str, frozenset[str] | None, str | None]  # words, permissions, namespace


@dataclass(frozen=True, slots=True)
class Written:
    """One change of a file of questions: `before` is None where the line is new, `after` where nothing changed."""

    path: Path
    question_id: str
    before: bytes | None
    after: bytes | None

    def undo(self) -> None:
        """Put back what was there."""
        with _alone(self.path):
            lines = _lines(self.path)
            if self.after is None:
                return
            if self.after not in lines:
                raise DatasetError(f"The line of {self.question_id} in {self.path} was changed since; mend it there.")
            place = lines.index(self.after)
            lines[place : place + 1] = [] if self.before is None else [self.before]
            _write(self.path, lines)


def questions_file(dataset: Dataset) -> Path:
    """Return the file in which the labels of a data set stand, that of a plain folder within it."""
    if dataset.path.is_relative_to(usable_home() / "given"):
        raise DatasetError(
            "Documents that were given in Python have no folder in which labels could stand; put them into a folder, "
            "and give that."
        )
    return dataset.questions_path


def asked_by(question: Question) -> Asked:
    """Return what a label goes by: the same words of another asker are another question, of other documents."""
    permissions = None if question.may_see is None else frozenset(question.may_see)
    return same_text(question.text), permissions, question.namespace


def labelled_questions(dataset: Dataset) -> dict[Asked, Question]:
    """Return the questions without turns before them that stand in the file now, as `asked_by` has them."""
    path = questions_file(dataset)
    if not path.exists():
        return {}
    questions, _ = read_questions(path, list_files(dataset.corpus_dir, None).files.keys(), dataset.page_base)
    return {asked_by(one): one for one in questions if not one.history}


def add_evidence(dataset: Dataset, question: Question, source: str, page: int | None, quote: str) -> Written:
    """Write that `quote`, on a page counted from 1, answers the question; a question that is there gets it as well."""
    item = _item(dataset, source, page, quote)

    def change(line: Line) -> None:
        known = line.get("evidence", [])
        if not any(_same_place(one, item) and one.get("grade", 1) for one in known):  # else it has its grade
            line["evidence"] = [*(one for one in known if not _same_place(one, item)), item]
        line.pop("answerable", None)

    return _change(dataset, question, change)


def drop_evidence(dataset: Dataset, question: Question, source: str, page: int | None, quote: str) -> Written:
    """Write that `quote` does not answer the question after all."""
    item = _item(dataset, source, page, quote)

    def change(line: Line) -> None:
        line["evidence"] = [one for one in line.get("evidence", []) if not _same_place(one, item)]

    return _change(dataset, question, change)


def add_answer(dataset: Dataset, question: Question, answer: str) -> Written:
    """Write a right answer in words, behind those that are there."""

    def change(line: Line) -> None:
        known = line.get("answers", [])
        line["answers"] = known if answer in known else [*known, answer]
        line.pop("answerable", None)

    return _change(dataset, question, change)


def mark_unanswerable(dataset: Dataset, question: Question) -> Written:
    """Write that the documents hold no answer; evidence and answers of the question go."""

    def change(line: Line) -> None:
        line.pop("evidence", None)
        line |= {"answers": [], "answerable": False}

    return _change(dataset, question, change)


def _change(dataset: Dataset, question: Question, change: Callable[[Line], None]) -> Written:
    path = questions_file(dataset)
    with _alone(path):
        lines = _lines(path)
        known = {place: line for place, text in enumerate(lines) if (line := _read(text)) is not None}
        permissions = None if question.may_see is None else list(question.may_see)
        for place, line in known.items():  # the same, asked of the same documents for the same asker
            is_same_asker = (line.get("namespace"), line.get("may_see")) == (question.namespace, permissions)
            same_words = same_text(str(line.get("question", ""))) == same_text(question.text)
            if same_words and is_same_asker and not line.get("history"):
                before = lines[place]
                break
        else:
            before, taken = None, {str(one.get("id")) for one in known.values()}
            name, n = question.question_id, len(taken)
            while not name or name in taken or name == "asked":  # that of a question that was just asked
                n += 1
                name = f"q{n}"
            line = {"id": name, "question": question.text, "answers": []}
            line |= {} if permissions is None else {"may_see": permissions}
            line |= {} if question.namespace is None else {"namespace": question.namespace}
        change(line)
        after = json.dumps(line, ensure_ascii=False).encode()
        if before is not None and _read(before) == line:
            return Written(path, str(line["id"]), before, None)
        if before is None:
            lines = [*lines[:-1], after, lines[-1]] if not lines[-1].strip() else [*lines, after, b""]
        else:
            lines[place] = after
        _write(path, lines)
        return Written(path, str(line["id"]), before, after)


def _same_place(one: Any, item: Line) -> bool:
    return isinstance(one, dict) and all(one.get(key) == item.get(key) for key in ("source", "page", "quote"))


def _item(dataset: Dataset, source: str, page: int | None, quote: str) -> Line:
    return {"source": source, **({} if page is None else {"page": page - 1 + dataset.page_base}), "quote": quote}


def _lines(path: Path) -> list[bytes]:
    """Return the lines, the last of which is empty where the file ends as it should."""
    try:
        return path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [b""]
    except OSError as error:
        raise DatasetError(f"Cannot read {path}: {error.strerror}; labels are kept there.") from None


def _read(text: bytes) -> Line | None:
    try:
        line = json.loads(text.removeprefix(b"\xef\xbb\xbf"))
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("evidence", []), list) else None


def _write(path: Path, lines: list[bytes]) -> None:
    try:
        with whole_file(path) as partial:
            partial.write_bytes(b"\n".join(lines))
    except OSError as error:
        raise DatasetError(f"Cannot write {path}: {error.strerror}; make room, or give yourself the right.") from None


def _alone(path: Path) -> FileLock:
    """Hold the file alone: two notebooks that label at the same time must not undo each other."""
    folder = usable_home() / "locks"
    folder.mkdir(exist_ok=True)
    return FileLock(folder / f"{digest(str(path.resolve()))[:16]}.lock")
