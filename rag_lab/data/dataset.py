"""A dataset is a folder: dataset.yaml (`Metadata`), corpus/ and questions.jsonl (one question a line).

`docs/datasets.md` says every field. A folder without dataset.yaml and corpus/ is its own corpus. Whose the documents
are is said in attributes.yaml (`rag_lab.corpus.rules`). Other questions on the same documents stand beside
questions.jsonl, in a file that is named after the dataset: `plant_docs/follow_up.jsonl`.

In Python, documents of LangChain's may stand in place of a folder. They are written below the home folder, under the
digest of what they hold; so the same documents are the same corpus, and share its index.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_lab._kit.config_file import read_mapping
from rag_lab._kit.digest import digest, whole_folder
from rag_lab._kit.home import home
from rag_lab._kit.section import faults
from rag_lab.corpus.folder import DIGESTS, DISTRACTORS, file_digests, list_files
from rag_lab.corpus.load.loader import SUFFIX, write_documents
from rag_lab.corpus.reading import LOADERS
from rag_lab.corpus.rules import ATTRIBUTES_FILE, CORPUS_FOLDER, rules_folder
from rag_lab.data.questions_file import QUESTIONS_FILE, read_question, read_questions, same_text
from rag_lab.errors import ConfigError, DatasetError, unknown_name
from rag_lab.records import Document, Problem, Question, Trace
from rag_lab.rich_display import rich_display

METADATA_FILE = "dataset.yaml"
STATES_VARIABLE = "RAG_LAB_STATES"  # of a job: the folders that stand for those of data sets which sources write
_QUESTIONS_SUFFIX = ".jsonl"


class Metadata(BaseModel):
    """The content of dataset.yaml. Unknown keys are refused: a misspelt page_base would shift every page."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    description: str = ""
    licence: str = ""
    language: str = ""  # a name or code: English, en; decides on the analyzer `auto`
    page_base: Literal[0, 1] = 1  # the number of the first page, as questions.jsonl counts
    base_url: str = Field("", pattern="^(https?://[^\\s]+)?$")  # before a source's path, where people open it

    @classmethod
    def load(cls, folder: Path) -> "Metadata":
        """Read the metadata of the dataset in `folder`; its name is the folder's where none is given, or no file."""
        path = folder / METADATA_FILE
        given = {"name": folder.resolve().name or "documents"}
        try:
            return cls.model_validate({**given, **(read_mapping(path) if path.exists() else {})})
        except ConfigError as error:
            raise DatasetError(str(error)) from None
        except ValidationError as error:
            raise DatasetError(f"{path}: {faults(error, 'key', cls.model_fields)}") from None


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
    base_url: str = ""

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

    def read_from(self, folder: str) -> Path:
        """Return the folder of the documents, or that of those that stand in for them; see `corpus.folder`."""
        return corpus_folder(find_dataset(folder)) if folder else self.corpus_dir

    @classmethod
    def load(cls, name_or_path: str | Path, *, labelled: bool = True) -> "Dataset":
        """Load a dataset by its path, or by its name in a folder of datasets.

        Names are searched in `./datasets`, in `$RAG_LAB_DATASETS`, then in the `datasets` beside the package. A path
        may be that of any folder of documents. After either, `/` and the name of a .jsonl file in the folder ask the
        questions of that file in place of those of questions.jsonl. Where not `labelled`, there may be no questions.
        """
        path, last = find_dataset(name_or_path), str(name_or_path).rpartition("/")[2]
        file = last if last != str(name_or_path) and last.endswith(_QUESTIONS_SUFFIX) else QUESTIONS_FILE
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
            CORPUS_FOLDER: file_digests(
                {s: p for s, p in files.items() if p.suffix.lower() in LOADERS}, home() / DIGESTS, keep=False
            ),
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


def corpus_folder(path: Path) -> Path:
    """Return where the documents of the dataset at `path` are: a folder that is no dataset is its own corpus.

    In a sweep they are those of its state, where sources write it.
    """
    path = Path(json.loads(os.environ.get(STATES_VARIABLE, "{}")).get(str(path.resolve()), path))
    corpus = path / CORPUS_FOLDER
    return corpus if is_dataset(path) or corpus.is_dir() else path


