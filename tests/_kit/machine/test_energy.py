import pytest

from rag_lab._kit.machine import energy
from rag_lab._kit.machine.energy import Energy, Meter, of_processors


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


def test_only_whole_packages_that_can_be_read_count(powercap):
    (meter,) = of_processors(powercap)
    assert (meter.device, meter.read()) == ("package-0", 100.0)
    (powercap / "intel-rapl:0" / "energy_uj").write_text("112500000")
    assert meter.since(100.0) == 12.5


def test_a_counter_that_began_anew_is_understood(powercap):
    (meter,) = of_processors(powercap)
    (powercap / "intel-rapl:0" / "energy_uj").write_text("1000000")
    assert meter.since(262_143.0) == pytest.approx(1.32885)


def test_devices_are_added(monkeypatch):
    counts = {"gpu": 5.0, "cpu": 7.0}
    found = tuple(Meter(device, lambda device=device: counts[device]) for device in counts)
    monkeypatch.setattr(energy, "meters", lambda: found)
    began = Energy.begin()
    counts.update(gpu=15.0, cpu=8.0)
    assert began.joules() == 11.0


def test_without_a_meter_nothing_is_known(monkeypatch, tmp_path):
    monkeypatch.setattr(energy, "meters", lambda: of_processors(tmp_path))
    assert Energy.begin().joules() is None
