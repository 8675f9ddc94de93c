"""A disk with no room for more: one sentence, nothing lost, and the same command goes on once there is room."""

import os
import resource
import subprocess
import sys

import pytest
from small_plans import values, write_machines_sweep

from rag_lab.experiment.run.sweep import sweep
from rag_lab.runs.run_folder import RunFolder

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-c", "from rag_lab.cli import main; main()"]


@pytest.mark.parametrize("most_kb", [20, 90])
def test_a_sweep_without_room_says_so_and_goes_on_once_there_is_some(tmp_path, most_kb):
    path = write_machines_sweep(tmp_path, factors={"rerank.final_k": [5, 3]})
    command = [*COMMAND, "sweep", str(path), "--out", str(tmp_path / "run")]

    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_kb * 1024, most_kb * 1024))

    short = subprocess.run(command, capture_output=True, text=True, preexec_fn=no_room, env=dict(os.environ))
    assert short.returncode != 0
    assert "Traceback" not in short.stderr
    assert "room" in short.stderr.splitlines()[-1]
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert values(RunFolder.open(tmp_path / "run")) == values(sweep(path, tmp_path / "other", progress=False))
