"""Prepared kernels: each notebook begins as if it were the first, whatever the one before it has done."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import nbformat
import pytest
import zmq
from import_traps import set_traps
from nbformat.v4 import new_code_cell
from other_user import as_nobody, needs_root
from real_jobs import notebook_job, process_fields, wait_for, wait_for_end

from rag_lab.experiment.executors import local
from rag_lab.experiment.executors.local import execute, prepared
from rag_lab.experiment.kernels.fork_server import CAN_FORK, ForkServer, ForkServerGone

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CAN_FORK, reason="no fork here"),
]

STATE = """
import json, os, random, sys, threading
import numpy as np
import torch
import rag_lab.records
seen = {
    "globals": sorted(name for name in globals() if name.startswith("LEFT")),
    "modules": sorted(name for name in sys.modules if name in ("left_behind", "chunk")),
    "patched": hasattr(rag_lab.records, "LEFT"),
    "environment": sorted(name for name in os.environ if name.startswith("LEFT")),
    "folder": os.getcwd(),
    "path": [entry for entry in sys.path if "left" in entry],
    "random": [random.random(), float(np.random.random()), float(torch.rand(1))],
    "threads": [thread.name for thread in threading.enumerate() if thread.name.startswith("left")],
    "pid": os.getpid(),
    "argv": sys.argv[0],
}
"""
SPOIL = """
LEFT = 1
import chunk, types
sys.modules["left_behind"] = types.ModuleType("left_behind")
rag_lab.records.LEFT = 1
os.environ["LEFT_BEHIND"] = "1"
os.makedirs("elsewhere", exist_ok=True); os.chdir("elsewhere")
sys.path.insert(0, "left")
random.seed(1); np.random.seed(1); torch.manual_seed(1); torch.rand(5)
threading.Thread(target=threading.Event().wait, name="left", daemon=True).start()
"""


def written_by(jobs, folder, **options):
    """What jobs that all end well write to their files."""
    assert [done.reason for done in execute(jobs, cwd=folder, **options)] == [""] * len(jobs)
    return [Path(job.parameters["OUT"]).read_text() for job in jobs]


def test_nothing_leaks_from_one_notebook_to_the_next(tmp_path):
    names = ["first", "second", "third"]  # of which the last two find imported what the first has
    jobs = [notebook_job(tmp_path, name, STATE + SPOIL + "\nopen(OUT, 'w').write(json.dumps(seen))") for name in names]
    found = list(map(json.loads, written_by(jobs, tmp_path)))
    for seen in found:
        kinds = ("globals", "modules", "environment", "path", "threads")
        assert {kind: seen[kind] for kind in kinds} == dict.fromkeys(kinds, [])
        assert not seen["patched"] and seen["folder"] == str(tmp_path)
        assert seen["argv"].endswith("ipykernel_launcher.py")
    assert len({seen["pid"] for seen in found}) == 3
    assert len({number for seen in found for number in seen["random"]}) == 9


def test_what_one_has_imported_of_the_heavy_libraries_and_of_ours_the_next_finds(tmp_path):
    names = ["tokenizers", "rag_lab.testing.doubles", "tabnanny"]
    told = f"import sys, json; open(OUT, 'w').write(json.dumps([n in sys.modules for n in {names}]))"
    jobs = [notebook_job(tmp_path, name, f"{told}\nimport {', '.join(names)}") for name in ("first", "second")]
    assert list(map(json.loads, written_by(jobs, tmp_path))) == [[False, False, False], [True, True, False]]


def test_what_is_drawn_ahead_is_there_in_every_kernel(tmp_path):
    told = "from rag_lab.statistics.intervals import _kept\nopen(OUT, 'w').write(str(_kept.cache_info().currsize > 0))"
    with prepared() as starter:
        starter.fork_server.draw_ahead(7)
        assert written_by([notebook_job(tmp_path, "one", told)], tmp_path) == ["True"]


def test_each_has_the_environment_of_its_job_and_its_prints_in_its_log(tmp_path):
    body = (
        "import os\nopen(OUT, 'w').write(os.environ['WHO'])\nos.write(1, b'out\\n'); os.write(2, os.environb[b'WHO'])"
    )
    jobs = [notebook_job(tmp_path, name, body, environment={"WHO": name}) for name in ("one", "two")]
    assert written_by(jobs, tmp_path, n_jobs=2) == ["one", "two"]


@pytest.mark.parametrize("cold", [False, True])
def test_a_kernel_is_asked_through_files_of_this_user_and_no_port_that_another_may_take(tmp_path, cold):
    body = (
        "import json; from ipykernel.kernelapp import IPKernelApp\nkernel = IPKernelApp.instance()\n"
        "open(OUT, 'w').write(json.dumps([kernel.transport, kernel.ip]))"
    )
    [text] = written_by([notebook_job(tmp_path, "one", body, cold=cold)], tmp_path)
    transport, place = json.loads(text)
    assert transport == "ipc"
    assert not Path(place).parent.exists()  # it was the notebook's own, and has gone with it


WAITS = """
import json, os, time
from pathlib import Path
from ipykernel.kernelapp import IPKernelApp
kernel = IPKernelApp.instance()
Path(f"{OUT}.new").write_text(json.dumps(sorted(map(str, Path(kernel.ip).parent.glob(f"{Path(kernel.ip).name}-*")))))
os.rename(f"{OUT}.new", OUT)
while not Path(OUT).with_name("go_on").exists():
    time.sleep(0.02)
