"""A dataset is a folder: dataset.yaml (`Metadata`), corpus/ and questions.jsonl (one question a line).

`docs/datasets.md` says every field. A folder without dataset.yaml and corpus/ is its own corpus. Whose the documents
are is said in attributes.yaml (`rag_lab.corpus.files.attributes`). Other questions on the same documents stand beside
questions.jsonl, in a file that is named after the dataset: `plant_docs/follow_up.jsonl`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_lab._kit.config_file import read_mapping
from rag_lab._kit.digest import digest
from rag_lab.corpus.files.attributes import ATTRIBUTES_FILE
from rag_lab.corpus.files.folder import list_files
from rag_lab.corpus.files.reader_process import LOADERS
from rag_lab.corpus.files.tracking import file_digests
from rag_lab.corpus.files.walk import CORPUS_FOLDER, rules_folder
from rag_lab.data.questions_file import QUESTIONS_FILE, describe_one, read_questions
from rag_lab.errors import ConfigError, DatasetError, unknown_name
from rag_lab.records import Problem, Question
from rag_lab.rich_display import rich_display

METADATA_FILE = "dataset.yaml"
_QUESTIONS_SUFFIX = ".jsonl"


class Metadata(BaseModel):
    """The content of dataset.yaml. Unknown keys are refused: a misspelt page_base would shift every page."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    description: str = ""
    licence: str = ""
    language: str = ""  # a name or code: English, en; decides on the analyzer `auto`
    page_base: Literal[0, 1] = 1  # the number of the first page, as questions.jsonl counts

    @classmethod
    def load(cls, folder: Path) -> Metadata:
        """Read the metadata of the dataset in `folder`; its name is the folder's where none is given, or no file."""
        path = folder / METADATA_FILE
        given = {"name": folder.resolve().name or "documents"}
        try:
            return cls.model_validate({**given, **(read_mapping(path) if path.exists() else {})})
        except ConfigError as error:
            raise DatasetError(str(error)) from None
        except ValidationError as error:
            reasons = (
                unknown_name("key", str(detail["loc"][0]), cls.model_fields)
                if detail["type"] == "extra_forbidden"
                else f"{describe_one(detail)}, got {detail['input']!r}"
                for detail in error.errors()
            )
            raise DatasetError(f"{path}: {'; '.join(reasons)}") from None

    def save(self, folder: Path) -> None:
        """Write the file that `load` reads."""
        text = yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)
        (folder / METADATA_FILE).write_text(text, encoding="utf-8")


