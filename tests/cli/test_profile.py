"""`rag-lab profile` in this process."""

import sys

import pytest
from small_dataset import write_dataset

from rag_lab import cli


@pytest.fixture
def profile(monkeypatch, capsys):
    """Run the command; return status, stdout and stderr."""

    def profile(*arguments):
        monkeypatch.setattr(sys, "argv", ["rag-lab", "profile", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code or 0, *capsys.readouterr()

    return profile


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
