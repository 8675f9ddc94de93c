"""The labels of questions: evidence that names one passage or files alone, grades, and labels written by hand.

To find one label of a passage is to find them all, so they count as one: otherwise a ranking would be asked for the
same text twice, and one that found it once would have found a half.

The gain of nDCG is the grade (Järvelin and Kekäläinen 2002), so it is a ratio of grades: all of them times one number
leave it as it was, and judgements like 0.5 and 1 become 1 and 2.

Where a label is written into questions.jsonl, one line is changed or added, and every other stays as it is.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from filelock import FileLock

from rag_lab._kit.digest import digest, whole_file
from rag_lab._kit.home import usable_home
from rag_lab._kit.wording import counted
from rag_lab.corpus.folder import list_files
from rag_lab.corpus.normalize import find_quote
from rag_lab.data.dataset import Dataset
from rag_lab.data.questions_file import MAX_GRADE, read_questions, same_text
from rag_lab.errors import DatasetError
from rag_lab.records import Document, Evidence, Problem, Question

Line = dict[str, Any]  # a line of questions.jsonl
Passage = tuple[str, int | None, str]  # file, page counted from 1, and the words there
Asked = tuple[str, frozenset[str] | None, tuple[str, ...] | None]  # words, permissions, namespaces


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
    return same_text(question.text), permissions, question.namespaces


def labelled_questions(dataset: Dataset) -> dict[Asked, Question]:
    """Return the questions without turns before them that stand in the file now, as `asked_by` has them."""
    path = questions_file(dataset)
    if not path.exists():
        return {}
    questions, _ = read_questions(path, list_files(dataset.corpus_dir, None).files.keys(), dataset.page_base)
    return {asked_by(one): one for one in questions if not one.history}


def write_label(
    dataset: Dataset,
    question: Question,
    *,
    answered_by: Passage | None = None,
    not_answered_by: Passage | None = None,
    answer: str | None = None,
    unanswerable: bool = False,
) -> Written:
    """Write into the question's line what answers it; one that the file does not have gets a line.

    Args:
        answered_by: evidence; where the file has it, with its grade, that stays.
        not_answered_by: what is no evidence after all.
        answer: a right answer in words, put behind those that are there.
        unanswerable: the documents hold no answer; evidence and answers of the question go.
    """
    path = questions_file(dataset)
    with _alone(path):
        lines = _lines(path)
        known = {place: line for place, text in enumerate(lines) if (line := _read(text)) is not None}
        permissions = None if question.may_see is None else list(question.may_see)
        namespace = list(question.namespace) if isinstance(question.namespace, tuple) else question.namespace
        for place, line in known.items():  # the same, asked of the same documents for the same asker
            is_same_asker = (line.get("namespace"), line.get("may_see")) == (namespace, permissions)
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
            line |= {} if namespace is None else {"namespace": namespace}
        if passage := answered_by or not_answered_by:
            source, page, quote = passage
            item = {
                "source": source,
                **({} if page is None else {"page": page - 1 + dataset.page_base}),
                "quote": quote,
            }
            evidence = line.get("evidence", [])
            same = [
                one
                for one in evidence
                if isinstance(one, dict) and all(one.get(key) == item.get(key) for key in ("source", "page", "quote"))
            ]
            if not_answered_by or not any(one.get("grade", 1) for one in same):  # else it has its grade
                added = [] if not_answered_by else [item]
                line["evidence"] = [*(one for one in evidence if one not in same), *added]
        if answer is not None:
            answers = line.get("answers", [])
            line["answers"] = answers if answer in answers else [*answers, answer]
        if unanswerable:
            line.pop("evidence", None)
            line |= {"answers": [], "answerable": False}
        elif not not_answered_by:
            line.pop("answerable", None)
        if "draft" in line and (before is None or _read(before) != line):
            line.setdefault("review", {"keep": True})  # a person has seen it: no second draft takes its place
        after = json.dumps(line, ensure_ascii=False).encode()
        if before is not None and _read(before) == line:
            return Written(path, str(line["id"]), before, None)
        if before is None:
            lines = [*lines[:-1], after, lines[-1]] if not lines[-1].strip() else [*lines, after, b""]
        else:
            lines[place] = after
        _write(path, lines)
        return Written(path, str(line["id"]), before, after)


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


_Passage = tuple[str, int | None, int | None, int | None, str]  # file, page, span, and the quote where it has no span
_MAX_DENOMINATOR = 1000  # thirds of a judge are told from thousandths
Place = tuple[str, int | None]  # source and page of a document
Documents = Mapping[Place, Document]
Grades = dict[Place, int]
_NO_EVIDENCE = "lost its evidence in {!r}: it names no page that was read, nor a quote that tells the page"


@dataclass(frozen=True, slots=True)
class RepeatedEvidence:
    """A passage that a question's evidence names more than once, by the places that name it."""

    question_id: str
    places: tuple[str, ...]  # `manual.pdf, page 3`

    def __str__(self) -> str:
        return f"{self.question_id}: {'; '.join(self.places)}"


