from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rag_lab.data.dataset import Dataset, Metadata
from rag_lab.data.formats.draft import Draft, write_draft
from rag_lab.data.formats.registry import IMPORTERS, import_dataset
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
