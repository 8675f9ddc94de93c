"""Sweeps whose variants run in workers: the same scores, and a worker that is killed costs what it was at."""

import os
import signal
import subprocess
import threading

import pytest
from import_traps import set_traps
from postgres import CAN_RUN, postgres_server
from real_jobs import wait_for
from small_plans import values, values_here, write_machines_sweep
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.errors import RagLabError
from rag_lab.experiment.executors.job_queue import JobQueue
from rag_lab.experiment.executors.launchers import worker_command
from rag_lab.experiment.run.sweep import alone_in_store, sweep
from rag_lab.experiment.sweep_status import sweep_status
from rag_lab.runs.run_folder import known_name

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _without_reports(monkeypatch):
    monkeypatch.setattr("rag_lab.report.page.report_page.write_report", lambda path, **_: path)


class Sweep(threading.Thread):
    """A sweep that runs nothing itself."""

    def __init__(self, path, out):
        super().__init__(daemon=True)
        self.path, self.out, self.run_folder = path, out, None
        self.start()
        wait_for(lambda: known_name(out) and JobQueue(known_name(out)).announced())

    def run(self):
        self.run_folder = sweep(self.path, self.out, jobs=0, executor="workers", progress=False)

    @property
    def queue(self):
        return JobQueue(known_name(self.out))


def test_a_worker_imports_nothing_from_the_working_folder(tmp_path, monkeypatch):
    sprung = set_traps(tmp_path / "foreign", monkeypatch)
    assert subprocess.run(worker_command("--help"), capture_output=True).returncode == 0
    assert not sprung.exists()


@pytest.fixture(scope="module")
def address():
    """Of a PostgreSQL, or ''."""
    if not CAN_RUN:
        yield ""
        return
    with postgres_server() as server:
        yield server.address()


def worker(name, home, cwd=None):
    environment = {**os.environ, "RAG_LAB_HOME": str(home)}
    asked = worker_command(name, "--idle-minutes", "0.05")
    return subprocess.Popen(asked, stdout=subprocess.PIPE, text=True, env=environment, cwd=cwd)


def test_workers_give_the_scores_of_the_local_run_also_where_one_is_killed(tmp_path, monkeypatch, address):
    path = write_machines_sweep(tmp_path)
    local = values_here(path, tmp_path / "local")
    homes = [tmp_path / f"home_{n}" if address else tmp_path / "home" for n in range(4)]  # as of four machines
    monkeypatch.setenv("RAG_LAB_HOME", str(homes[0]))
    if address:
        monkeypatch.setenv("RAG_LAB_STORE", address)

    running = Sweep(path, tmp_path / "run")
    queue = running.queue
    first = worker(queue.run, homes[1])
    wait_for(lambda: queue.memory.holders(one["key"] for one in queue.announced().values()))
    first.send_signal(signal.SIGKILL)
    first.wait()
    others = [worker(queue.run, home) for home in homes[2:]]
    told = [one.communicate(timeout=120)[0] for one in others]
    running.join(60)

    assert values(running.run_folder) == local
    states = running.run_folder.manifest()["variants"].values()
    assert {state["status"] for state in states} == {"ok"}
    done = [line for text in told for line in text.splitlines() if ": ok" in line]
    assert len(done) >= len(states) - 1  # the killed one may have ended one before
    assert len(done) == len({line.partition(":")[0] for line in done})  # nothing twice


WAITS = """
import time
from pathlib import Path

def rerank(question, passages):
    while Path(__file__).with_name("wait").exists():
        time.sleep(0.05)
    return [-len(passage) for passage in passages]
"""


def test_what_a_variant_in_a_worker_says_of_itself_stands_in_the_status_of_the_run(tmp_path, monkeypatch, address):
    (tmp_path / "waits.py").write_text(WAITS)
    base = {
        "query": {"rewrite": "none", "hyde": "none"},
        "retrieval": {"mode": "bm25"},
        "rerank": {"name": "waits:rerank"},
        "answer": {"name": "none"},
    }
    path = write_machines_sweep(tmp_path, base=base, factors={"rerank.final_k": [5, 3]})
    homes = [tmp_path / f"home_{n}" if address else tmp_path / "home" for n in range(2)]
    monkeypatch.setenv("RAG_LAB_HOME", str(homes[0]))
    if address:
        monkeypatch.setenv("RAG_LAB_STORE", address)
    running = Sweep(path, tmp_path / "run")
    (tmp_path / "wait").touch()  # the plan has tried the function by now
    (elsewhere := tmp_path / "elsewhere").mkdir()
    one = worker(running.queue.run, homes[1], cwd=elsewhere)

    def stages():
        return {(v.state, v.stage, v.done, v.total) for v in sweep_status(tmp_path / "run").variants}

    wait_for(lambda: ("running", "rerank", 0, 3) in stages())  # one question finds nothing
    assert ("waiting", "", 0, None) in stages()
    (tmp_path / "wait").unlink()
    one.communicate(timeout=120)
    running.join(60)
    assert {state for state, *_ in stages()} == {"ok"}


def test_what_workers_did_while_the_sweep_was_gone_is_collected_and_another_sweep_is_refused(tmp_path, monkeypatch):
    path = write_machines_sweep(tmp_path, factors={"rerank.final_k": [5, 3]})
    script = [*worker_command("x")[:-2], "sweep", str(path), "--out", str(tmp_path / "run")]
    gone = subprocess.Popen([*script, "--executor", "workers", "--jobs", "0"])
    wait_for(lambda: known_name(tmp_path / "run") and JobQueue(known_name(tmp_path / "run")).announced())
    with pytest.raises(RagLabError, match="Another sweep is running"), alone_in_store(tmp_path / "run"):
        pass
    gone.kill()
    gone.wait()
    done = CliRunner().invoke(app, ["worker", str(tmp_path / "run"), "--idle-minutes", "0"])
    assert "2 done here" in done.output
    run = sweep(path, tmp_path / "run", jobs=0, executor="workers", progress=False)
    assert {state["status"] for state in run.manifest()["variants"].values()} == {"ok"}


def test_a_worker_whose_run_nobody_has_announced_says_so():
    with pytest.raises(RagLabError, match="No sweep has announced the run 'nothing'"):
        CliRunner().invoke(app, ["worker", "nothing", "--idle-minutes", "0"], catch_exceptions=False)
