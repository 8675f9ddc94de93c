"""How many variants run at a time is decided by what the machine has, and said."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab._kit import machine
from rag_lab._kit.machine import usable_cores
from rag_lab.errors import ConfigError
from rag_lab.experiment.run import run_options
from rag_lab.experiment.run.run_options import GUESSED_MB, as_jobs, decide
from rag_lab.runs.run_folder import RECORD_FILE


@given(
    st.integers(1, 100), st.integers(1, 64), st.floats(0, 1e6) | st.none(), st.floats(1, 1e5) | st.none(), st.booleans()
)
def test_at_least_one_runs_and_never_more_than_there_are_or_memory_holds(n_variants, cores, free, peak_mb, waits):
    jobs = decide(n_variants, cores, free, peak_mb, waits=waits).jobs
    assert 1 <= jobs <= min(n_variants, 4 * cores)
    assert jobs == 1 or free is None or jobs * (peak_mb or GUESSED_MB) <= free
    assert waits or jobs <= cores


def test_it_says_why():
    found = decide(8, 2, 16 * 1024.0, 2 * 1024.0, waits=False)
    assert (found.jobs, found.why) == (
        2, "2 variants side by side: 2 cores; 16.0 GB of memory free at 2.0 GB each.",
    )  # fmt: skip
    assert decide(8, 2, None, None, waits=True).why == (
        "8 variants side by side: 2 cores, 4 variants each as they wait for servers."
    )
    assert decide(8, 8, 5 * 1024.0, 2 * 1024.0, waits=False).jobs == 2


@pytest.mark.parametrize("given", ["0", "-1", "257", "many", "1.5", "", 0])
def test_what_is_no_number_of_jobs_is_a_sentence(given):
    with pytest.raises(ConfigError, match="jobs is 'auto' or a whole number from 1 to 256"):
        as_jobs(given)
    assert (as_jobs("auto"), as_jobs("3"), as_jobs(3)) == ("auto", 3, 3)


@pytest.mark.parametrize(("quota", "most"), [("150000 100000\n", 2), ("50000 100000\n", 1)])
def test_a_container_may_allow_fewer_cores(tmp_path, monkeypatch, quota, most):
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert usable_cores() <= most
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert usable_cores() >= 1


def test_what_variants_share_is_counted_for_none_of_them(tmp_path):
    for name, record in {"a": {"peak_memory_mb": 900, "held_elsewhere_mb": 700}, "b": {"peak_memory_mb": 300}}.items():
        (tmp_path / "variants" / name).mkdir(parents=True)
        (tmp_path / "variants" / name / RECORD_FILE).write_text(json.dumps(record))
    assert run_options._peak_mb(SimpleNamespace(path=tmp_path)) == 300
