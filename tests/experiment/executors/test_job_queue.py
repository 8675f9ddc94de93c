"""Jobs in the store: each is claimed once, what was handed in survives the sweep, what is over is left alone."""

import time

import pytest

from rag_lab.experiment.executors.job_queue import TAKEN, WITHDRAWN, JobQueue, export_status, import_status
from rag_lab.experiment.executors.local import Origin
from rag_lab.experiment.executors.task import Task
from rag_lab.runs.run_folder import write_json
from rag_lab.runs.variant_files import LIVE_FILE, LiveVariant, read_live


def task(name, identity="i"):
    return Task(name, Origin("run-1", identity, "small", "", ""), {}, {}, {}, {}, "", {}, False, 1.0)


@pytest.fixture
def queue():
    return JobQueue("run-1")


def test_a_job_is_claimed_handed_in_and_collected(queue):
    assert queue.announced() == {}
    keys = queue.announce([task("a"), task("b")])
    assert queue.task(keys["a"]) == task("a")
    assert queue.claim(keys.values()) == keys["a"]
    assert len(queue.memory.holders(keys.values())) == 1
    queue.store({keys["a"]: '"results"'})
    assert queue.memory.holders(keys.values()) == []
    assert queue.claim([keys["a"]]) == ""
    assert queue.collect(keys) == ("a", '"results"')
    assert queue.collect({"b": keys["b"]}) is None


def test_what_was_handed_in_while_nobody_collected_is_the_next_starts(queue):
    before = queue.announce([task("a"), task("b"), task("c")])
    queue.store({before["a"]: '"results"', before["b"]: '"of another configuration"', before["c"]: TAKEN})
    keys = queue.announce([task("a"), task("b", "other"), task("c")])
    assert queue.collect(keys) == ("a", '"results"')
    assert queue.collect({"b": keys["b"], "c": keys["c"]}) is None


def test_a_job_that_was_withdrawn_is_over_for_whoever_is_at_it(queue):
    keys = queue.announce([task("a")])
    assert not queue.is_over(queue.claim(keys.values()))
    queue.store(dict.fromkeys(keys.values(), WITHDRAWN))
    assert queue.is_over(keys["a"])
    assert queue.claim(keys.values()) == ""


def test_a_status_arrives_by_the_clock_of_whoever_reads_it(tmp_path, monkeypatch):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir(), here.mkdir()
    now = time.time()
    write_json(there / LIVE_FILE, LiveVariant("generate", now - 5, 1, 2, 0, 3, 4, 1, 0, "refused"))
    status = export_status(there)
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    import_status(here, status)
    found = read_live(here, LiveVariant)
    assert (found.stage, found.done, found.total, found.reason) == ("generate", 1, 2, "refused")
    assert now - 3600 - found.stage_began == pytest.approx(5, abs=2)


@pytest.mark.parametrize("status", ["", "[]", "{}", '{"stage": 1, "stage_began": 2}', '{"stage_began": "x"}', "null"])
def test_what_is_no_status_changes_nothing(tmp_path, status):
    import_status(tmp_path, status)
    assert list(tmp_path.iterdir()) == [] and export_status(tmp_path) == ""
