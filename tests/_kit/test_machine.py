import json
import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import nbclient
import nbformat
import pytest
from other_user import give_away, needs_root

from rag_lab._kit import machine
from rag_lab._kit.machine import (
    Meter,
    Process,
    begin_peak,
    bytes_on_disk,
    energy_counter,
    in_background,
    in_kernel,
    of_processors,
    peak_memory_mb,
    peak_of,
    room_on_disk,
    scratch_folder,
    write_owner,
)
from rag_lab.errors import RagLabError


def test_a_folder_takes_what_its_files_take_however_deep_and_a_file_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "below" / "deep").mkdir(parents=True)
    (tmp_path / "below" / "deep" / "b").write_bytes(b"45")
    assert bytes_on_disk(tmp_path) == 5
    assert bytes_on_disk(tmp_path / "a") == 3
    assert bytes_on_disk(tmp_path / "nowhere") == 0


def test_a_full_disk_is_a_sentence(tmp_path):
    expected = r"There is no room for .*run \(No space left on device\); make room on that disk"
    with pytest.raises(RagLabError, match=expected), room_on_disk(tmp_path / "run"):
        Path("/dev/full").write_text("x")


def test_another_error_stays_what_it_is(tmp_path):
    with pytest.raises(FileNotFoundError), room_on_disk():
        (tmp_path / "none").read_text()


@pytest.fixture
def powercap(tmp_path):
    """Two packages with a part, as Linux shows them; the second cannot be read."""
    for name, joules in (("intel-rapl:0", 100), ("intel-rapl:0:0", 60), ("intel-rapl:1", None)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "name").write_text("package-0\n")
        (folder / "max_energy_range_uj").write_text("262143328850\n")
        if joules is not None:
            (folder / "energy_uj").write_text(f"{joules * 10**6}\n")
    return tmp_path


def test_only_whole_packages_that_can_be_read_count_also_where_they_began_anew(powercap, monkeypatch):
    (meter,) = of_processors(powercap)
    assert (meter.device, meter.read()) == ("package-0", 100.0)
    monkeypatch.setattr(machine, "meters", lambda: (meter,))
    joules, counter = energy_counter(), powercap / "intel-rapl:0" / "energy_uj"
    for micro_j, spent in ((112_500_000, 12.5), (1_000_000, 262_143.32885 + 1 - 100)):
        counter.write_text(str(micro_j))
        assert joules() == pytest.approx(spent)


def test_devices_are_added(monkeypatch):
    counts = {"gpu": 5.0, "cpu": 7.0}
    found = tuple(Meter(device, lambda device=device: counts[device]) for device in counts)
    monkeypatch.setattr(machine, "meters", lambda: found)
    joules = energy_counter()
    counts.update(gpu=15.0, cpu=8.0)
    assert joules() == 11.0


def test_without_a_meter_nothing_is_known(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "meters", lambda: of_processors(tmp_path))
    assert energy_counter()() is None


ASK = "from rag_lab._kit.machine import peak_memory_mb as peak; held = bytearray({} * 2**20); print(peak())"


def peak_of_child(n_mib: int) -> int:
    done = subprocess.run([sys.executable, "-c", ASK.format(n_mib)], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not machine._STATUS.exists(), reason="only Linux tells a program's own peak")
def test_it_is_the_programs_own_and_not_that_of_whoever_started_it() -> None:
    held = bytearray(600 * 2**20)
    assert peak_of_child(0) < 300 and peak_memory_mb() >= 600
    del held
    assert 400 <= peak_of_child(400) < 700


