import subprocess
import sys
from pathlib import Path

import pytest

from rag_lab._kit import machine
from rag_lab._kit.machine import (
    Meter,
    begin_peak,
    bytes_on_disk,
    energy_counter,
    of_processors,
    peak_memory_mb,
    peak_of,
    room_on_disk,
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
    taken = bytearray(100 * 2**20)
    del taken
    begin_peak()  # as a model's own measuring does


def test_the_peak_of_a_call_is_its_own_and_that_of_the_process_stays_known() -> None:
    held = bytearray(200 * 2**20)
    whole = peak_memory_mb()
    del held
    _, small = peak_of(begin_peak)
    _, large = peak_of(takes_100_mib)
    assert small is None or small + 90 < (large or 0) < small + 150
    assert peak_memory_mb() >= whole
