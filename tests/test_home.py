import pytest

from rag_lab.errors import ConfigError
from rag_lab.home import home, usable_home


def test_the_environment_decides(monkeypatch, tmp_path):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "here"))
    assert home() == tmp_path / "here"


def test_a_notebook_shares_the_home_of_its_project(monkeypatch, tmp_path):
    monkeypatch.delenv("RAG_LAB_HOME")
    (tmp_path / "project/notebooks").mkdir(parents=True)
    (tmp_path / "project/pyproject.toml").touch()
    monkeypatch.chdir(tmp_path / "project/notebooks")
    assert home() == tmp_path / "project/.rag_lab"


def test_without_a_project_it_is_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("RAG_LAB_HOME")
    (tmp_path / ".rag_lab").mkdir()  # the nearest mark, whatever lies above the temporary folder
    monkeypatch.chdir(tmp_path)
    assert home() == tmp_path / ".rag_lab"


def test_a_file_in_its_place_is_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="is a file.*set RAG_LAB_HOME to a folder"):
        home()


def test_one_that_cannot_be_made_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "made/home"))
    assert usable_home().is_dir()
    (tmp_path / "file").touch()
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "file/home"))
    with pytest.raises(ConfigError, match="Cannot write to .*home.*; set RAG_LAB_HOME to another"):
        usable_home()
