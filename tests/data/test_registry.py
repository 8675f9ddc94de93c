import json
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest
from small_dataset import DOCUMENTS, write_dataset

from rag_lab.corpus.folder import load_folder
from rag_lab.data.dataset import Dataset, Metadata
from rag_lab.data.formats import IMPORTERS, export_dataset, import_dataset
from rag_lab.data.importers import Draft, write_draft
from rag_lab.errors import ConfigError, DatasetError
from rag_lab.records import Evidence, Question


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "set.jsonl"
    row = {"user_input": "Who?", "reference": "She.", "reference_contexts": ["It was she."]}
    path.write_text(json.dumps(row) + "\n{\n", encoding="utf-8")
    return path


def test_what_is_imported_is_loaded(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "target"
    dataset, problems = import_dataset(None, source, target, licence="MIT", language="en", description="Wer? 谁？")
    assert dataset == Dataset.load(target)
    assert (dataset.name, dataset.licence, dataset.language, dataset.page_base) == ("target", "MIT", "en", 1)
    assert dataset.description == "Wer? 谁？"
    assert [problem.line for problem in problems] == [2]
    assert (dataset.corpus_dir / dataset.questions[0].evidence[0].source).read_text() == "It was she."


def test_importing_twice_gives_the_same_digest(source: Path, tmp_path: Path) -> None:
    digests = {import_dataset("table", source, tmp_path / name, name="same")[0].digest for name in ("a", "b")}
    assert len(digests) == 1


def test_a_dataset_is_replaced_only_by_force(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    import_dataset(None, source, target)
    (target / "corpus" / "old.txt").write_text("old", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"exists; choose another folder, or replace it with --force"):
        import_dataset(None, source, target)
    import_dataset(None, source, target, force=True)
    assert [path.name for path in (target / "corpus").iterdir()] == ["context_00001.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set.jsonl", "target"]


def test_what_cannot_be_loaded_replaces_nothing(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    before, _ = import_dataset(None, source, target)
    unusable = Draft({"a.txt": "Text."}, [Question("1", " ")])
    with pytest.raises(DatasetError, match="Nothing was imported: the new questions.jsonl holds no usable question"):
        write_draft(unusable, Metadata(name="target"), target, force=True)
    assert Dataset.load(target) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set.jsonl", "target"]


def test_what_is_lost_at_loading_is_among_the_problems(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = Draft({"a.txt": "Text."}, [Question("1", "Why?"), Question("2", "Who?", evidence=(Evidence("gone.txt"),))])
    monkeypatch.setitem(IMPORTERS, "table", replace(IMPORTERS["table"], read=lambda _: draft))
    dataset, problems = import_dataset("table", source, tmp_path / "target")
    assert len(dataset.questions) == 2
    assert [problem.line for problem in problems] == [2] and "'gone.txt'" in problems[0].reason


def test_what_is_no_dataset_is_never_replaced(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    (target / "thesis.txt").write_text("years", encoding="utf-8")
    with pytest.raises(DatasetError, match="is no dataset"):
        import_dataset(None, source, target, force=True)
    assert (target / "thesis.txt").read_text() == "years"


def test_a_target_around_the_source_is_refused(source: Path) -> None:
    (source.parent / "dataset.yaml").write_text("", encoding="utf-8")
    with pytest.raises(DatasetError, match="holds the source"):
        import_dataset(None, source, source.parent, force=True)


def test_nothing_usable_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "set.jsonl"
    source.write_text('{"user_input": "", "reference_contexts": []}', encoding="utf-8")
    with pytest.raises(DatasetError, match="no usable document; the first of 1 problems"):
        import_dataset(None, source, tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["set.jsonl"]


def test_a_target_that_cannot_be_written(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DatasetError, match="Cannot write"):
        import_dataset(None, source, tmp_path / "file" / "target")


def test_formats_and_options(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    with pytest.raises(DatasetError, match="Unknown format 'sqad': allowed are beir, .*did you mean 'squad'"):
        import_dataset("sqad", source, target)
    with pytest.raises(DatasetError, match="There is no .*gone to import"):
        import_dataset(None, tmp_path / "gone", target)
    with pytest.raises(DatasetError, match="Cannot tell the format"):
        import_dataset(None, tmp_path, target)
    with pytest.raises(ConfigError, match="The format 'table' has no option 'split'"):
        import_dataset(None, source, target, split="dev")
    assert not target.exists()


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset.load(write_dataset(tmp_path))


def back(dataset: Dataset, tmp_path: Path) -> tuple[Dataset, list[str]]:
    """Export, import again without a problem, and return the dataset and what was lost."""
    problems = export_dataset(dataset, "beir", tmp_path / "beir")
    again, faults = import_dataset("beir", tmp_path / "beir", tmp_path / "back")
    assert faults == []
    return again, [problem.reason for problem in problems]


def texts(dataset: Dataset, question: Question) -> list[str]:
    """Return the texts of the files of a question's evidence."""
    return sorted((dataset.corpus_dir / item.source).read_text() for item in question.evidence)


def test_beir_and_back(dataset: Dataset, tmp_path: Path) -> None:
    again, problems = back(dataset, tmp_path)
    answerable = [question for question in dataset.questions if question.answerable]
    assert [(q.question_id, q.text, q.answers) for q in again.questions] == [
        (q.question_id, q.text, q.answers) for q in answerable
    ]
    assert [texts(again, q) for q in again.questions] == [texts(dataset, q) for q in answerable]
    assert len(list(again.corpus_dir.iterdir())) == len(DOCUMENTS)
    assert problems[-1] == "question 'q4' was left out: it is unanswerable, which the format cannot say."


PAGES = ["Page one speaks of whales.", "Page two speaks of mountains.", "Page three speaks of deserts."]
OF_PAGES = [
    ("page", {"page": 1}),
    ("quote", {"quote": "speaks of deserts"}),
    ("file", {}),
    ("misquoted", {"quote": "speaks of rivers"}),
    ("gone", {"page": 9}),
]


@pytest.fixture
def paged(tmp_path: Path) -> Dataset:
    """Return a dataset with evidence in a PDF, of which the last three items tell no page."""
    asked = [
        {"id": name, "question": f"{name}?", "answers": ["x"], "evidence": [{"source": "man ual.pdf", **where}]}
        for name, where in OF_PAGES
    ]
    folder = write_dataset(tmp_path, "paged", asked)
    pdf = pymupdf.open()
    for text in PAGES:
        pdf.new_page().insert_text((72, 72), text)
    pdf.save(folder / "corpus/man ual.pdf")
    return Dataset.load(folder)


def test_every_document_that_is_judged_exists(paged: Dataset, tmp_path: Path) -> None:
    again, problems = back(paged, tmp_path)
    by_id = {question.question_id: question for question in again.questions}
    assert texts(again, by_id["page"]) == [PAGES[0]] and texts(again, by_id["quote"]) == [PAGES[2]]
    for name in ("file", "misquoted", "gone"):
        assert name not in by_id
        assert f"question '{name}' was left out: none of its evidence was found." in problems
        assert any(reason.startswith(f"question '{name}' lost its evidence in 'man ual.pdf'") for reason in problems)


def test_titles_are_written_where_readers_put_them(paged: Dataset, tmp_path: Path) -> None:
    (paged.corpus_dir / "one_line.txt").write_text("A single line.")
    (paged.corpus_dir / "titled.txt").write_text("A title\n\n  Indented text.")
    again, _ = back(paged, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "beir/corpus.jsonl").read_text().splitlines()]
    assert {row["_id"]: row["title"] for row in rows if row["title"]} == {"titled.txt": "A title"}
    kept = {path.read_text() for path in again.corpus_dir.iterdir()}
    assert kept == {item.text for item in load_folder(paged.corpus_dir).documents}


def test_any_id_comes_back(tmp_path: Path) -> None:
    ids = ["a\tb", "a b/../c\n", "100%41", "Öl", '"']
    evidence = [{"source": "press.md", "quote": "290 bar"}]
    asked = [{"id": name, "question": f"{name}?", "answers": ["290 bar"], "evidence": evidence} for name in ids]
    again, _ = back(Dataset.load(write_dataset(tmp_path, extra_questions=asked)), tmp_path)
    assert set(ids) <= {question.question_id for question in again.questions}


def test_what_beir_cannot_hold_is_told_and_access_first(tmp_path: Path) -> None:
    evidence = [{"source": "press.md", "quote": "290 bar"}, {"source": "oven.txt"}]
    asked = {
        "question": "Which?", "answers": ["290 bar", "much"], "evidence": evidence, "may_see": ["staff"],
        "namespace": "", "history": [{"role": "user", "content": "Hi"}], "tags": ["t"],
    }  # fmt: skip
    extra = [{"id": "full", **asked}, {"id": "bare", "question": "Is 1 < 2?"}]
    folder = write_dataset(tmp_path, extra_questions=extra)
    (folder / "attributes.yaml").write_text("- files: notes/**\n  permissions: [staff]\n")
    (folder / "corpus/bad.pdf").write_bytes(b"no PDF")
    _, problems = back(Dataset.load(folder), tmp_path)
    assert [reason.split(":")[0] for reason in problems[:6]] == [
        "namespace and permissions of 1 file were not written",
        "`may_see` of 1 question was not written",
        "`namespace` of 1 question was not written",
        "`history` of 1 question was not written",
        "`class` of 3 questions was not written",
        "`tags` of 1 question was not written",
    ]
    assert "question 'bare' was left out: it has no evidence." in problems
    assert "the PDF is corrupt" in problems[-1]


def test_nothing_is_overwritten_and_the_format_must_be_known(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="never overwritten"):
        export_dataset(dataset, "beir", tmp_path)
    for gone in ("squad", "table", "trec"):
        with pytest.raises(DatasetError, match=f"Unknown format '{gone}': allowed are beir"):
            export_dataset(dataset, gone, tmp_path / "new")
        assert not (tmp_path / "new").exists()


def test_topics_of_trec_are_no_format_to_import(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="Unknown format 'trec': allowed are beir, squad, table"):
        import_dataset("trec", tmp_path, tmp_path / "new")
