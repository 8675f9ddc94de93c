"""BEIR folders: corpus.jsonl, queries.jsonl and judgements, qrels/<split>.tsv or TREC's; a text file a document.

Thakur et al. (2021), "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models". Only
judged queries become questions. Their evidence is every document judged above 0, with its grade (`grade_scale` where
judgements are no whole numbers); what was judged 0 or less is kept as not relevant. Their answers are
`metadata.answers`, if there are any. A query's id may be percent-encoded, as the exporter writes it. A line of
judgements is query, document and score by tabs, or by spaces query, 0, document and grade, as `trec_eval` reads them.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_lab.corpus.normalize import normalize
from rag_lab.data.evidence import grade_scale
from rag_lab.data.formats.draft import Draft, FileNames, with_judged
from rag_lab.data.questions_file import describe, finite
from rag_lab.errors import DatasetError, unknown_name
from rag_lab.records import Evidence, Problem, Question

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
    names, sources = FileNames(), {}
    corpus = source / "corpus.jsonl"
    for doc_id, record in _records(corpus, _Document, draft.problems):
        text = normalize("\n".join(part for part in ((record.title or "").strip(), record.text) if part.strip()))
        if text.strip():
            sources[doc_id] = f"{names.name(doc_id, default='document')}.txt"
            draft.documents[sources[doc_id]] = text
        else:
            draft.problems.append(Problem(str(corpus), f"document {doc_id!r} is empty and was left out."))
    queries = dict(_records(source / "queries.jsonl", _Query, draft.problems))
    for query_id, judged in judgements.items():
        for line in (line for doc_id, (line, _) in judged.items() if doc_id not in sources):
            draft.problems.append(Problem(str(qrels), "the document is not in corpus.jsonl; left out.", line))
        evidence = [Evidence(sources[name], grade=grade) for name, (_, grade) in judged.items() if name in sources]
        fault = _fault(queries.get(query_id), judged, evidence)
        if fault:
            draft.problems.append(Problem(str(qrels), f"query {query_id!r} was left out: {fault}."))
        else:
            query = queries[query_id]
            known = (query.metadata.answers if query.metadata else None) or ()
            answers = tuple(answer for answer in known if answer.strip())
            question = Question(unquote(query.record_id), query.text.strip(), answers)
            draft.questions.append(with_judged(question, evidence))
    return draft


def _fault(query: _Query | None, judged: dict[str, tuple[int, int]], found: list[Evidence]) -> str:
    if query is None:
        return "it is not in queries.jsonl"
    if not query.text.strip():
        return "its text is empty"
    if not any(grade for _, grade in judged.values()):
        return "no document is judged relevant"
    return "" if any(item.grade for item in found) else "none of its relevant documents is in the corpus"


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
            score = finite(spelled)
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