@rich_display("rag_lab.notebook.views.data_view:dataset_view")
@dataclass(frozen=True, slots=True)
class Dataset:
    """A corpus with labelled questions. `digest` changes with any byte or path of its files."""

    name: str
    path: Path
    description: str
    licence: str
    language: str
    page_base: int  # as the file counts; the questions here count pages from 1
    questions: tuple[Question, ...]
    problems: tuple[Problem, ...]  # of questions.jsonl; the corpus reports its own when it is read
    digest: str
    questions_file: str = QUESTIONS_FILE  # in the dataset's folder

    @property
    def questions_path(self) -> Path:
        """The file of the questions, be it there or not."""
        return self.path / self.questions_file

    @property
    def location(self) -> Path:
        """What `load` takes for this dataset: its folder, or a file of other questions in it."""
        return self.path if self.questions_file == QUESTIONS_FILE else self.questions_path

    @property
    def corpus_dir(self) -> Path:
        """The folder of the documents; a document's `source` is its path below it."""
        return corpus_folder(self.path)

    @classmethod
    def load(cls, name_or_path: str | Path, *, labelled: bool = True) -> Dataset:
        """Load a dataset by its path, or by its name in a folder of datasets.

        Names are searched in `./datasets`, in `$RAG_LAB_DATASETS`, then in the `datasets` beside the package. A path
        may be that of any folder of documents. After either, `/` and the name of a .jsonl file in the folder ask the
        questions of that file in place of those of questions.jsonl. Where not `labelled`, there may be no questions.
        """
        name, file = _split(str(name_or_path))
        path = find_dataset(name)
        metadata = Metadata.load(path)
        documents = corpus_folder(path)
        files = list_files(documents, None).files  # a configuration may name readers of any
        questions: list[Question] = []
        problems: list[Problem] = []
        if (path / file).exists():
            questions, problems = read_questions(path / file, files.keys(), metadata.page_base)
        elif file != QUESTIONS_FILE:
            others = sorted(other.name for other in path.glob(f"*{_QUESTIONS_SUFFIX}"))
            raise DatasetError(f"{path}: {unknown_name('file of questions', file, others)}")
        elif labelled:
            raise DatasetError(
                f"{path} has no {QUESTIONS_FILE}, which evaluation needs: one labelled question a line, as "
                "docs/datasets.md says. Without it, documents can be indexed and asked: rag-lab ask QUESTION --dataset "
                f"{path}"
            )
        if labelled and not questions:
            first = f"; the first of {len(problems)} problems: {problems[0]}" if problems else ""
            raise DatasetError(f"{path / file} holds no usable question{first}")
        own = {name: path / name for name in (METADATA_FILE, file)}
        own[ATTRIBUTES_FILE] = rules_folder(documents) / ATTRIBUTES_FILE
        own = {name: file for name, file in own.items() if file.exists()}
        digests = {
            "dataset": file_digests(own),
            CORPUS_FOLDER: file_digests({s: p for s, p in files.items() if p.suffix.lower() in LOADERS}),
        }
        dataset = cls(
            **metadata.model_dump(),
            path=path,
            questions=tuple(questions),
            problems=tuple(problems),
            digest=digest(digests),
            questions_file=file,
        )
        return dataset if file == QUESTIONS_FILE else replace(dataset, name=f"{dataset.name}/{file}")


def dataset_folder(name_or_path: str | Path) -> Path:
    """Return the folder of what `Dataset.load` takes, be it with the file of its questions."""
    return find_dataset(_split(str(name_or_path))[0])


def corpus_folder(path: Path) -> Path:
    """Return where the documents of the dataset at `path` are: a folder that is no dataset is its own corpus."""
    corpus = path / CORPUS_FOLDER
    return corpus if is_dataset(path) or corpus.is_dir() else path


def _split(given: str) -> tuple[str, str]:
    """Return the name or the path of a dataset, and the file of its questions."""
    folder, slash, file = given.rpartition("/")
    return (folder or slash, file) if slash and file.endswith(_QUESTIONS_SUFFIX) else (given, QUESTIONS_FILE)


def list_datasets() -> list[tuple[str, Path]]:
    """Return (name, path) of every dataset that `Dataset.load` finds by name, sorted by name.

    The name is the folder's; where two folders of datasets have it, the path is the one that `load` takes.
    """
    found: dict[str, Path] = {}
    custom = os.environ.get("RAG_LAB_DATASETS")
    packaged = Path(__file__).parents[2] / "datasets"
    for folder in (Path("datasets"), *([Path(custom).expanduser()] if custom else []), packaged):
        for path in folder.iterdir() if folder.is_dir() else ():
            if is_dataset(path) and not path.name.startswith("."):
                found.setdefault(path.name, path)
    return sorted(found.items())


def is_dataset(path: Path) -> bool:
    """Tell whether `path` is the folder of a dataset, whole or not."""
    return (path / METADATA_FILE).is_file()


def find_dataset(name_or_path: str | Path) -> Path:
    """Return the folder of a dataset, or of documents; see `Dataset.load`."""
    given, known = str(name_or_path), dict(list_datasets())
    if given in known:
        return known[given]
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return path
    if not known:
        raise DatasetError(f"Unknown dataset {given!r}: no folder of datasets was found; give a dataset's path.")
    raise DatasetError(f"{unknown_name('dataset', given, known)} The path of a folder is allowed, too.")
