"""Checks of the plant_docs dataset: its questions stand on its documents, and its PDFs are what its script builds."""

import importlib.util
import json
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pymupdf
import pytest
import yaml

ROOT = Path(__file__).parents[2] / "datasets" / "plant_docs"
CORPUS = ROOT / "corpus"
CLASSES = {"specific", "fuzzy", "comparative", "procedural", "creative"}
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
DOCUMENTS = sorted(path for path in CORPUS.rglob("*") if path.is_file())
WORDS_A_PAGE = 350


def collapse(text: str) -> str:
    """The text with every run of whitespace made one space."""
    return " ".join(text.split())


@cache
def pages(path: Path) -> tuple[str, ...]:
    """The collapsed text of every page of a PDF, or of a whole text file as one page."""
    if path.suffix != ".pdf":
        return (collapse(path.read_text(encoding="utf-8")),)
    with pymupdf.open(path) as pdf:
        return tuple(collapse(page.get_text()) for page in pdf)


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    """The build script as a module."""
    spec = importlib.util.spec_from_file_location("plant_docs_build", ROOT / "build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_dataset_file_names_the_dataset() -> None:
    head = yaml.safe_load((ROOT / "dataset.yaml").read_text(encoding="utf-8"))
    assert head["name"] == "plant_docs"
    assert head["licence"] == "Apache-2.0"
    assert (head["language"], head["page_base"]) == ("en", 1)
    assert head["description"]


def test_corpus_is_large_enough_and_of_three_types() -> None:
    words = sum(len(pages(path)[0].split()) for path in DOCUMENTS if path.suffix != ".pdf")
    pdf_pages = sum(len(pages(path)) for path in DOCUMENTS if path.suffix == ".pdf")
    assert {path.suffix for path in DOCUMENTS} == {".pdf", ".md", ".txt"}
    assert len(DOCUMENTS) >= 30
    assert pdf_pages + words / WORDS_A_PAGE >= 100
    assert sum(path.stat().st_size for path in DOCUMENTS) < 3_000_000


def test_questions_are_unique_and_cover_the_classes() -> None:
    answerable = Counter(q["class"] for q in QUESTIONS if q.get("answerable", True))
    assert len({q["id"] for q in QUESTIONS}) == len({q["question"] for q in QUESTIONS}) == len(QUESTIONS)
    assert len(QUESTIONS) >= 80
    assert set(answerable) == CLASSES
    assert min(answerable.values()) >= 18
    assert len(QUESTIONS) - answerable.total() >= 14


@pytest.mark.parametrize("question", QUESTIONS, ids=[q["id"] for q in QUESTIONS])
def test_question_stands_on_its_evidence(question: dict[str, Any]) -> None:
    answerable = question.get("answerable", True)
    assert question["class"] in CLASSES
    assert bool(question["answers"]) is bool(question["evidence"]) is answerable
    for item in question["evidence"]:
        path = CORPUS / item["source"]
        assert path.is_file(), item["source"]
        assert ("page" in item) is (path.suffix == ".pdf")
        assert 20 <= len(item["quote"]) <= 200
        assert collapse(item["quote"]) in pages(path)[item.get("page", 1) - 1]


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q["class"] == "comparative"], ids=lambda q: q["id"])
def test_comparative_question_has_two_pieces_of_evidence(question: dict[str, Any]) -> None:
    assert len(question["evidence"]) >= 2 or not question.get("answerable", True)


@pytest.mark.slow
def test_pdfs_are_what_the_script_builds(builder: ModuleType, tmp_path: Path) -> None:
    built = builder.build(tmp_path)
    kept = [path for path in DOCUMENTS if path.suffix == ".pdf"]
    assert sorted(path.relative_to(tmp_path) for path in built) == [path.relative_to(CORPUS) for path in kept]
    for path in kept:
        assert pages(path) == pages(tmp_path / path.relative_to(CORPUS)), path.name


def test_build_says_what_a_source_lacks(builder: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "short.md"
    source.write_text("---\ndocuments:\n  - {path: a.pdf, number: A-1}\n---\nBody.\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has a document without title"):
        list(builder.load(source))
