import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rag_lab.errors import ConfigError
from rag_lab.models.hosted import HOST_VARIABLE, host_folder, is_open, model_host, model_processes, write_process

ENDED = """
import os
from rag_lab.models.hosted import model_host
with model_host() as environment:
    print(next(iter(environment.values())), flush=True)
    os._exit(1)  # as one that is killed
"""


def test_the_place_is_private_starts_nothing_and_goes_with_the_sweep(monkeypatch):
    with model_host() as environment:
        folder = Path(environment[HOST_VARIABLE])
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert host_folder() is None  # the sweep's own process keeps its models
        monkeypatch.setenv(HOST_VARIABLE, str(folder))
        assert host_folder() == folder
        assert model_processes(folder) == []
    assert not folder.exists()
    assert host_folder() is None


def test_a_user_may_switch_it_off(monkeypatch):
    monkeypatch.setenv(HOST_VARIABLE, "off")
    assert host_folder() is None
    with model_host() as environment:
        assert environment == {}


def test_the_place_of_a_sweep_that_was_killed_is_closed():
    done = subprocess.run([sys.executable, "-c", ENDED], capture_output=True, text=True)
    folder = Path(done.stdout.strip())
    assert folder.is_dir() and not is_open(folder)


def test_the_place_of_another_machine_is_closed(tmp_path):
    (tmp_path / "owner.json").write_text(json.dumps(["elsewhere", "", os.getpid(), "1"]))
    assert not is_open(tmp_path)


def test_the_longest_unused_comes_first(tmp_path):
    for name, used_s in (("a", 30), ("b", 10), ("c", 20)):
        write_process(tmp_path, name, f"model {name}", "cpu", 100.0)
        os.utime(tmp_path / f"{name}.holder", (used_s, used_s))
    assert [(one.name, one.model) for one in model_processes(tmp_path)] == [
        ("b", "model b"),
        ("c", "model c"),
        ("a", "model a"),
    ]


@pytest.mark.parametrize("given", ["much", "0", "-3", "nan", "inf"])
def test_a_budget_that_is_no_number_is_said_before_the_sweep(given, monkeypatch):
    monkeypatch.setenv("RAG_LAB_MODEL_MEMORY_GB", given)
    with pytest.raises(ConfigError, match="RAG_LAB_MODEL_MEMORY_GB is .* give a positive number"), model_host():
        pass
