"""Tables with the columns of RAGAs (CSV, JSONL, Parquet): user_input, reference, reference_contexts.

The distinct reference contexts become the documents, and the evidence of a question is those of its row. RAGAs knows
no grades: a column of our own, `reference_grades`, may give one a context.
"""

import ast
import csv
import io
import json
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, field_validator

from rag_lab.corpus.normalize import normalize
from rag_lab.data.formats.draft import Draft, with_judged
from rag_lab.data.questions_file import MAX_GRADE, Text, describe
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Problem, Question

_MAX_CELL_CHARS = 2**31 - 1
_REQUIRED = ("user_input", "reference_contexts")
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
    if missing := [column for column in _REQUIRED if column not in columns]:
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