def test_without_linux_it_is_what_the_system_reports(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(machine, "_STATUS", tmp_path / "none")
    assert 10 < peak_memory_mb() < 100_000


def takes_100_mib() -> None:
    with mmap.mmap(-1, 100 * 2**20) as taken:  # new pages, also where earlier tests left much memory to take again
        taken[::4096] = bytes(len(taken) // 4096)
    begin_peak()  # as a model's own measuring does


def test_the_peak_of_a_call_is_its_own_and_that_of_the_process_stays_known() -> None:
    held = bytearray(200 * 2**20)
    whole = peak_memory_mb()
    del held
    _, small = peak_of(begin_peak)
    _, large = peak_of(takes_100_mib)
    assert small is None or small + 90 < (large or 0) < small + 150
    assert peak_memory_mb() >= whole


def test_what_starts_kernels_is_none():
    loaded = "import rag_lab.experiment.kernels.notebook_process, ipykernel.kernelapp"
    code = f"{loaded}; from rag_lab._kit.machine import in_kernel; print(in_kernel())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    assert not in_kernel()


@pytest.mark.slow
def test_a_kernel_is_one():
    cell = nbformat.v4.new_code_cell("from rag_lab._kit.machine import in_kernel; in_kernel()")
    book = nbformat.v4.new_notebook(cells=[cell])
    nbclient.execute(book)
    assert book.cells[0].outputs[0].data["text/plain"] == "True"


FIRST_THREAD_ENDS = """
import ctypes, threading
threading.Thread(target=input).start()
print(flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_runs_until_its_last_thread_has_ended():
    begun = subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    begun.stdout.readline()
    one = Process(*Process.of()[:2], begun.pid, machine._began(begun.pid))
    state = Path(f"/proc/{begun.pid}/stat")
    while state.read_text().rpartition(")")[2].split()[0] != "Z":
        threading.Event().wait(0.01)
    assert one.runs() is True  # its files and sockets are still open
    begun.kill()
    while one.runs():  # until it ends, which nobody has to notice
        threading.Event().wait(0.01)
    begun.communicate()


def test_a_process_that_vanishes_between_two_looks_has_ended(monkeypatch):
    begun = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    one = Process.of(begun.pid)
    begun.stdin.close()
    while machine._stat(Path(f"/proc/{begun.pid}/stat"))[0] != "Z":
        threading.Event().wait(0.01)

    def after_it_has_gone(look):
        return lambda path: (begun.wait(), look(path))[1]

    monkeypatch.setattr(os, "scandir", after_it_has_gone(os.scandir))
    monkeypatch.setattr(os, "listdir", after_it_has_gone(os.listdir))
    assert one.runs() is False


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that earlier tests left behind, as libraries of models do, do not count."""
    running, left = threading.enumerate, set(threading.enumerate()) - {threading.current_thread()}
    monkeypatch.setattr(threading, "enumerate", lambda: [one for one in running() if one not in left])
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)


def who() -> dict[str, int]:
    return {"pid": os.getpid()}


def test_work_is_done_in_another_process_which_knows_what_this_one_does(two_cores):
    known = {"here": [1, 2]}
    with in_background(lambda: {**known, **who()}) as result:
        found = result()
    assert found["here"] == [1, 2] and found["pid"] != os.getpid()


def test_a_result_is_larger_than_a_pipe_holds(two_cores):
    with in_background(lambda: "ä" * 3_000_000) as result:
        assert result() == "ä" * 3_000_000


def test_what_failed_there_is_done_here_so_that_its_error_is_seen(two_cores):
    def fails_there() -> dict[str, int]:
        raise KeyError(os.getpid())

    with pytest.raises(KeyError, match=str(os.getpid())), in_background(fails_there) as result:
        result()


def test_nobody_waits_for_work_whose_block_has_failed(two_cores, tmp_path):
    def slow() -> None:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(60)

    with pytest.raises(ValueError, match="the block"), in_background(slow):
        while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        raise ValueError("the block")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("why", ["cores", "threads"])
def test_it_is_done_here_without_another_core_and_beside_other_threads(two_cores, why, monkeypatch):
    stop = threading.Event()
    if why == "cores":
        monkeypatch.setattr(machine, "usable_cores", lambda: 1)
    else:
        threading.Thread(target=stop.wait, daemon=True).start()
    with in_background(who) as result:
        assert result() == {"pid": os.getpid()}
    stop.set()


KILLED = """
import os
from rag_lab._kit.machine import scratch_folder
folder = scratch_folder("task")
print(folder.name, flush=True)
os._exit(1)  # as one that is killed
"""


@pytest.fixture
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
from rag_lab._kit.machine import scratch_folder
scratch_folder("task").cleanup()
"""
HOSTILE = {
    "deep": lambda file: file.write_text("[" * 4000),
    "huge": lambda file: file.write_text(json.dumps([*Process.of()[:2], 10**40, "1"])),
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
