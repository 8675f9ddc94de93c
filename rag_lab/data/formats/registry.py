"""Formats that datasets are imported from and exported to, by name."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab._kit.wording import counted
from rag_lab.corpus.files.attributes import ATTRIBUTES_FILE
from rag_lab.corpus.files.folder import load_folder
from rag_lab.data.dataset import METADATA_FILE, Dataset, Metadata
from rag_lab.data.evidence import Documents, judged
from rag_lab.data.formats.beir import read_beir
from rag_lab.data.formats.draft import Draft, write_draft
from rag_lab.data.formats.squad import read_squad
from rag_lab.data.formats.tables import SUFFIXES, read_table
from rag_lab.data.formats.trec import docno, word
from rag_lab.errors import ConfigError, DatasetError, unknown_name
from rag_lab.records import Problem, Question

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
        read_table,
        "a CSV, JSONL or Parquet file with RAGAs' columns",
        lambda path: path.suffix.lower() in SUFFIXES,
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
        target: the folder to make; it appears when it is whole.
        force: replace the dataset that is at `target`.
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
    _write_lines(target / "corpus.jsonl", rows)
    found, problems = judged(dataset, documents)
    queries = [{"_id": word(q.question_id), "text": q.text, "metadata": {"answers": q.answers}} for q, _ in found]
    _write_lines(target / "queries.jsonl", queries)
    lines = [
        f"{word(q.question_id)}\t{docno(*place)}\t{grade}\n" for q, grades in found for place, grade in grades.items()
    ]
    (target / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), encoding="utf-8")
    return problems


def _write_lines(path: Path, rows: Iterable[Any]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


EXPORTERS: dict[str, Callable[[Dataset, Documents, Path], list[Problem]]] = {"beir": _write_beir}