def other_corpora(also: str, distractors: str = "") -> dict[str, Path]:
    """Return the folders of documents that are indexed beside a corpus, by name, that of distractors among them.

    `also` names data sets or folders, separated by commas.
    """
    folders: dict[str, Path] = {}
    for path in map(find_dataset, filter(None, map(str.strip, also.split(",")))):
        if folders.setdefault(path.resolve().name, corpus_folder(path)) != corpus_folder(path):
            raise DatasetError(f"retrieval.also names two corpora {path.resolve().name!r}; rename the folder of one.")
    return folders | ({DISTRACTORS: corpus_folder(find_dataset(distractors))} if distractors else {})


def linked(traces: Sequence[Trace], base_url: str, also: str = "") -> list[Trace]:
    """Return the traces with the address of each passage and citation whose corpus has a `base_url`; see Metadata."""
    bases = {f"{name}/": Metadata.load(rules_folder(path)).base_url for name, path in other_corpora(also).items()}
    if not base_url and not any(bases.values()):
        return list(traces)

    def with_url(one: Any) -> Any:
        corpus = next((name for name in bases if one.source.startswith(name)), "")
        base, page = bases.get(corpus, base_url), "" if one.page is None else f"#page={one.page}"
        return replace(one, url=f"{base.rstrip('/')}/{quote(one.source.removeprefix(corpus))}{page}") if base else one

    found = []
    for trace in traces:
        answer = trace.answer and replace(trace.answer, citations=tuple(map(with_url, trace.answer.citations)))
        found.append(replace(trace, passages=tuple(map(with_url, trace.passages)), answer=answer))
    return found


def list_datasets() -> list[tuple[str, Path]]:
    """Return (name, path) of every dataset that `Dataset.load` finds by its folder's name, sorted by name."""
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
    """Return the folder of a dataset, or of documents, be it with the file of its questions; see `Dataset.load`."""
    given, known = str(name_or_path), dict(list_datasets())
    folder, slash, file = given.rpartition("/")
    if slash and file.endswith(_QUESTIONS_SUFFIX):
        given = folder or slash
    if given in known:
        return known[given]
    path = Path(given).expanduser()
    if path.is_dir():
        return path
    if not known:
        raise DatasetError(f"Unknown dataset {given!r}: no folder of datasets was found; give a dataset's path.")
    raise DatasetError(f"{unknown_name('dataset', given, known)} The path of a folder is allowed, too.")


_WHAT = "a dataset's name, its folder, a folder of documents, a Dataset, or a list of LangChain's documents"


def dataset_of(documents: Any, questions: Any, home: Path) -> Dataset:
    """Return the dataset that `documents` stand for, with `questions` in place of its own where there are some.

    Args:
        documents: a dataset's name or folder, a folder of documents, a `Dataset`, or a list of LangChain's `Document`s.
            Of these, `metadata` may say `source`, `page` and `title`. Each is a whole page or file.
        questions: texts, mappings with the keys of questions.jsonl, `Question`s, or a data frame with these columns. A
            text that is the id or the text of a question of the dataset is that one, with its labels.
        home: the folder below which documents in memory are written.
    """
    dataset = documents if isinstance(documents, Dataset) else _dataset_in_memory(documents, home)
    if questions is None:
        return dataset
    if hasattr(questions, "to_json"):  # a data frame: its empty cells are left out
        rows = json.loads(questions.to_json(orient="records", date_format="iso"))
        questions = [{str(key): value for key, value in row.items() if value is not None} for row in rows]
    if isinstance(questions, str | bytes | Mapping) or not isinstance(questions, Iterable):
        raise DatasetError(f"Give a list of questions, not {_type_and_value(questions)}.")
    return _with_questions(dataset, list(questions))


