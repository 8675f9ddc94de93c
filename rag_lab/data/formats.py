"""Formats that datasets are imported from and exported to, by name; tables, and TREC's files of a run.

Tables have the columns of RAGAs (CSV, JSONL, Parquet): user_input, reference, reference_contexts. The distinct
reference contexts become the documents, and the evidence of a question is those of its row. RAGAs knows no grades: a
column of our own, `reference_grades`, may give one a context.

TREC's files are topics (what was asked), qrels (what is relevant) and rankings (what was found). ranx, ir_measures and
PyTerrier read them. The unit is the page of a paged file, the file otherwise: its number is `manual.pdf#p3` or
`notes.txt`, with spaces as `%20`. Where a question's evidence names a paged file without a page, the file is the unit
of it, and of all files where the evidence names files alone. Formats: https://trec.nist.gov, as `trec_eval` reads them.
"""

import ast
import csv
import io
import json
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import BaseModel, Field, ValidationError, field_validator

from rag_lab._kit.wording import counted
from rag_lab.corpus.folder import load_folder
from rag_lab.corpus.normalize import normalize
from rag_lab.corpus.rules import ATTRIBUTES_FILE
from rag_lab.data.dataset import METADATA_FILE, Dataset, Metadata
from rag_lab.data.importers import Draft, read_beir, read_squad, with_judged, write_draft
from rag_lab.data.labels import Documents, judged
from rag_lab.data.questions_file import MAX_GRADE, Text, describe
from rag_lab.errors import ConfigError, DatasetError, unknown_name
from rag_lab.records import Evidence, Hit, Problem, Question, Trace

_NO_PLACE = "the format has no place for it"
# Keys of a question that are not written: which questions have one, and what follows.
_NOT_WRITTEN: dict[str, tuple[Callable[[Question], bool], str]] = {
    "may_see": (lambda q: q.may_see is not None, "who imports the file asks as one who may see everything"),
    "namespace": (lambda q: q.namespace is not None, "who imports the file asks in all namespaces"),
    "history": (lambda q: bool(q.history), _NO_PLACE),
    "class": (lambda q: q.query_class is not None, _NO_PLACE),
    "tags": (lambda q: bool(q.tags), _NO_PLACE),
    "evidence.quote": (lambda q: any(item.quote for item in q.evidence), _NO_PLACE),
}


_MAX_CELL_CHARS = 2**31 - 1
# A row's number (its line, where the file has lines) and its values, or what is wrong with it.
_Rows = Iterator[tuple[int, dict[str, Any] | str]]


class _Row(BaseModel):
    user_input: Text
    reference: Text | None = None
    reference_contexts: list[Text] | None = None
    reference_grades: list[Annotated[int, Field(ge=0, le=MAX_GRADE)]] | None = None

    @field_validator("reference_contexts", "reference_grades", mode="before")
    @classmethod
    def _parse_list(cls, value: Any) -> Any:
        """Read a list that a CSV cell holds as text: JSON, or what Python prints, as pandas writes it."""
        if not isinstance(value, str):
            return value
        if not value.strip():
            return []
        if not value.lstrip().startswith("["):
            return [value]
        with suppress(ValueError, RecursionError):
            return json.loads(value)
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
            tokens = tokenize.generate_tokens(io.StringIO(value).readline)
            kinds = [token.type for token in tokens if token.type not in (tokenize.NL, tokenize.NEWLINE)]
            # Two texts that follow each other, as NumPy prints an array, would be one to Python.
            if (tokenize.STRING, tokenize.STRING) not in pairwise(kinds):
                return ast.literal_eval(value)  # literals only: nothing is executed
        raise ValueError("must be a list of texts, as JSON")


