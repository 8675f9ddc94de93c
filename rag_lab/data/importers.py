"""Drafts of datasets, whole or not at all, and what is read into them: BEIR folders and SQuAD JSON.

BEIR: corpus.jsonl, queries.jsonl and judgements, qrels/<split>.tsv or TREC's; a text file a document. Thakur et al.
(2021), "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models". Only judged queries
become questions. Their evidence is every document judged above 0, with its grade (`grade_scale` where judgements are no
whole numbers); what was judged 0 or less is kept as not relevant. Their answers are `metadata.answers`, if there are
any. A query's id may be percent-encoded, as the exporter writes it. A line of judgements is query, document and score
by tabs, or by spaces query, 0, document and grade, as `trec_eval` reads them.

SQuAD (v1.1, and v2 with unanswerable questions): a document a paragraph. Rajpurkar et al. (2016), "SQuAD: 100,000+
Questions for Machine Comprehension of Text"; Rajpurkar, Jia and Liang (2018), "Know What You Don't Know". The evidence
of a question is its paragraph and, as a quote, the sentence around the first answer: the answer alone is often a word
that stands in several places.
"""

import json
import math
import os
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_lab._kit.digest import put_in_place
from rag_lab._kit.wording import counted
from rag_lab.corpus.normalize import normalize
from rag_lab.corpus.rules import CORPUS_FOLDER
from rag_lab.corpus.spans import SENTENCE_END
from rag_lab.data.dataset import METADATA_FILE, Dataset, Metadata, is_dataset
from rag_lab.data.labels import grade_scale
from rag_lab.data.questions_file import QUESTIONS_FILE, Text, describe, write_questions
from rag_lab.errors import DatasetError, unknown_name
from rag_lab.records import Evidence, Problem, Question

_MAX_NAME_CHARS = 60  # at most 240 bytes in UTF-8, which leaves room for a number and a suffix within 255


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
            about = yaml.safe_dump(metadata.model_dump(), sort_keys=False, allow_unicode=True)
            (folder / METADATA_FILE).write_text(about, encoding="utf-8")
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


def file_name(text: str, default: str, taken: dict[str, int]) -> str:
    """Return a name for a file, without suffix, safe on every file system and not `taken`, to which it is added.

    All of `text` but letters, marks, digits and `-` becomes `_`; case makes no other name. `taken` has the last number
    of each.
    """
    normal = unicodedata.normalize("NFC", text)
    kept = "".join(char if (char == "-" or unicodedata.category(char)[0] in "LMN") else "_" for char in normal)
    stem = "_".join(part for part in kept.split("_") if part)[:_MAX_NAME_CHARS] or default
    number, name = taken.get(stem.casefold(), 0), stem
    while name.casefold() in taken:
        number += 1
        name = f"{stem}_{number}"
    taken[name.casefold()] = 1
    taken[stem.casefold()] = max(1, number)
    return name


_Judged = dict[str, dict[str, tuple[int, int]]]  # query -> document -> line and grade of its judgement

_QRELS = (".txt", ".qrels", ".tsv")  # the last goes first where a split has several
_NO_JUDGEMENT = "not query-id, corpus-id and score, a number, by tabs, nor TREC's four fields; left out."


