import os
import subprocess
import sys

import pytest
from other_user import give_away, needs_root

import rag_lab._kit.home
from rag_lab._kit.home import env_files_read, home, read_env_files, usable_home
from rag_lab.errors import ConfigError
from rag_lab.redaction import hide_known


def test_the_environment_decides_else_one_that_is_there_is_found_from_below(monkeypatch, tmp_path):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "here"))
    assert home() == tmp_path / "here"
    monkeypatch.delenv("RAG_LAB_HOME")
    (tmp_path / ".rag_lab").mkdir()
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a/b")
    assert home() == tmp_path / ".rag_lab"


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    """A checkout of rag_lab in a place of its own, from which the package is installed."""
    monkeypatch.delenv("RAG_LAB_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    root = tmp_path / "checkout"
    (root / "rag_lab/_kit").mkdir(parents=True)
    (root / "rag_lab/_kit/home.py").touch()
    (root / "pyproject.toml").touch()
    monkeypatch.setattr(rag_lab._kit.home, "__file__", str(root / "rag_lab/_kit/home.py"))
    return root


@pytest.mark.parametrize("below", ["notebooks", "datasets/cloned/.git", "results/monday/variants"])
def test_below_a_checkout_it_is_the_checkouts_also_in_a_repository_that_lies_there(checkout, monkeypatch, below):
    (checkout / below).mkdir(parents=True)
    monkeypatch.chdir(checkout / below)
    assert home() == checkout / ".rag_lab"


def test_another_checkout_than_the_installed_one_has_its_own(checkout, monkeypatch, tmp_path):
    (tmp_path / "other/rag_lab/_kit").mkdir(parents=True)
    (tmp_path / "other/rag_lab/_kit/home.py").touch()
    (tmp_path / "other/notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "other/notebooks")
    assert home() == tmp_path / "other/.rag_lab"


@pytest.mark.parametrize("mark", [None, ".git", "pyproject.toml"])
def test_from_any_other_folder_it_is_that_of_the_installation_and_no_second_one_appears(
    checkout, monkeypatch, tmp_path, mark
):
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    if mark:
        (tmp_path / "elsewhere" / mark).mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere/deep")
    assert home() == checkout / ".rag_lab"


def test_without_a_checkout_it_is_the_users_data_folder_wherever_one_stands(checkout, monkeypatch, tmp_path):
    (checkout / "pyproject.toml").unlink()
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert home() == tmp_path / "data/rag_lab"


def test_one_that_somebody_made_beside_their_work_is_used(checkout, monkeypatch, tmp_path):
    (tmp_path / "project/.rag_lab").mkdir(parents=True)
    (tmp_path / "project/experiments").mkdir()
    monkeypatch.chdir(tmp_path / "project/experiments")
    assert home() == tmp_path / "project/.rag_lab"


def test_which_one_is_used_is_said_once_and_not_where_the_environment_names_it(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout)
    usable_home()
    usable_home()
    assert capsys.readouterr().err.count(f"remembered in {checkout / '.rag_lab'} (RAG_LAB_HOME names another") == 1
    rag_lab._kit.home._print_once.cache_clear()
    monkeypatch.setenv("RAG_LAB_HOME", str(checkout / "given"))
    usable_home()
    assert capsys.readouterr().err == ""


def test_a_file_in_its_place_and_one_that_cannot_be_made_are_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "made/home"))
    assert usable_home().is_dir()
    (tmp_path / "file").touch()
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="is a file.*set RAG_LAB_HOME to a folder"):
        home()
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "file/home"))
    with pytest.raises(ConfigError, match="Cannot write to .*home.*; set RAG_LAB_HOME to another"):
        usable_home()


@needs_root
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_one_of_another_user_is_passed_over_and_said_once(checkout, monkeypatch, tmp_path, capsys, kind):
    mine, theirs = tmp_path / ".rag_lab", tmp_path / "shared" / ".rag_lab"
    mine.mkdir()
    (theirs.parent / "work").mkdir(parents=True)
    theirs.mkdir() if kind == "folder" else theirs.symlink_to(mine)
    give_away(theirs)
    monkeypatch.chdir(theirs.parent / "work")
    assert home() == home() == mine
    assert capsys.readouterr().err.count(f"{theirs} is not used, since it belongs to another user; RAG_LAB_HOME") == 1


@needs_root
def test_that_of_the_installation_is_not_used_either_where_it_is_another_user_s(checkout, monkeypatch, tmp_path):
    (checkout / ".rag_lab").mkdir()
    give_away(checkout / ".rag_lab")
    monkeypatch.chdir(checkout)
    assert home() == tmp_path / "data/rag_lab"


@pytest.mark.parametrize(("before", "after"), [(None, 0o700), (0o755, 0o700), (0o775, 0o775)])
def test_the_folder_is_its_owners_alone_unless_a_group_writes_to_it(checkout, monkeypatch, before, after):
    monkeypatch.chdir(checkout)
    if before:
        (checkout / ".rag_lab").mkdir()
        (checkout / ".rag_lab").chmod(before)
    assert usable_home().stat().st_mode & 0o777 == after


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
