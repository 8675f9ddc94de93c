import subprocess
import sys
import threading

import pytest

from rag_lab._kit.home import home
from rag_lab.errors import ModelError
from rag_lab.models.local.local_model import MachineMeter, keep_converted, without_progress_bars


def test_weights_are_made_once_for_all_who_ask_at_once():
    made = []

    def make(partial):
        made.append(partial)
        partial.write_text("whole")

    threads = [threading.Thread(target=keep_converted, args=("copy", make)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert keep_converted("copy", make).read_text() == "whole"


def test_a_failed_conversion_leaves_nothing_under_the_final_name():
    def fail(partial):
        partial.mkdir()
        (partial / "half").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(ModelError, match="No space left on device; free some space or set RAG_LAB_HOME"):
        keep_converted("copy", fail)
    assert not (home() / "weights" / "copy").exists()
    assert keep_converted("copy", lambda partial: partial.write_text("whole")).read_text() == "whole"


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process holds")
MEASURED = """
import numpy as np
from rag_lab._kit.machine import peak_memory_mb
from rag_lab.models.local.local_model import MachineMeter

MB = 2**20
meter = MachineMeter()
with meter.loading():
    weights = np.ones(100 * MB, np.uint8)
between = np.ones(80 * MB, np.uint8)  # somebody else's
_, small = meter.measured(lambda: np.ones(1 * MB, np.uint8).sum())
_, large = meter.measured(lambda: np.ones(60 * MB, np.uint8).sum())  # given back before it returns
_, after = meter.measured(lambda: None)
print(small.memory_mb, large.memory_mb, after.memory_mb, large.load_s, peak_memory_mb())
"""


@linux
def test_memory_is_what_loading_and_the_largest_call_added():
    """In a process of its own: memory that earlier work gave back would be taken again, without any growth."""
    done = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    small, large, after, load_s, whole = map(float, done.stdout.split())
    assert small == pytest.approx(101, abs=5)
    assert large == pytest.approx(160, abs=5)
    assert after == large
    assert load_s > 0
    assert whole >= 240


def test_what_was_loaded_before_anybody_measured_is_unknown():
    _, use = MachineMeter().measured(lambda: None)
    assert (use.load_s, use.memory_mb) == (None, None)


@pytest.mark.parametrize("was_on", [True, False])
def test_progress_bars_come_back_as_they_were(was_on):
    from transformers.utils import logging

    before = logging.is_progress_bar_enabled()
    (logging.enable_progress_bar if was_on else logging.disable_progress_bar)()
    try:
        with pytest.raises(ValueError), without_progress_bars():
            assert not logging.is_progress_bar_enabled()
            raise ValueError
        assert logging.is_progress_bar_enabled() is was_on
    finally:
        (logging.enable_progress_bar if before else logging.disable_progress_bar)()
