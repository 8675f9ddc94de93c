"""questions.jsonl: one labelled question a line. What is wrong in a line is reported and the rest is used."""

import json
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rag_lab._kit.section import complaint
from rag_lab.errors import DatasetError, unknown_name
from rag_lab.records import MOST_ID_CHARS, QUERY_CLASSES, Evidence, Problem, Question, Turn

QUESTIONS_FILE = "questions.jsonl"
MAX_GRADE = 100  # 2 to its power is the gain in one form of nDCG
_ACCESS_KEYS = ("may_see", "namespace")
_NEAR_ACCESS = (*_ACCESS_KEYS, "permissions")  # what attributes.yaml calls it


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"must be text, but holds half a character at position {error.start}") from None
    return text


# A string that can be written: an escape in JSON can spell half of a surrogate pair.
Text = Annotated[str, AfterValidator(_encodable)]


def describe(error: ValidationError) -> str:
    """Return what is wrong, every fault at once: `page: must be a valid integer; question: field required`."""
    return "; ".join(describe_one(detail) for detail in error.errors())


def describe_one(detail: Any) -> str:
    """Return one of `error.errors()`."""
    if detail["type"] == "json_invalid":
        return f"this is not JSON ({detail['ctx']['error']})"
    key = ".".join(str(part) for part in detail["loc"])
    if not key:
        return "this is no JSON object"
    message = complaint(detail)
    return f"{key}: {message[0].lower()}{message[1:]}"