"""
UNSIGNED = {"msg_id": "1", "session": "x", "username": "x", "msg_type": "execute_request", "version": "5.3"}


def connect(place):
    socket.socket(socket.AF_UNIX).connect(place)


def send_garbage(place):
    """Send what no kernel expects, and a request to run code that is not signed."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(place)
        raw.sendall(os.urandom(65_536))
    request = json.dumps({"code": "LEFT = 1", "silent": False, "store_history": False}).encode()
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.linger, dealer.sndtimeo = 200, 2000  # a socket of another kind ends the connection: nobody takes it then
        dealer.connect(f"ipc://{place}")
        with suppress(zmq.Again):
            for signature in (b"", b"0" * 64):
                dealer.send_multipart([b"<IDS|MSG>", signature, json.dumps(UNSIGNED).encode(), b"{}", b"{}", request])
            dealer.send(b"[" * 100_000)


@needs_root
def test_garbage_and_another_user_at_the_sockets_of_a_kernel_change_nothing(tmp_path):
    found = []
    one = notebook_job(tmp_path, "one", WAITS)
    book = nbformat.read(one.notebook, as_version=4)
    book.cells.append(new_code_cell("assert 'LEFT' not in globals()"))
    nbformat.write(book, one.notebook)
    run = threading.Thread(target=lambda: found.extend(execute([one], cwd=tmp_path)), daemon=True)
    run.start()
    while not (tmp_path / "one.json").exists() and run.is_alive():
        time.sleep(0.02)
    places = json.loads((tmp_path / "one.json").read_text())
    refused = [as_nobody(partial(connect, place)).split()[0] for place in places]
    for place in places:
        send_garbage(place)
    (tmp_path / "go_on").touch()
    run.join()
    assert refused == ["PermissionError"] * 5
    assert [done.reason for done in found] == [""]


def test_a_cold_job_runs_in_a_process_of_its_own(tmp_path):
    body = "import sys\nopen(OUT, 'w').write(str('rag_lab' in sys.modules))"
    jobs = [notebook_job(tmp_path, "warm", body), notebook_job(tmp_path, "cold", body, cold=True)]
    assert written_by(jobs, tmp_path) == ["True", "False"]


def test_nothing_is_imported_from_the_working_folder(tmp_path, monkeypatch):
    seen = "str(importlib.util.find_spec('only_here'))"
    body = f"import json, jsonschema, importlib.util\nopen(OUT, 'w').write({seen})"
    sprung = set_traps(tmp_path / "foreign", monkeypatch)
    jobs = [notebook_job(tmp_path, "warm", body), notebook_job(tmp_path, "cold", body, cold=True)]
    assert written_by(jobs, tmp_path / "foreign") == ["None", "None"]
    assert not sprung.exists()


def test_a_cell_that_runs_too_long_is_ended_with_its_kernel(tmp_path):
    body = "import os, time\nopen(OUT, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    [done] = execute([notebook_job(tmp_path, "slow", body, cell_minutes=0.05)], cwd=tmp_path)
    assert done.reason == "A cell ran for more than 0.05 minutes and was ended; --cell-minutes allows more."
    wait_for_end(int((tmp_path / "slow.json").read_text()))


