"""The registry of importers: a format's name to the function that reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab.data.dataset import Dataset
from rag_lab.data.formats.beir import read_beir
from rag_lab.data.formats.draft import Draft, write_draft
from rag_lab.data.formats.squad import read_squad
from rag_lab.data.formats.tables import SUFFIXES, read_table
from rag_lab.data.metadata import Metadata
from rag_lab.errors import ConfigError, DatasetError, unknown_name
from rag_lab.records import Problem


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
        source: a file or folder, as the format has it.
        target: the folder to make; it appears when it is whole.
        force: replace the dataset that is at `target`.
        name: the dataset's; the target's where empty.
        description: for dataset.yaml, as are `licence` and `language`.
        licence: of the data.
        language: of the data, as a code: en, zh.
        options: the format's own, e.g. `split` of BEIR.

    Raises:
        DatasetError: if the format is unknown or cannot be guessed, the source cannot be read or holds nothing usable,
            or the target cannot be written.
        ConfigError: if the format has no such option.
    """
    source, target = Path(source), Path(target)
    importer = _importer(format, source)
    _check_options(importer, options)
    if source.resolve().is_relative_to(target.resolve()):
        raise DatasetError(f"The target {target} holds the source {source}; choose another folder.")
    draft = importer.read(source, **options)
    metadata = Metadata(name=name or target.resolve().name, description=description, licence=licence, language=language)
    write_draft(draft, metadata, target, force)
    dataset = Dataset.load(target.resolve())
    return dataset, [*draft.problems, *dataset.problems]


def _check_options(importer: Importer, options: Mapping[str, Any]) -> None:
    unknown = ", ".join(repr(option) for option in options if option not in importer.options)
    if unknown:
        name = next(name for name, known in IMPORTERS.items() if known is importer)
        allowed = f"allowed is {', '.join(importer.options)}" if importer.options else "it has none, leave it out"
        raise ConfigError(f"The format {name!r} has no option {unknown}: {allowed}.")


def _importer(format: str | None, source: Path) -> Importer:
    if format is not None and format not in IMPORTERS:
        raise DatasetError(unknown_name("format", format, IMPORTERS))
    if not source.exists():
        raise DatasetError(f"There is no {source} to import; give the path of a file or folder.")
    if format is not None:
        return IMPORTERS[format]
    fitting = [importer for importer in IMPORTERS.values() if importer.matches(source)]
    if len(fitting) != 1:
        formats = "; ".join(f"{name}: {importer.description}" for name, importer in IMPORTERS.items())
        raise DatasetError(f"Cannot tell the format of {source}; name one of {formats}.")
    return fitting[0]
