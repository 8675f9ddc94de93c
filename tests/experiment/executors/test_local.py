"""Real kernels: each test that executes a notebook takes seconds."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from real_jobs import notebook_job, wait_for, wait_for_end

from rag_lab.errors import ConfigError
from rag_lab.experiment.executors.local import check_parameters, execute

pytestmark = pytest.mark.slow

PARAMETERS = 'OUT: str = ""  # a file\nFAIL: bool = False  # whether to fail\nWAIT_S: float = 0.0  # how long\n'
BODY = """
import os, sys, time
from pathlib import Path
from rag_lab.errors import ModelError
Path(OUT).write_text("\\n".join([sys.executable, os.getcwd(), os.environ["RAG_LAB_HOME"], str(os.getpid())]))
if FAIL:
    raise ModelError("No weights\\nnamed x.")
time.sleep(WAIT_S)
Path(OUT + ".end").touch()
"""


def job(folder, name="one", body=BODY, **parameters):
    return notebook_job(folder, name, body, PARAMETERS, parameters)


def test_a_variant_runs_in_this_python_here_and_with_this_home(tmp_path, monkeypatch):
    kernels = (
        tmp_path / "jupyter" / "kernels" / "python3"
    )  # a kernel of the user's with the same name must not be taken
    kernels.mkdir(parents=True)
    (kernels / "kernel.json").write_text('{"argv": ["/bin/false"], "display_name": "other", "language": "python"}')
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    [done] = execute([job(tmp_path / "run")], cwd=here)
    assert done.reason == ""
    python, cwd, home, _ = (tmp_path / "run" / "one.json").read_text().splitlines()
    assert (python, cwd, home) == (sys.executable, str(here), os.environ["RAG_LAB_HOME"])
    assert (
        tmp_path / "run" / "one.log"
    ).read_text() == ""  # what passes on loopback is encrypted, so nothing is warned


def test_a_failing_notebook_is_kept_with_its_reason_and_the_others_go_on(tmp_path):
    jobs = [job(tmp_path, "bad", FAIL=True), job(tmp_path, "good")]
    done = {one.job.name: one.reason for one in execute(jobs, n_jobs=2)}
    assert done == {"bad": "No weights named x.", "good": ""}
    kept = nbformat.read(tmp_path / "bad.ipynb", as_version=4)
    assert any(output.get("ename") == "ModelError" for cell in kept.cells for output in cell.get("outputs", []))
    assert (tmp_path / "good.json.end").exists()


def test_what_waits_for_a_server_starts_first_and_beside_what_computes(tmp_path):
    waits_for = {"computes": "", "first": "server", "second": "server"}
    jobs = [replace(job(tmp_path, name), waits_for=server) for name, server in waits_for.items()]
    started = []
    done = list(execute(jobs, 2, veto=lambda one, runs: "" if runs else started.append(one.name) or ""))
    assert started == ["first", "computes", "second"]
    assert [one.reason for one in done] == [""] * 3


def test_a_kernel_that_crashes_is_a_reason(tmp_path):
    [done] = execute([job(tmp_path, body="import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")])
    assert "kernel died" in done.reason


def test_an_unknown_parameter_or_one_that_is_no_scalar_is_refused_before_anything_runs(tmp_path):
    good = job(tmp_path, "good")
    bad = job(tmp_path, "bad", FIAL=True, WAIT_S=[1], OUT=Path("x"))
    with pytest.raises(ConfigError) as error:
        list(execute([good, bad]))
    assert "did you mean 'FAIL'?" in str(error.value)
    assert "WAIT_S must be" in str(error.value)
    assert "OUT must be" in str(error.value)
    assert not good.output.exists()
    check_parameters(good.notebook, good.parameters)


def test_ending_early_ends_the_processes(tmp_path):
    running = execute([job(tmp_path, "quick"), job(tmp_path, "slow", WAIT_S=600)], n_jobs=2)
    assert next(running).job.name == "quick"
    wait_for((tmp_path / "slow.json").exists)
    kernel = int((tmp_path / "slow.json").read_text().splitlines()[-1])
    running.close()
    wait_for_end(kernel)
