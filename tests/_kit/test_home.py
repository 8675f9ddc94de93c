import pytest
from other_user import give_away, needs_root

import rag_lab._kit.home
from rag_lab._kit.home import home, usable_home
from rag_lab.errors import ConfigError


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