def read_table(source: Path) -> Draft:
    """Read the file `source`; a bad row is a problem and the rest is used."""
    draft = Draft()
    names: dict[str, str] = {}  # context -> source
    columns: set[str] = set()
    reader = _READERS.get(source.suffix.lower())
    if reader is None:
        raise DatasetError(f"{source} is no table that can be read: allowed are {', '.join(_READERS)} files.")
    try:
        rows = list(reader(source))
    except OSError as error:
        raise DatasetError(f"Cannot read {source}: {error.strerror}; give a file that can be read.") from None
    for number, data in rows:
        columns.update(data if isinstance(data, dict) else ())
        row = _parse_row(data)
        if isinstance(row, str):
            draft.problems.append(Problem(str(source), f"{row}; the row was left out.", number))
            continue
        grades: dict[str, int] = {}
        contexts = [normalize(context) for context in row.reference_contexts or ()]
        for context, grade in zip(contexts, row.reference_grades or [1] * len(contexts), strict=True):
            if context.strip():
                grades[context] = max(grade, grades.get(context, 0))
                names.setdefault(context, f"context_{len(names) + 1:05}.txt")
        answers = (row.reference,) if row.reference and row.reference.strip() else ()
        judged = [Evidence(names[context], grade=grade) for context, grade in grades.items()]
        draft.questions.append(with_judged(Question(f"row_{number}", row.user_input.strip(), answers), judged))
        if not all(context.strip() for context in contexts):
            reason = "a reference context holds no text and was left out."
            draft.problems.append(Problem(str(source), reason, number))
    if not draft.questions and not draft.problems:
        raise DatasetError(f"{source} holds no row: give a table with a row for each question.")
    if missing := [column for column in ("user_input", "reference_contexts") if column not in columns]:
        found = ", ".join(sorted(columns)) or "none"
        raise DatasetError(
            f"{source} has no column {' and '.join(missing)}; found: {found}. Rename the columns as RAGAs names them."
        )
    draft.documents = {name: context for context, name in names.items()}
    return draft


def _parse_row(data: dict[str, Any] | str) -> _Row | str:
    """Return the row, or what is wrong with it."""
    if isinstance(data, str):
        return data
    try:
        row = _Row.model_validate(data)
    except ValidationError as error:
        return describe(error)
    n_contexts, grades = len(row.reference_contexts or ()), row.reference_grades
    if grades and len(grades) != n_contexts:
        return f"reference_grades holds {len(grades)} grades for {n_contexts} contexts, give one each"
    return row if row.user_input.strip() else "user_input is empty"


def _csv_rows(source: Path) -> _Rows:
    try:
        text = source.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{source} is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8.") from None
    limit = csv.field_size_limit(_MAX_CELL_CHARS)  # contexts can be longer than the module's 131,072 characters
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        _ = reader.fieldnames  # reads the header
        line = reader.line_num + 1
        for row in reader:
            yield line, "the row has more cells than the header" if None in row else row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DatasetError(f"{source}:{reader.line_num}: not CSV ({error}); mend the line.") from None
    finally:
        csv.field_size_limit(limit)


