"""What stands in place of a dataset's name in Python: a folder, documents in memory, custom questions.

Documents of LangChain's are written below the home folder, under the digest of what they hold; so the same documents
are the same corpus, and share its index.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest, whole_folder
from rag_lab.corpus.files.folder import list_files
from rag_lab.corpus.files.walk import CORPUS_FOLDER
from rag_lab.corpus.load.loader import SUFFIX, write_documents
from rag_lab.data.dataset import Dataset
from rag_lab.data.questions_file import read_question, same_text
from rag_lab.errors import DatasetError
from rag_lab.records import Document, Problem, Question

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
    dataset = documents if isinstance(documents, Dataset) else _dataset(documents, home)
    if questions is None:
        return dataset
    if hasattr(questions, "to_json"):  # a data frame: its empty cells are left out
        rows = json.loads(questions.to_json(orient="records", date_format="iso"))
        return _with(dataset, [{str(key): value for key, value in row.items() if value is not None} for row in rows])
    if isinstance(questions, str | bytes | Mapping) or not isinstance(questions, Iterable):
        raise DatasetError(f"Give a list of questions, not {_shown(questions)}.")
    return _with(dataset, list(questions))


def _dataset(documents: Any, home: Path) -> Dataset:
    if isinstance(documents, str | Path):
        return Dataset.load(documents, labelled=False)
    if not isinstance(documents, Sequence) or not documents or isinstance(documents, bytes):
        raise DatasetError(f"Give {_WHAT}, not {_shown(documents)}.")
    by_source: dict[str, list[Document]] = {}
    places: dict[tuple[str, int | None], int] = {}
    for n, item in enumerate(documents, start=1):
        text, metadata = getattr(item, "page_content", None), getattr(item, "metadata", None)
        if not isinstance(text, str) or not isinstance(metadata, Mapping):
            raise DatasetError(f"Document {n} is {_shown(item)}; give {_WHAT}.")
        source, page, title = (metadata.get(key) for key in ("source", "page", "title"))
        if page is not None and (not isinstance(page, int) or isinstance(page, bool) or page < 0):
            raise DatasetError(f"Document {n} has the page {page!r}; give a whole number, or leave it out.")
        document = Document(str(source or f"document {n}"), page, text, title if isinstance(title, str) else "")
        try:
            "".join((document.source, document.text, document.title)).encode()
        except UnicodeEncodeError:
            raise DatasetError(
                f"Document {n} holds half a character, which is no text; mend how it was read."
            ) from None
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


def _with(dataset: Dataset, items: Sequence[Any]) -> Dataset:
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
            raise DatasetError(f"Question {n} is {_shown(item)}; give a text, a mapping or a Question.")
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


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.60}"
