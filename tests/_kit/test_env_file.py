import os
import subprocess
import sys

import pytest
from other_user import give_away, needs_root

from rag_lab._kit.home import env_files_read, read_env_files
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
    (tmp_path / ".env").write_text("FAR_API_KEY=beyond\n")
    (tmp_path / "project" / ".git").mkdir()
    (tmp_path / "project" / ".env").write_text(
        'NEAR_API_KEY=project\nRAG_LAB_PROJECT="two words"\nGIVEN_API_KEY=file\n'
    )
    (inner / ".env").write_text("# mine\nexport NEAR_API_KEY=here\n")
    monkeypatch.setenv("GIVEN_API_KEY", "environment")
    monkeypatch.chdir(inner)
    read_env_files()
    found = [os.environ[name] for name in ("NEAR_API_KEY", "RAG_LAB_PROJECT", "GIVEN_API_KEY")]
    assert found == ["here", "two words", "environment"]
    assert "FAR_API_KEY" not in os.environ
    assert env_files_read == {
        inner / ".env": (("NEAR_API_KEY",), ()),
        tmp_path / "project" / ".env": (("RAG_LAB_PROJECT",), ()),
    }


def test_a_key_that_was_read_is_hidden_wherever_it_would_be_shown(tmp_path):
    read_env_files(tmp_path)
    assert env_files_read == {}
    (tmp_path / ".env").write_text("MY_API_KEY=a-key-of-nobody\n")
    read_env_files(tmp_path)
    assert hide_known("it says a-key-of-nobody") == "it says [hidden]"


@pytest.mark.parametrize(
    ("content", "why"), [(b"\xff\xfe\x00K=v", "it is not text in UTF-8"), (b"#" * 2**20 + b"\n", "it is too large")]
)
def test_a_file_that_is_no_text_or_too_large_is_one_sentence(tmp_path, content, why):
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(ConfigError, match=rf"\.env: {why}; write NAME=value"):
        read_env_files(tmp_path)


def test_only_names_are_taken_that_make_nothing_run(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "of-another-kind")
    taken = {"GOOGLE_API_KEY": "g", "HF_TOKEN": "h", "RAG_LAB_STORE": "postgresql://a/b", "OTEL_SERVICE_NAME": "s"}
    refused = dict.fromkeys(
        ["BROWSER", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "HF_HOME", "HTTPS_PROXY", "OPENAI_API_BASE"]
        + ["RAG_LAB_MODULES", "RAG_LAB_LOG_FILE", "RAG_LAB_LEDGER", "_RAG_LAB_COMPLETE", "XRAG_LAB_HOME"],
        "/tmp/evil",
    ) | {"OPENAI_API_KEY": "${GITHUB_TOKEN}"}
    for name in taken | refused:
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in (taken | refused).items()))
    read_env_files(tmp_path)
    assert {name: value for name, value in os.environ.items() if before.get(name) != value} == taken
    assert env_files_read == {tmp_path / ".env": (tuple(sorted(taken)), tuple(sorted(refused)))}


def test_an_address_that_would_carry_a_key_of_another_place_is_said(tmp_path, monkeypatch, capsys):
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=https://elsewhere.example/v1\n")
    read_env_files(tmp_path)
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-nobody")
    read_env_files(tmp_path)
    said = capsys.readouterr().err
    assert said.endswith("names the server that OPENAI_API_KEY is sent to: https://elsewhere.example/v1\n")
    assert "nobody" not in said


def test_a_key_of_the_project_and_an_address_of_the_working_folder_are_of_two_places(tmp_path, capsys):
    (tmp_path / ".git").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / ".env").write_text("OPENAI_API_KEY=a-key-of-nobody\n")
    (tmp_path / "work" / ".env").write_text("OPENAI_BASE_URL=https://elsewhere.example/v1\n")
    read_env_files(tmp_path / "work")
    assert "work/.env names the server that OPENAI_API_KEY is sent to" in capsys.readouterr().err


@needs_root
@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_of_another_user_is_not_read_and_that_is_said(tmp_path, capsys, kind):
    path = tmp_path / ".env"
    (tmp_path / "mine").write_text("OPENAI_API_KEY=theirs\n")
    path.symlink_to(tmp_path / "mine") if kind == "link" else path.write_text("OPENAI_API_KEY=theirs\n")
    give_away(path)
    read_env_files(tmp_path)
    assert "OPENAI_API_KEY" not in os.environ
    assert capsys.readouterr().err == f"{path} is not read, since it belongs to another user.\n"


COMMAND = """
import os
from rag_lab.cli import main
try:
    main()
finally:
    print("BROWSER" in os.environ, os.environ["GOOGLE_API_KEY"])
"""


def test_a_command_takes_the_keys_of_a_foreign_file_and_not_its_browser(tmp_path, monkeypatch):
    monkeypatch.delenv("BROWSER", raising=False)
    (tmp_path / ".env").write_text(f"BROWSER={tmp_path}/evil.sh\nGOOGLE_API_KEY=key\n")
    done = subprocess.run([sys.executable, "-c", COMMAND, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.endswith("False key\n")