class _Line(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _EvidenceLine(_Line):
    source: str
    page: int | None = None
    quote: str | None = None
    grade: int = Field(1, ge=0, le=MAX_GRADE)


class _TurnLine(_Line):
    role: Literal["user", "assistant"]
    content: str


class _QuestionLine(_Line):
    id: str | None = None
    question: str
    answers: list[str] = []
    answerable: bool = True
    query_class: str | None = Field(None, alias="class")
    evidence: list[_EvidenceLine] = []
    history: list[_TurnLine] = []
    tags: list[str] = []
    may_see: list[str] | None = None
    namespace: str | list[str] | None = None
    forbidden: list[str] = []
    draft: dict[str, Any] = {}  # how a model came to it, for the review of drafts
    review: dict[str, Any] = {}


def read_questions(path: Path, sources: Collection[str], page_base: int) -> tuple[list[Question], list[Problem]]:
    """Return the usable questions in order, with pages counted from 1, and what was wrong.

    A line that is no question object, has no text, or repeats an id is left out; of the others only what is faulty. One
    without an id is `q` and its line.
    """
    questions: dict[str, tuple[int, Question]] = {}  # with their lines
    problems = []
    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise DatasetError(f"Cannot read {path}: {error.strerror}; a dataset keeps its questions there.") from None
    for number, text in enumerate(data.split(b"\n"), start=1):
        if not text.strip():
            continue
        question, reasons = read_question(text, sources, page_base, page_base, f"q{number}")
        if question and question.question_id in questions:
            first, _ = questions[question.question_id]
            reasons = [f"the id {question.question_id!r} is line {first}'s; the line was left out, give it its own id."]
        elif question:
            questions[question.question_id] = number, question
        problems += [Problem(str(path), reason, number) for reason in reasons]
    return [question for _, question in questions.values()], problems


def same_text(text: str) -> str:
    """Return what two texts of questions have in common where only case and spaces differ."""
    return " ".join(text.casefold().split())


def write_questions(path: Path, questions: Iterable[Question]) -> None:
    """Write `questions`, one a line, without optional keys that are empty; pages count from 1 (`page_base: 1`)."""
    lines = (json.dumps(question_line(question), ensure_ascii=False) + "\n" for question in questions)
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def question_line(question: Question, page_base: int = 1) -> dict[str, Any]:
    """Return a question as the object of its line, without optional keys that are empty."""
    evidence = []
    for item in (*question.evidence, *question.not_relevant):
        page = None if item.page is None else item.page - 1 + page_base
        keys = {
            "source": item.source,
            "page": page,
            "quote": item.quote,
            "grade": None if item.grade == 1 else item.grade,
        }
        evidence.append({key: value for key, value in keys.items() if value is not None})
    optional = {
        "class": question.query_class,
        "evidence": evidence,
        "history": [{"role": turn.role, "content": turn.content} for turn in question.history],
        "tags": list(question.tags),
        "namespace": question.namespace,
        "forbidden": list(question.forbidden),
    }
    line = {
        "id": question.question_id,
        "question": question.text,
        "answers": list(question.answers),
        "answerable": question.answerable,
        **{key: value for key, value in optional.items() if value},
    }
    if question.may_see is not None:  # an empty list is not the same as none
        line["may_see"] = list(question.may_see)
    return line


def read_question(
    text: bytes, sources: Collection[str], page_base: int, first_page: int, own_id: str
) -> tuple[Question | None, list[str]]:
    """Return the question of one line, None where it is none, and what is wrong with it; see `read_questions`.

    `page_base` is the number of a first page, `first_page` the lowest allowed; `own_id` stands for a missing id.
    """
    try:
        line = _QuestionLine.model_validate_json(text)
        json.loads(text, object_pairs_hook=_each_once)
    except ValidationError as error:
        return None, [f"{describe(error)}; the line was left out, mend it."]
    except ValueError as error:
        return None, [f"{error}; the line was left out, mend it."]
    question_id = own_id if line.id is None else line.id
    if not question_id.strip() or not line.question.strip():
        return None, [f"the {'question' if question_id.strip() else 'id'} is empty; the line was left out, fill it in."]
    if len(question_id) > MOST_ID_CHARS:
        n = len(question_id)
        return None, [f"the id has {n:,} characters, where {MOST_ID_CHARS} are the most; the line was left out."]
    misspelt = [key for key in line.model_extra or {} if get_close_matches(key.lower(), _NEAR_ACCESS, cutoff=0.7)]
    if misspelt:  # ignored, it would open to this asker what was to be closed
        return None, [f"{unknown_name('key', misspelt[0], _ACCESS_KEYS)} The line was left out, mend it."]
    reasons = []
    for part in (line, *line.evidence, *line.history):
        known = [field.alias or name for name, field in type(part).model_fields.items()]
        reasons += [f"{unknown_name('key', key, known)} It was ignored." for key in part.model_extra or {}]
    query_class = next((name for name in QUERY_CLASSES if name == line.query_class), None)
    if line.query_class != query_class:
        reasons.append(unknown_name("class", str(line.query_class), QUERY_CLASSES) + " The question has none now.")
    evidence = []
    for item in line.evidence:
        path, page = PurePosixPath(item.source), item.page
        source = item.source if item.source in sources else path.as_posix()  # documents of Python may be named by a URL
        fault = ""
        if source not in sources:
            is_outside = path.is_absolute() or ".." in path.parts
            problem = "leaves the corpus folder, give the path below it"
            named = f"the evidence names {item.source!r}, which is no readable file below corpus/"
            fault = f"the evidence {item.source!r} {problem}" if is_outside else named
        elif page is not None and page < first_page:
            fault = f"the evidence names page {page} of {item.source!r}, but pages count from {first_page}"
        if fault:
            reasons.append(f"{fault}; this evidence was left out.")
        else:
            page = None if page is None else page - page_base + 1
            evidence.append(Evidence(source, page, item.quote or None, grade=item.grade))
    question = Question(
        question_id=question_id,
        text=line.question.strip(),
        answers=tuple(line.answers),
        answerable=line.answerable,
        query_class=query_class,
        evidence=tuple(item for item in evidence if item.grade),
        not_relevant=tuple(item for item in evidence if not item.grade),
        history=tuple(Turn(turn.role, turn.content) for turn in line.history),
        tags=tuple(line.tags),
        may_see=None if line.may_see is None else tuple(line.may_see),
        namespace=tuple(line.namespace) if isinstance(line.namespace, list) else line.namespace,
        forbidden=tuple(line.forbidden),
    )
    return question, reasons


def _each_once(pairs: Sequence[tuple[str, Any]]) -> None:
    """Refuse an object that gives a key twice: the last would count, and may open what the first closed."""
    keys = [key for key, _ in pairs]
    if repeated := [key for key in keys if keys.count(key) > 1]:
        raise ValueError(f"the key {repeated[0]!r} stands twice")
