"""Documents are indexed and profiled."""

from functools import partial

import numpy as np
import pytest
from small_dataset import write_dataset

from rag_lab.models import shared


class Lengths:
    def identity(self):
        return {"name": "lengths"}

    def embed_documents(self, texts):
        vectors = np.array([[1, len(text) / 1000] for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    embed_queries = embed_documents


@pytest.fixture
def run(monkeypatch, rag_lab):
    monkeypatch.setattr(shared, "embedder", lambda spec: Lengths())

    def index(*arguments):
        status, out, err = rag_lab("index", *arguments)
        return status, out.splitlines(), err

    return index


def test_what_changed_and_what_is_there_is_listed(run, tmp_path):
    dataset = write_dataset(tmp_path)
    (dataset / "attributes.yaml").write_text("- {files: 'notes/*', namespace: plant, permissions: [staff, audit]}\n")
    status, lines, err = run(dataset, "--list")
    assert status == 0 and "problem" not in err
    assert lines[0] == "added 4: canteen.txt, notes/shift.txt, oven.txt, press.md"
    assert [line.split("  ")[-1] for line in lines[1:3]] == ["canteen.txt", "seen by staff, audit"]
    assert "namespace plant" in lines[2] and lines[5].endswith("0 problems")
    (dataset / "corpus/canteen.txt").write_text("Closed.")
    (dataset / "corpus/copy.txt").write_text("Closed.")
    status, lines, err = run(dataset)
    assert lines[:2] == ["added 1: copy.txt", "changed 1: canteen.txt"]
    assert "copy.txt: the file is the same as canteen.txt, byte for byte" in err
    assert len(run(dataset)[1]) == 1


def test_a_file_is_removed_from_the_index_and_not_from_the_folder(run, tmp_path):
    dataset = write_dataset(tmp_path)
    run(dataset)
    status, lines, err = run(dataset, "--remove", "canteen.txt", "--list")
    assert status == 0 and lines[0] == "removed 1: canteen.txt"
    assert not any("canteen.txt" in line for line in lines[1:])
    assert "delete its line in removed.txt" in err and (dataset / "corpus/canteen.txt").exists()
    assert (dataset / "removed.txt").read_text() == "canteen.txt\n"
    (dataset / "removed.txt").unlink()
    assert run(dataset)[1][0] == "added 1: canteen.txt"


def test_a_file_that_is_not_there_cannot_be_removed(run, tmp_path):
    status, _, err = run(write_dataset(tmp_path), "--remove", "cantine.txt")
    assert status == 2 and "did you mean 'canteen.txt'" in err


@pytest.mark.parametrize("fault", [["--set", "corpus.chunk_size=abc"], ["--remove", "typo.txt"]])
def test_a_faulty_command_removes_nothing(run, tmp_path, fault):
    dataset = write_dataset(tmp_path)
    assert run(dataset, "--remove", "canteen.txt", *fault)[0] == 2
    assert not (dataset / "removed.txt").exists()


def test_faulty_attributes_stop_everything(run, tmp_path):
    dataset = write_dataset(tmp_path)
    (dataset / "attributes.yaml").write_text("- {files: 'salaries/**', permissions: [hr]}\n")
    status, lines, err = run(dataset)
    assert (status, lines) == (2, []) and "decides on no file" in err


def test_any_folder_of_documents_is_indexed_and_a_file_removed(run, tmp_path):
    (tmp_path / "manuals").mkdir()
    for name in ("oil.txt", "press.txt"):
        (tmp_path / "manuals" / name).write_text(name)
    status, lines, err = run(tmp_path / "manuals", "--remove", "oil.txt")
    assert (status, lines[0]) == (0, "added 1: press.txt")
    assert "removed.txt" not in lines[0] and (tmp_path / "manuals/removed.txt").read_text() == "oil.txt\n"
    status, lines, err = run(tmp_path / "manuals")
    assert status == 0 and lines[0].split(": ")[1].startswith("1 files")


def test_a_folder_with_nothing_to_read_is_one_sentence(run, tmp_path):
    status, lines, err = run(tmp_path)
    assert (status, lines) == (2, []) and err.count("\n") == 1 and "holds no .pdf" in err


@pytest.fixture
def profile(rag_lab):
    return partial(rag_lab, "profile")


def test_what_to_type_next_fits_documents_and_a_data_set(profile, tmp_path):
    dataset = write_dataset(tmp_path)
    status, out, err = profile(dataset / "corpus", "--html", tmp_path / "p.html")
    assert status == 0 and f"rag-lab new mine {dataset / 'corpus'}" in err
    assert (tmp_path / "p.html").read_text().startswith("<!DOCTYPE html>")
    status, out, err = profile(dataset)
    assert "rag-lab vary retrieval.mode=hybrid,dense,bm25" in err and f"--dataset {dataset}" in err
    assert "English, as dataset.yaml says" in out


def test_settings_change_what_is_measured(profile, tmp_path):
    dataset = write_dataset(tmp_path)
    assert "each of 2 passages" in " ".join(profile(dataset, "--set", "rerank.final_k=2")[1].split())
    status, _, err = profile(dataset, "--set", "rerank.final_kk=2")
    assert status == 2 and "did you mean" in err


def test_a_page_that_cannot_be_written_is_one_sentence(profile, tmp_path):
    status, _, err = profile(write_dataset(tmp_path), "--html", tmp_path / "nowhere" / "p.html")
    assert status == 2 and "Cannot write" in err and "Traceback" not in err
