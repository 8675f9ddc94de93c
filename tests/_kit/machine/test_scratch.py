import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from other_user import give_away, needs_root

from rag_lab._kit.machine.scratch import scratch_folder, write_owner
from rag_lab._kit.process import Process

KILLED = """
import os
from rag_lab._kit.machine.scratch import scratch_folder
folder = scratch_folder("task")
print(folder.name, flush=True)
os._exit(1)  # as one that is killed
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    tempfile.tempdir = None


def test_what_a_killed_process_left_goes_with_the_next_folder_and_nothing_else_does(temporary):
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True)
    left = Path(done.stdout.strip())
    assert left.parent == temporary and left.is_dir()
    for name in ("rag_lab_models_other", "somebody_else"):
        (temporary / name).mkdir()
    with scratch_folder("task") as mine, scratch_folder("task") as other:
        assert not left.exists()
        assert Path(mine).is_dir() and Path(other).is_dir() and Path(mine).stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in temporary.iterdir()) == ["rag_lab_models_other", "somebody_else"]


def test_a_folder_of_another_machine_is_left_alone(temporary):
    far = temporary / "rag_lab_task_far"
    far.mkdir()
    write_owner(far)
    (far / "owner.json").write_text((far / "owner.json").read_text().replace(os.uname().nodename, "elsewhere"))
    scratch_folder("task").cleanup()
    assert far.is_dir()


ENDED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
from rag_lab._kit.machine.scratch import scratch_folder
scratch_folder("task").cleanup()
"""
HOSTILE = {
    "deep": lambda file: file.write_text("[" * 4000),
    "huge": lambda file: file.write_text(json.dumps([*Process.this()[:2], 10**40, "1"])),
    "fifo": os.mkfifo,
    "endless": lambda file: file.symlink_to("/dev/zero"),
    "linked": lambda file: file.symlink_to(file.parent),
    "large": lambda file: file.write_text(" " * 10**6),
}


@pytest.mark.parametrize("owner", ["mine", pytest.param("another user's", marks=needs_root)])
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_folder_in_the_temporary_folder_can_stop_a_command(temporary, kind, owner):
    folder = temporary / "rag_lab_task_trap"
    folder.mkdir()
    HOSTILE[kind](folder / "owner.json")
    if owner != "mine":
        give_away(folder, folder / "owner.json")
    done = subprocess.run([sys.executable, "-c", ENDED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert folder.is_dir()


@needs_root
def test_what_another_user_left_is_not_deleted_by_this_one(temporary):
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True)
    left = Path(done.stdout.strip())
    give_away(left)
    scratch_folder("task").cleanup()
    assert left.is_dir()
