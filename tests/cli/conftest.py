"""The command line in this process, and a small experiment to run it on."""

import sys

import pytest
from small_dataset import write_dataset

from rag_lab import cli


@pytest.fixture
def rag_lab(monkeypatch, capsys):
    """Run the command line; return status, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rag-lab", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """The file of an experiment with two variants, beside its data set and in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_dataset(tmp_path)
    path = tmp_path / "e.yaml"
    path.write_text("name: e\nquestion: q\ndataset: ./small\nfactors: {rerank.final_k: [5, 3]}\n")
    return path
