"""Jobs in the store: each is claimed once, what was handed in survives the sweep, what is over is left alone."""

import pytest

from rag_lab.experiment.executors.announced import Announced
from rag_lab.experiment.executors.job import Origin
from rag_lab.experiment.executors.task import Task


def task(name, identity="i"):
    return Task(name, Origin("run-1", identity, "small", "", ""), {}, {}, {}, {}, "", {}, False, 1.0)


@pytest.fixture
def announced():
    return Announced.of("run-1")


def test_a_job_is_claimed_handed_in_and_collected(announced):
    assert announced.keys() is None
    keys = announced.announce([task("a"), task("b")])
    assert announced.task(keys["a"]) == task("a")
    assert announced.claim(keys.values()) == keys["a"]
    assert len(announced.holders(keys.values())) == 1
    announced.hand_in(keys["a"], '"parcel"')
    assert announced.holders(keys.values()) == []
    assert announced.claim([keys["a"]]) == ""
    assert announced.collect(keys) == ("a", '"parcel"')
    assert announced.collect({"b": keys["b"]}) is None


def test_what_was_handed_in_while_nobody_collected_is_the_next_starts(announced):
    before = announced.announce([task("a"), task("b"), task("c")])
    announced.hand_in(before["a"], '"parcel"')
    announced.hand_in(before["b"], '"of another configuration"')
    announced.hand_in(before["c"], '"failed"')
    announced.taken(before["c"])
    keys = announced.announce([task("a"), task("b", "other"), task("c")])
    assert announced.collect(keys) == ("a", '"parcel"')
    assert announced.collect({"b": keys["b"], "c": keys["c"]}) is None


def test_a_job_that_was_withdrawn_is_over_for_whoever_is_at_it(announced):
    keys = announced.announce([task("a")])
    assert not announced.is_over(announced.claim(keys.values()))
    announced.withdraw(keys.values())
    assert announced.is_over(keys["a"])
    assert announced.claim(keys.values()) == ""
