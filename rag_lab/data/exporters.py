"""A dataset in other programs' formats: BEIR, SQuAD, a table with RAGAs' columns, TREC's topics and qrels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab.corpus.folder import load_folder
from rag_lab.data.dataset import Dataset
from rag_lab.data.losses import ANSWERS, IDS, losses
from rag_lab.data.places import Documents, Place, Placed, graded, judged, place_all, question_problem
from rag_lab.data.squad_export import write_squad
from rag_lab.data.trec import Qrels, docno, word
from rag_lab.data.trec_folder import DOCUMENTS, write_judged
from rag_lab.errors import DatasetError, unknown_name
from rag_lab.records import Document, Problem
from rag_lab.wording import counted


@dataclass(frozen=True, slots=True)
class Exporter:
    """A format: how it is written, and which of ANSWERS and IDS it holds."""

    write: Callable[[Dataset, Documents, Path], list[Problem]]
    holds: tuple[str, ...]


def export_dataset(dataset: Dataset, format: str, target: Path | str) -> list[Problem]:
    """Write `dataset` to `target`, and return what the format cannot hold, then what of the dataset cannot be read.

    Args:
        dataset: whose corpus and questions are written.
        format: a key of `EXPORTERS`: `beir` and `trec` make a folder, `squad` a JSON file, `table` a JSONL file.
        target: must not exist.

    Raises:
        DatasetError: if the format is unknown, or `target` exists or cannot be written.
    """
    target = Path(target)
    if format not in EXPORTERS:
        raise DatasetError(unknown_name("format", format, EXPORTERS))
    if target.exists():
        raise DatasetError(f"{target} exists and is never overwritten; choose another name or remove it.")
    exporter, corpus = EXPORTERS[format], load_folder(dataset.corpus_dir)
    documents = {(item.source, item.page): item for item in corpus.documents}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        problems = exporter.write(dataset, documents, target)
    except OSError as error:
        raise DatasetError(f"Cannot write {target}: {error.strerror}; choose another place.") from None
    return [*losses(dataset, documents, exporter.holds), *problems, *dataset.problems, *corpus.problems]


def _write_beir(dataset: Dataset, documents: Documents, target: Path) -> list[Problem]:
    (target / "qrels").mkdir(parents=True)
    _write_lines(target / "corpus.jsonl", [_beir_document(*item) for item in documents.items()])
    found, problems = judged(dataset, documents)
    queries = [{"_id": word(q.question_id), "text": q.text, "metadata": {"answers": q.answers}} for q, _ in found]
    _write_lines(target / "queries.jsonl", queries)
    lines = [
        f"{word(q.question_id)}\t{docno(*place)}\t{grade}\n"
        for q, places in found
        for place, grade in graded(q, places, documents).items()
    ]
    (target / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), encoding="utf-8")
    return problems + _unanswerable(dataset)


def _beir_document(place: Place, item: Document) -> dict[str, str]:
    """Return the line of a document. Readers put the title before the text, so it is cut off where it stands there."""
    first, _, rest = item.text.partition("\n")
    has_title = first == item.title and bool(rest.strip())
    return {"_id": docno(*place), "title": first if has_title else "", "text": rest if has_title else item.text}


def _write_table(dataset: Dataset, documents: Documents, target: Path) -> list[Problem]:
    placed, problems = place_all(dataset, documents)
    rows = [
        {
            "user_input": question.text,
            "reference": question.answers[0] if question.answers else "",
            "reference_contexts": [documents[place].text for place in places],
        }
        for question, places in placed
    ]
    _write_lines(target, rows)
    several = [question for question, _ in placed if len(question.answers) > 1]
    problems += [question_problem(dataset, q, "has several answers, of which the first was written") for q in several]
    return problems + _unanswerable(dataset) + _unused(dataset, documents, placed)


def _write_trec(dataset: Dataset, documents: Documents, target: Path) -> list[Problem]:
    target.mkdir()
    found, problems = judged(dataset, documents)
    qrels: Qrels = {
        question.question_id: {docno(*p): grade for p, grade in graded(question, places, documents).items()}
        for question, places in found
    }
    asked = [question for question in dataset.questions if question.question_id in qrels or not question.answerable]
    write_judged(target, asked, qrels)
    _write_lines(target / DOCUMENTS, [{"docno": docno(*p), "text": d.text} for p, d in documents.items()])
    return problems + [
        question_problem(dataset, q, "was written with a space for each `<`") for q in asked if "<" in q.text
    ]


def _unanswerable(dataset: Dataset) -> list[Problem]:
    """Return the problems of a format that cannot say of a question that it has no answer."""
    reason = "was left out: it is unanswerable, which the format cannot say"
    return [question_problem(dataset, question, reason) for question in dataset.questions if not question.answerable]


def _unused(dataset: Dataset, documents: Documents, placed: Placed) -> list[Problem]:
    """Return a problem where documents are nobody's evidence, for a table holds no others."""
    n_unused = len(documents.keys() - {place for _, places in placed for place in places})
    reason = f"{counted(n_unused, 'document')} of {len(documents):,} left out: no question that is written needs them."
    return [Problem(str(dataset.corpus_dir), reason)] if n_unused else []


def _write_lines(path: Path, rows: Iterable[Any]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


EXPORTERS = {
    "beir": Exporter(_write_beir, (ANSWERS, IDS)),
    "squad": Exporter(write_squad, (ANSWERS, IDS)),
    "table": Exporter(_write_table, (ANSWERS,)),
    "trec": Exporter(_write_trec, (IDS,)),
}