def _jsonl_rows(source: Path) -> _Rows:
    for number, line in enumerate(source.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            yield number, data if isinstance(data, dict) else "this is no JSON object"
        except (ValueError, RecursionError) as error:
            yield number, f"this is not JSON ({error})"


def _parquet_rows(source: Path) -> _Rows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(source).to_pylist()
    except pa.ArrowException as error:
        raise DatasetError(f"{source} is not Parquet ({error}); give a file that is.") from None
    yield from enumerate(rows, start=1)


_READERS = {".csv": _csv_rows, ".jsonl": _jsonl_rows, ".parquet": _parquet_rows}
SUFFIXES = tuple(_READERS)


@dataclass(frozen=True, slots=True)
class Importer:
    """A format: how it is read, what it is called for users, and how it is told from the others."""

    read: Callable[..., Draft]
    description: str
    matches: Callable[[Path], bool]
    options: tuple[str, ...] = ()  # keyword arguments of `read`


IMPORTERS = {
    "beir": Importer(
        read_beir,
        "a folder with corpus.jsonl, queries.jsonl and qrels/<split>.tsv, or TREC's qrels as .txt or .qrels",
        lambda path: (path / "corpus.jsonl").is_file(),
        options=("split",),
    ),
    "squad": Importer(read_squad, "a SQuAD JSON file, v1.1 or v2", lambda path: path.suffix.lower() == ".json"),
    "table": Importer(
        read_table, "a CSV, JSONL or Parquet file with RAGAs' columns", lambda path: path.suffix.lower() in SUFFIXES
    ),
}


def import_dataset(
    format: str | None,
    source: Path | str,
    target: Path | str,
    *,
    force: bool = False,
    name: str = "",
    description: str = "",
    licence: str = "",
    language: str = "",
    **options: Any,
) -> tuple[Dataset, list[Problem]]:
    """Write `source` as a dataset to the folder `target`, and return it with what was left out.

    Args:
        format: a key of `IMPORTERS`; None guesses it.
        target: the folder to make, or with `force` to replace; it appears when it is whole.
        name: that of the target where empty; as `description`, `licence` and `language` for dataset.yaml.
        options: the format's own, e.g. `split` of BEIR.
    """
    source, target = Path(source), Path(target)
    if format is not None and format not in IMPORTERS:
        raise DatasetError(unknown_name("format", format, IMPORTERS))
    if not source.exists():
        raise DatasetError(f"There is no {source} to import; give the path of a file or folder.")
    fitting = [format] if format else [known for known, importer in IMPORTERS.items() if importer.matches(source)]
    if len(fitting) != 1:
        formats = "; ".join(f"{known}: {importer.description}" for known, importer in IMPORTERS.items())
        raise DatasetError(f"Cannot tell the format of {source}; name one of {formats}.")
    importer = IMPORTERS[fitting[0]]
    if unknown := ", ".join(repr(option) for option in options if option not in importer.options):
        allowed = f"allowed is {', '.join(importer.options)}" if importer.options else "it has none, leave it out"
        raise ConfigError(f"The format {fitting[0]!r} has no option {unknown}: {allowed}.")
    if source.resolve().is_relative_to(target.resolve()):
        raise DatasetError(f"The target {target} holds the source {source}; choose another folder.")
    draft = importer.read(source, **options)
    metadata = Metadata(name=name or target.resolve().name, description=description, licence=licence, language=language)
    write_draft(draft, metadata, target, force)
    dataset = Dataset.load(target.resolve())
    return dataset, [*draft.problems, *dataset.problems]


def export_dataset(dataset: Dataset, format: str, target: Path | str) -> list[Problem]:
    """Write `dataset` to `target`, which must not exist, in a format of `EXPORTERS`.

    Return what the format cannot hold, whose the documents are first, then what of the dataset cannot be read.
    """
    target = Path(target)
    if format not in EXPORTERS:
        raise DatasetError(unknown_name("format", format, EXPORTERS))
    if target.exists():
        raise DatasetError(f"{target} exists and is never overwritten; choose another name or remove it.")
    corpus = load_folder(dataset.corpus_dir)
    documents: Documents = {(item.source, item.page): item for item in corpus.documents}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        problems = EXPORTERS[format](dataset, documents, target)
    except OSError as error:
        raise DatasetError(f"Cannot write {target}: {error.strerror}; choose another place.") from None
    losses = []
    if owned := {item.source for item in corpus.documents if item.namespace or item.permissions}:
        reason = (
            f"namespace and permissions of {counted(len(owned), 'file')} were not written: imported again, everybody "
            "may see them; write this file anew for the new corpus."
        )
        losses.append(Problem(str(dataset.path / ATTRIBUTES_FILE), reason))
    for key, (has, consequence) in _NOT_WRITTEN.items():
        if n_missing := sum(map(has, dataset.questions)):
            reason = f"`{key}` of {counted(n_missing, 'question')} was not written: {consequence}."
            losses.append(Problem(str(dataset.questions_path), reason))
    about = {"description": dataset.description, "licence": dataset.licence, "language": dataset.language}
    if missing := [name for name, value in about.items() if value]:
        reason = f"not written: {', '.join(missing)}; pass them on beside the file."
        losses.append(Problem(str(dataset.path / METADATA_FILE), reason))
    return [*losses, *problems, *dataset.problems, *corpus.problems]


def _write_beir(dataset: Dataset, documents: Documents, target: Path) -> list[Problem]:
    (target / "qrels").mkdir(parents=True)
    rows = []
    for place, item in documents.items():  # readers put the title before the text, so it is cut off where it is there
        first, _, rest = item.text.partition("\n")
        title, text = (first, rest) if first == item.title and rest.strip() else ("", item.text)
        rows.append({"_id": docno(*place), "title": title, "text": text})
    _write_lines(target / "corpus.jsonl", (json.dumps(row, ensure_ascii=False) for row in rows))
    found, problems = judged(dataset, documents)
    queries = [{"_id": docno(q.question_id), "text": q.text, "metadata": {"answers": q.answers}} for q, _ in found]
    _write_lines(target / "queries.jsonl", (json.dumps(query, ensure_ascii=False) for query in queries))
    scores = [f"{docno(q.question_id)}\t{docno(*place)}\t{n}" for q, grades in found for place, n in grades.items()]
    _write_lines(target / "qrels/test.tsv", ["query-id\tcorpus-id\tscore", *scores])
    return problems


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


EXPORTERS: dict[str, Callable[[Dataset, Documents, Path], list[Problem]]] = {"beir": _write_beir}


Qrels = dict[str, dict[str, float]]  # question -> document -> grade
Run = dict[str, dict[str, float]]  # question -> document -> score, best first

_SAFE = "".join(chr(code) for code in range(33, 127) if chr(code) not in "%<>")


def docno(source: str, page: int | None = None) -> str:
    """Return the number of a document, or of what else has an id; whitespace, which separates fields, is `%20`."""
    return quote(source if page is None else f"{source}#p{page}", safe=_SAFE)


def qrels_of(questions: Iterable[Question]) -> Qrels:
    """Return the documents that were judged, with their grades. Questions without evidence are left out."""
    qrels: Qrels = {}
    for question in questions:
        if question.answerable and question.evidence:
            grades = qrels.setdefault(question.question_id, {})
            for item in (*question.evidence, *question.not_relevant):  # several items may stand in one document
                name = _docno_for(question, item)
                grades[name] = max(item.grade, grades.get(name, 0))
    return qrels


def run_of(traces: Iterable[Trace]) -> Run:
    """Return the documents of each question's ranking, best first, by 1 / rank; of several parents the best counts."""
    run: Run = {}
    for trace in traces:
        found = dict.fromkeys(_docno_for(trace.question, hit) for hit in trace.ranked)
        run[trace.question.question_id] = {name: 1 / rank for rank, name in enumerate(found, start=1)}
    return run


def write_topics(path: Path, questions: Iterable[Question]) -> None:
    """Write the questions' ids and texts; a `<`, which would begin a tag, becomes a space."""
    texts = ((question.question_id, " ".join(question.text.replace("<", " ").split())) for question in questions)
    _write_lines(path, (f"<top>\n<num> Number: {docno(name)}\n<title> {text}\n</top>" for name, text in texts))


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, float]]) -> None:
    """Write lines of question, 0, document, grade."""
    items = ((asked, name, grade) for asked, found in qrels.items() for name, grade in found.items())
    _write_lines(path, (f"{docno(asked)} 0 {name} {grade}" for asked, name, grade in items))


def write_run(path: Path, run: Mapping[str, Mapping[str, float]], tag: str) -> None:
    """Write lines of question, Q0, document, rank (from 1), score and `tag`, the run's name."""
    ranked = ((asked, rank, *item) for asked, found in run.items() for rank, item in enumerate(found.items(), start=1))
    _write_lines(
        path, (f"{docno(asked)} Q0 {name} {rank} {score:.6f} {docno(tag)}" for asked, rank, name, score in ranked)
    )


def _docno_for(question: Question, place: Evidence | Hit) -> str:
    """Return a document's number: that of the file, whichever page or copy, where labels name files alone."""
    judged = (*question.evidence, *question.not_relevant)
    source = next((item.source for item in judged if place.source in (item.source, *item.copies)), place.source)
    is_whole = any(item.source == source and item.page is None for item in judged)
    names_files = bool(judged) and all(item.page is None and item.quote is None for item in judged)
    return docno(source, None if is_whole or names_files else place.page)