class _Record(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    record_id: str = Field(alias="_id")
    text: str


class _Document(_Record):
    title: str | None = None


class _Facts(BaseModel):
    answers: list[str] | None = None


class _Query(_Record):
    metadata: _Facts | None = None


_AnyRecord = TypeVar("_AnyRecord", bound=_Record)


def read_beir(source: Path, split: str = "test") -> Draft:
    """Read the folder `source`; a bad line is a problem and the rest is used."""
    draft = Draft()
    found = {path.stem: path for suffix in _QRELS for path in sorted((source / "qrels").glob(f"*{suffix}"))}
    if not found:
        raise DatasetError(f"{source} is no BEIR folder: it has no judgements qrels/*.tsv; give a folder that has.")
    if split not in found:
        raise DatasetError(unknown_name("split", split, found))
    qrels = found[split]
    judgements = _judgements(qrels, draft.problems)
    taken: dict[str, int] = {}
    sources = {}
    corpus = source / "corpus.jsonl"
    for doc_id, record in _records(corpus, _Document, draft.problems):
        text = normalize("\n".join(part for part in ((record.title or "").strip(), record.text) if part.strip()))
        if text.strip():
            sources[doc_id] = f"{file_name(doc_id, 'document', taken)}.txt"
            draft.documents[sources[doc_id]] = text
        else:
            draft.problems.append(Problem(str(corpus), f"document {doc_id!r} is empty and was left out."))
    queries = dict(_records(source / "queries.jsonl", _Query, draft.problems))
    for query_id, judged in judgements.items():
        for line in (line for doc_id, (line, _) in judged.items() if doc_id not in sources):
            draft.problems.append(Problem(str(qrels), "the document is not in corpus.jsonl; left out.", line))
        evidence = [Evidence(sources[name], grade=grade) for name, (_, grade) in judged.items() if name in sources]
        query = queries.get(query_id)
        if query is None:
            fault = "it is not in queries.jsonl"
        elif not query.text.strip():
            fault = "its text is empty"
        elif not any(grade for _, grade in judged.values()):
            fault = "no document is judged relevant"
        else:
            fault = "" if any(item.grade for item in evidence) else "none of its relevant documents is in the corpus"
        if fault or query is None:
            draft.problems.append(Problem(str(qrels), f"query {query_id!r} was left out: {fault}."))
        else:
            known = (query.metadata.answers if query.metadata else None) or ()
            answers = tuple(answer for answer in known if answer.strip())
            question = Question(unquote(query.record_id), query.text.strip(), answers)
            draft.questions.append(with_judged(question, evidence))
    return draft


def _judgements(path: Path, problems: list[Problem]) -> _Judged:
    """Return the judged documents of every judged query, in the order of the file."""
    scores: dict[str, dict[str, tuple[int, float]]] = defaultdict(dict)
    for number, line in _lines(path):
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        try:
            if text.count("\t") == 2:
                query_id, doc_id, spelled = text.split("\t")
            else:
                query_id, _, doc_id, spelled = text.split()
            score = float(spelled)
            if not math.isfinite(score):
                raise ValueError
        except ValueError:
            if number > 1:  # the first line is the header
                problems.append(Problem(str(path), _NO_JUDGEMENT, number))
            continue
        first, before = scores[query_id].get(doc_id, (number, score))
        scores[query_id][doc_id] = (first, max(before, score))
    grades, note = grade_scale(score for of_query in scores.values() for _, score in of_query.values())
    problems += [Problem(str(path), note)] if note else []
    return {
        query_id: {doc_id: (number, grades[score]) for doc_id, (number, score) in of_query.items()}
        for query_id, of_query in scores.items()
    }


def _records(path: Path, kind: type[_AnyRecord], problems: list[Problem]) -> Iterator[tuple[str, _AnyRecord]]:
    """Yield (id, record) of every usable line."""
    seen: set[str] = set()
    for number, line in _lines(path):
        try:
            record = kind.model_validate_json(line)
        except ValidationError as error:
            problems.append(Problem(str(path), f"{describe(error)}; the line was left out.", number))
            continue
        if record.record_id in seen or not record.record_id.strip():
            reason = "was used before" if record.record_id in seen else "is empty"
            problems.append(Problem(str(path), f"the id {record.record_id!r} {reason}; left out.", number))
            continue
        seen.add(record.record_id)
        yield record.record_id, record


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            yield from ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    except OSError as error:
        raise DatasetError(f"Cannot read {path}: {error.strerror}; a BEIR folder has that file.") from None


_MIN_QUOTE_CHARS = 20  # shorter is an abbreviation's end or a heading


class _Answer(BaseModel):
    text: Text
    answer_start: int


class _Item(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: Text
    question: Text
    answers: list[_Answer] = []
    is_impossible: bool = False


class _Paragraph(BaseModel):
    context: Text
    qas: list[Any]


def read_squad(source: Path) -> Draft:
    """Read the file `source`; a bad paragraph, question or answer span is a problem and the rest is used."""
    draft = Draft()
    seen: set[str] = set()
    for name, label, data in _paragraphs(source):
        try:
            paragraph = _Paragraph.model_validate(data)
        except ValidationError as error:
            draft.problems.append(Problem(str(source), f"{label}: {describe(error)}; it was left out."))
            continue
        text = normalize(paragraph.context)
        if not text.strip():
            n_left_out = counted(len(paragraph.qas), "question")
            draft.problems.append(Problem(str(source), f"{label} has no text; it was left out with {n_left_out}."))
            continue
        draft.documents[name] = text
        for item in paragraph.qas:
            if reason := _add_question(draft, name, paragraph.context, item, seen):
                draft.problems.append(Problem(str(source), f"{label}: {reason}."))
    return draft


def _paragraphs(source: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield the source of each paragraph, how problems name it, and what it holds."""
    try:
        data = json.loads(source.read_bytes())
    except OSError as error:
        raise DatasetError(f"Cannot read {source}: {error.strerror}; give a SQuAD JSON file.") from None
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{source} is not JSON ({error}); give a SQuAD JSON file.") from None
    articles = data.get("data") if isinstance(data, dict) else None
    if not isinstance(articles, list):
        raise DatasetError(f"{source} is no SQuAD JSON: it has no list `data`; give one, or another format's name.")
    taken: dict[str, int] = {}
    for article in articles:
        title = article.get("title") if isinstance(article, dict) else None
        paragraphs = article.get("paragraphs") if isinstance(article, dict) else None
        folder = file_name(str(title or ""), "article", taken)
        paragraphs = paragraphs if isinstance(paragraphs, list) else [None]
        digits = max(2, len(str(len(paragraphs))))
        for number, paragraph in enumerate(paragraphs, start=1):
            yield f"{folder}/{number:0{digits}}.txt", f"paragraph {number} of article {title!r}", paragraph


def _add_question(draft: Draft, source: str, context: str, data: Any, seen: set[str]) -> str:
    """Add a question to `draft` and return what is wrong with it, "" where nothing is."""
    try:
        item = _Item.model_validate(data)
    except ValidationError as error:
        return f"a question was left out: {describe(error)}"
    answers = [answer for answer in item.answers if answer.text.strip()]
    fault = ""
    if not item.id.strip() or not item.question.strip():
        fault = "its id or its text is empty"
    elif item.id in seen:
        fault = "an earlier question has its id"
    elif not item.is_impossible and not answers:
        fault = "it has no answer and is not marked is_impossible"
    if fault:
        return f"question {item.id!r} was left out: {fault}"
    seen.add(item.id)
    if item.is_impossible:
        draft.questions.append(Question(item.id, item.question.strip(), answerable=False))
        return ""
    text, at = answers[0].text, answers[0].answer_start
    starts = [start for start in range(len(context) - len(text) + 1) if context.startswith(text, start)]
    nearest = min(starts, key=lambda start: abs(start - at), default=None)  # at its offset, or nearest to that
    span = None if nearest is None else (nearest, nearest + len(text))
    quote = normalize(quote_around(context, *span)) if span else None
    texts = tuple(dict.fromkeys(answer.text for answer in answers))
    draft.questions.append(Question(item.id, item.question.strip(), texts, evidence=(Evidence(source, None, quote),)))
    return "" if span else f"question {item.id!r} has no quote: its answer does not stand in the paragraph"


def quote_around(text: str, start: int, end: int) -> str:
    """Return sentences of `text` that hold text[start:end], verbatim: 20 characters or more that stand there once."""
    bounds = sorted({0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)})
    first = max(index for index, bound in enumerate(bounds) if bound <= start)
    last = min(index for index, bound in enumerate(bounds) if bound >= end)
    while first > 0 or last < len(bounds) - 1:
        quote = text[bounds[first] : bounds[last]].strip()
        if len(quote) >= _MIN_QUOTE_CHARS and (text.find(quote, text.find(quote) + 1) == -1):
            return quote
        first, last = max(0, first - 1), min(len(bounds) - 1, last + 1)
    return text.strip()