def run_in(job, kernel, before):
    """What comes of a job in a kernel, of which a line is done `before`; in a process without threads."""
    script = (
        "import os\n"
        "from rag_lab.experiment.kernels import notebook_process, engine\n"
        f"kernel = {kernel}\n"
        f"{before}\n"
        f"given = {str(job.notebook)!r}, {str(job.output)!r}, {dict(job.parameters)!r}, {str(job.output.parent)!r}\n"
        "print(notebook_process.run_notebook(*given, 60, kernel=kernel))"
    )
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("kernel", ["None", "engine.ForkedKernel(lambda: None)"])
def test_a_kernel_that_does_not_answer_is_ended_and_named(tmp_path, kernel):
    body = "import os, signal\nopen(OUT, 'w').write(str(os.getpid()))\nos.kill(os.getpid(), signal.SIGSTOP)"
    hung = notebook_job(tmp_path, "hung", body)
    told = run_in(hung, kernel, "engine.SamePythonKernelManager.silence_s = 3")
    assert told.startswith("The kernel did not answer for 3 seconds and was ended")
    wait_for_end(int((tmp_path / "hung.json").read_text()))


def test_a_kernel_that_dies_before_it_has_begun_is_a_reason(tmp_path):
    died = "os.kill(kernel.pid, 9); os.waitid(os.P_PID, kernel.pid, os.WEXITED | os.WNOWAIT)"
    told = run_in(notebook_job(tmp_path, "one", "1"), "engine.ForkedKernel(lambda: None)", died)
    assert told == "RuntimeError: Kernel died before replying to kernel_info\n"


def test_another_fork_server_takes_the_place_of_one_that_is_gone(tmp_path, caplog):
    body = "import os\nopen(OUT, 'w').write(open(f'/proc/{os.getppid()}/cmdline').read())"
    running = execute([notebook_job(tmp_path, name, body) for name in ("one", "two")], cwd=tmp_path)
    assert next(running).reason == ""
    gone = fork_server_of(os.getpid())
    os.kill(gone, signal.SIGKILL)
    assert [done.reason for done in running] == [""]
    assert "kernels.fork_server" in (tmp_path / "two.json").read_text()
    assert caplog.text == ""


def test_a_job_goes_on_where_its_fork_server_is_gone_and_one_without_any_has_a_process_of_its_own(
    tmp_path, caplog, monkeypatch
):
    body = "import time\nopen(OUT, 'w').write('began')\ntime.sleep(2)\nopen(OUT, 'w').write('ended')"
    killed = []

    def poll(_):
        if not killed and (tmp_path / "one.json").exists():
            killed.append(fork_server_of(os.getpid()))
            os.kill(killed[0], signal.SIGKILL)

    def fail(_):
        raise ForkServerGone("it has ended")

    running = execute([notebook_job(tmp_path, name, body) for name in ("one", "two")], cwd=tmp_path, poll=poll)
    assert next(running).reason == ""
    assert (tmp_path / "one.json").read_text() == "ended"
    monkeypatch.setattr(ForkServer, "start", fail)
    assert [done.reason for done in running] == [""]
    assert "Kernels are no longer prepared" in caplog.text


def test_the_process_of_a_notebook_that_is_stopped_is_ended_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "STOPPED_S", 2.0)
    body = "import os, signal, time\nopen(OUT, 'w').write(str(os.getpid()))\n"
    body += "os.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(600)"
    [done] = execute([notebook_job(tmp_path, "stopped", body)], cwd=tmp_path)
    assert done.reason.startswith("The notebook's process was stopped for 2 seconds and was ended")
    wait_for_end(int((tmp_path / "stopped.json").read_text()))


@pytest.mark.parametrize("from_here", [False, True])
def test_a_killed_sweep_leaves_no_prepared_process(tmp_path, from_here):
    one = notebook_job(tmp_path, "one", "import os, time\nopen(OUT, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    script = (
        "from pathlib import Path\nfrom rag_lab.experiment.executors.local import Job, execute, prepared\n"
        f"with prepared(from_here={from_here}):\n"
        f"    list(execute([Job('one', Path({str(one.notebook)!r}), Path({str(one.output)!r}), "
        f"{dict(one.parameters)!r}, Path({str(one.log)!r}))]))"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    told = tmp_path / "one.json"
    wait_for(lambda: told.exists() and told.read_text())
    fork_server = fork_server_of(parent.pid, script if from_here else "kernels.fork_server")
    parent.kill()
    parent.wait()
    for pid in (fork_server, int(told.read_text())):
        wait_for_end(pid)


def fork_server_of(parent, command="kernels.fork_server"):
    """The process that prepares those of a sweep, by its command line; that of a fork is its parent's."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_one = command.encode() in (entry / "cmdline").read_bytes()
            if is_one and int(process_fields(entry.name)[1]) == parent:
                return int(entry.name)
    raise AssertionError("there is none")
