import os

import pytest

from rag_lab._kit.observing.env_file import env_files_read, read_env_files
from rag_lab.errors import ConfigError
from rag_lab.redaction import hide_known


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """Put back afterwards what files have added."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def test_the_working_folder_goes_before_the_project_and_the_environment_before_both(tmp_path, monkeypatch):
    inner = tmp_path / "project" / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / ".env").write_text("FAR=beyond\n")
    (tmp_path / "project" / ".git").mkdir()
    (tmp_path / "project" / ".env").write_text('NEAR=project\nOF_PROJECT="two words"\nGIVEN=file\n')
    (inner / ".env").write_text("# mine\nexport NEAR=here\n")
    monkeypatch.setenv("GIVEN", "environment")
    monkeypatch.chdir(inner)
    read_env_files()
    assert (os.environ["NEAR"], os.environ["OF_PROJECT"], os.environ["GIVEN"]) == ("here", "two words", "environment")
    assert "FAR" not in os.environ
    assert env_files_read() == {inner / ".env": ("NEAR",), tmp_path / "project" / ".env": ("OF_PROJECT",)}


def test_a_key_that_was_read_is_hidden_wherever_it_would_be_shown(tmp_path):
    (tmp_path / ".env").write_text("MY_API_KEY=a-key-of-nobody\n")
    read_env_files(tmp_path)
    assert hide_known("it says a-key-of-nobody") == "it says [hidden]"


def test_without_a_file_nothing_is_read(tmp_path):
    read_env_files(tmp_path)
    assert env_files_read() == {}


def test_a_file_that_is_no_text_is_one_sentence(tmp_path):
    (tmp_path / ".env").write_bytes(b"\xff\xfe\x00K=v")
    with pytest.raises(ConfigError, match=r"\.env: it is not text in UTF-8; write NAME=value"):
        read_env_files(tmp_path)
