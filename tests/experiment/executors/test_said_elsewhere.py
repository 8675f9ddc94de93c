"""What variants elsewhere say of themselves on its way, with another clock and from a stranger."""

import time

import pytest

from rag_lab.experiment.executors.said_elsewhere import said_in, say_in
from rag_lab.runs.live_file import LiveVariant, read_live_variant, write_live


def test_what_is_said_arrives_by_the_clock_of_whoever_reads_it(tmp_path, monkeypatch):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir(), here.mkdir()
    now = time.time()
    write_live(there, LiveVariant("generate", now - 5, 1, 2, 0, 3, 4, 1, 0, "refused"))
    said = said_in(there)
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    say_in(here, said)
    found = read_live_variant(here)
    assert (found.stage, found.done, found.total, found.reason) == ("generate", 1, 2, "refused")
    assert now - 3600 - found.stage_began == pytest.approx(5, abs=2)


@pytest.mark.parametrize("said", ["", "[]", "{}", '{"stage": 1, "stage_began": 2}', '{"stage_began": "x"}', "null"])
def test_what_says_nothing_of_the_kind_changes_nothing(tmp_path, said):
    say_in(tmp_path, said)
    assert list(tmp_path.iterdir()) == [] and said_in(tmp_path) == ""
