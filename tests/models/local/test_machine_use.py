import subprocess
import sys

import pytest

from rag_lab.models.local.local_model import MachineMeter

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
