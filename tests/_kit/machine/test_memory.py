from __future__ import annotations

import subprocess
import sys

import pytest

from rag_lab._kit.machine import memory
from rag_lab._kit.machine.memory import begin_peak, peak_memory_mb, peak_of

ASK = "from rag_lab._kit.machine.memory import peak_memory_mb as peak; held = bytearray({} * 2**20); print(peak())"


def peak_of_child(n_mib: int) -> int:
    done = subprocess.run([sys.executable, "-c", ASK.format(n_mib)], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not memory._STATUS.exists(), reason="only Linux tells a program's own peak")
def test_it_is_the_programs_own_and_not_that_of_whoever_started_it() -> None:
    held = bytearray(600 * 2**20)
    assert peak_of_child(0) < 300 and peak_memory_mb() >= 600
    del held
    assert 400 <= peak_of_child(400) < 700


def test_elsewhere_it_is_what_the_system_tells() -> None:
    assert 10 < memory._by_getrusage() < 100_000


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