def _dataset_in_memory(documents: Any, home: Path) -> Dataset:
    if isinstance(documents, str | Path):
        return Dataset.load(documents, labelled=False)
    if not isinstance(documents, Sequence) or not documents or isinstance(documents, bytes):
        raise DatasetError(f"Give {_WHAT}, not {_type_and_value(documents)}.")
    by_source: dict[str, list[Document]] = {}
    places: dict[tuple[str, int | None], int] = {}
    for n, item in enumerate(documents, start=1):
        text, metadata = getattr(item, "page_content", None), getattr(item, "metadata", None)
        if not isinstance(text, str) or not isinstance(metadata, Mapping):
            raise DatasetError(f"Document {n} is {_type_and_value(item)}; give {_WHAT}.")
        source, page, title = (metadata.get(key) for key in ("source", "page", "title"))
        if page is not None and (not isinstance(page, int) or isinstance(page, bool) or page < 0):
            raise DatasetError(f"Document {n} has the page {page!r}; give a whole number, or leave it out.")
        document = Document(str(source or f"document {n}"), page, text, title if isinstance(title, str) else "")
        try:
            "".join((document.source, document.text, document.title)).encode()
        except UnicodeEncodeError:
            raise DatasetError(f"Document {n} has half a character, which is no text; mend how it was read.") from None
        first = places.setdefault((document.source, document.page), n)
        if first != n:
            where = "" if page is None else f", page {page}"
            raise DatasetError(
                f"Documents {first} and {n} are both {document.source!r}{where}; give whole pages or files, which the "
                "splitter cuts, or a page or source of its own to each."
            )
        by_source.setdefault(document.source, []).append(document)
    corpus = [sorted(by_source[source], key=lambda item: item.page or 0) for source in sorted(by_source)]
    target = home / "given" / digest([[asdict(document) for document in one] for one in corpus])
    with whole_folder(target) as partial:
        if partial:
            (partial / CORPUS_FOLDER).mkdir(parents=True)
            for n, one in enumerate(corpus, start=1):
                write_documents(partial / CORPUS_FOLDER / f"{n:06}{SUFFIX}", one)
    return replace(Dataset.load(target, labelled=False), name=f"{len(documents)} documents")


def _with_questions(dataset: Dataset, items: Sequence[Any]) -> Dataset:
    files = list_files(dataset.corpus_dir).files
    first_page = 0 if any(path.suffix == SUFFIX for path in files.values()) else dataset.page_base
    questions: list[Question] = []
    problems: list[Problem] = []
    own = {key: question for question in dataset.questions for key in (same_text(question.text), question.question_id)}
    items = [own.get(item, own.get(same_text(item), item)) if isinstance(item, str) else item for item in items]
    taken = {item.question_id for item in items if isinstance(item, Question)}
    for n, item in enumerate(items, start=1):
        if isinstance(item, Question):
            questions.append(item)
            continue
        if not isinstance(item, str | Mapping):
            raise DatasetError(f"Question {n} is {_type_and_value(item)}; give a text, a mapping or a Question.")
        keys = {"question": item} if isinstance(item, str) else dict(item)
        if isinstance(keys.get("id"), int):
            keys["id"] = str(keys["id"])
        try:
            line = json.dumps(keys).encode()
        except (TypeError, ValueError) as error:
            raise DatasetError(f"Question {n} cannot be written as a line of questions.jsonl: {error}.") from None
        default_id = f"asked-{n}" if f"q{n}" in taken else f"q{n}"
        question, reasons = read_question(line, files.keys(), dataset.page_base, first_page, default_id)
        questions += [question] if question else []
        problems += [Problem(f"question {n}", reason) for reason in reasons]
    if not questions:
        first = f"; the first of {len(problems)} problems: {problems[0]}" if problems else ""
        raise DatasetError(f"Of the {len(items)} questions given, none can be asked{first}")
    counts = Counter(question.question_id for question in questions)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise DatasetError(f"{counts[twice[0]]} questions have the id {twice[0]!r}; give each its own.")
    asked = digest([dataset.digest, [asdict(question) for question in questions]])
    return replace(dataset, questions=tuple(questions), problems=tuple(problems), digest=asked)


def _type_and_value(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.60}"