def distinct(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return located evidence with each passage once, in order: of labels of one the first of the highest grade."""
    return tuple(max(items, key=lambda item: item.grade) for items in _by_passage(evidence))


def repeated_evidence(
    located: Mapping[str, Sequence[Evidence]], same_files: Mapping[str, Sequence[str]]
) -> Iterator[RepeatedEvidence]:
    """Yield the passages that located evidence names more than once; `same_files` are those that read as one does."""
    for question_id, evidence in located.items():
        items = (replace(item, copies=tuple(same_files.get(item.source, ()))) for item in evidence)
        for named in _by_passage(items):
            if len(named) > 1:
                pages = ("" if item.page is None else f", page {item.page}" for item in named)
                places = (item.source + page for item, page in zip(named, pages, strict=True))
                yield RepeatedEvidence(question_id, tuple(places))


def _by_passage(evidence: Iterable[Evidence]) -> list[list[Evidence]]:
    passages: dict[_Passage, list[Evidence]] = {}
    for item in evidence:
        quote = item.quote or "" if item.start is None else ""
        name = min((item.source, *item.copies))
        passages.setdefault((name, item.page, item.start, item.end, quote), []).append(item)
    return list(passages.values())


def names_file_alone(item: Evidence) -> bool:
    """Tell whether a label names neither page nor quote, of a file that is more than the one passage it may be."""
    return item.page is None and item.quote is None and not item.context


def whole_files_sentences(questions: Collection[Question]) -> list[str]:
    """Say of how many questions, located by a pipeline, the labels name files alone; nothing where none do."""
    labelled = [question for question in questions if question.evidence]
    n = sum(any(map(names_file_alone, question.evidence)) for question in labelled)
    if not n:
        return []
    return [
        f"The labels of {n:,} of {counted(len(labelled), 'question')} name files of several passages, without page or "
        "quote: there a rank is a file, any passage of it counts as found, and which one holds the answer is not known."
    ]


def grade_scale(scores: Iterable[float]) -> tuple[dict[float, int], str]:
    """Return the grade of each of the judgements `scores`, and a sentence on what was done to them, "" for nothing.

    They are multiplied by a factor that leaves nDCG as it was; where there is none, they are scaled and rounded up.
    What is not relevant, as spam of -2, has the grade 0.
    """
    known = set(scores)
    positive = sorted(score for score in known if score > 0)
    fractions = [Fraction(score).limit_denominator(_MAX_DENOMINATOR) for score in positive]
    factor, note = Fraction(1), ""
    if any(part.denominator != 1 or part > MAX_GRADE for part in fractions):
        is_near = all(math.isclose(part, score, rel_tol=1e-9) for part, score in zip(fractions, positive, strict=True))
        whole = math.lcm(*(part.denominator for part in fractions)) if is_near else 1
        numerators = [int(part * whole) for part in fractions]
        shared = math.gcd(*numerators) if max(numerators) > MAX_GRADE else 1
        factor = Fraction(whole, shared)
        if is_near and max(numerators) // shared <= MAX_GRADE:
            note = (
                f"judgements were multiplied by {factor}, since grades are whole numbers up to {MAX_GRADE}; nDCG stays "
                "as it was."
            )
        else:
            fractions = [Fraction(score) for score in positive]
            factor = MAX_GRADE / fractions[-1]
            note = (
                f"judgements were scaled to grades of 1 to {MAX_GRADE} and rounded up, since no factor makes all of "
                "them whole; nDCG changes a little, and what is above 0 stays relevant."
            )
    grades = {s: min(max(1, math.ceil(factor * part)), MAX_GRADE) for s, part in zip(positive, fractions, strict=True)}
    return {**dict.fromkeys(known, 0), **grades}, note


def grades_text(questions: Iterable[Question]) -> str:
    """Return how many items have each grade, highest first; "" where all are 1, as labels without grades are."""
    counts = Counter(item.grade for question in questions for item in (*question.evidence, *question.not_relevant))
    if not counts.keys() - {1}:
        return ""
    names = {0: "grade 0 (judged not relevant, so no evidence)"}
    return ", ".join(f"{names.get(one, f'grade {one}')}: {counts[one]:,}" for one in sorted(counts, reverse=True))


def judged(dataset: Dataset, documents: Documents) -> tuple[list[tuple[Question, Grades]], list[Problem]]:
    """Return the questions with the grade of every place that was judged: 0 of those that hold no evidence.

    Left out, each with a problem, are unanswerable questions, those of whose evidence no place was found, and single
    items of evidence without a place.
    """
    found: list[tuple[Question, Grades]] = []
    problems = []
    for question in dataset.questions:
        grades: Grades = {}
        reasons = []
        if not question.answerable:
            reasons.append("was left out: it is unanswerable, which the format cannot say")
        elif not question.evidence:
            reasons.append("was left out: it has no evidence")
        else:
            for item in question.evidence:
                if place := _document_of(item, documents):
                    grades[place] = max(item.grade, grades.get(place, 0))
                else:
                    reasons.append(_NO_EVIDENCE.format(item.source))
            if not grades:
                reasons.append("was left out: none of its evidence was found")
        where = f"question {question.question_id!r}"
        problems += [Problem(str(dataset.questions_path), f"{where} {reason}.") for reason in reasons]
        if grades:
            without = (_document_of(item, documents) for item in question.not_relevant)
            found.append((question, {**{place: 0 for place in without if place}, **grades}))
    return found, problems


def _document_of(item: Evidence, documents: Documents) -> Place | None:
    """Return the page that is named; of a file whose page is not named its only document, or the one with the quote."""
    if (item.source, item.page) in documents:
        return item.source, item.page
    if item.page is not None:
        return None
    pages = [place for place in documents if place[0] == item.source]
    quoting = (place for place in pages if find_quote(documents[place].text, item.quote or ""))
    return pages[0] if len(pages) == 1 else next(quoting, None)
