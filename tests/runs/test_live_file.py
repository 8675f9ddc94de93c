import json

import pytest

from rag_lab._kit.process import Process
from rag_lab.runs.live_file import (
    LIVE_FILE,
    LiveEnd,
    LiveSweep,
    LiveVariant,
    read_live_sweep,
    read_live_variant,
    remove_live,
    write_live,
)


def test_what_is_written_is_read_until_it_is_removed(tmp_path):
    live = LiveVariant("generate", 2.0, 3, 8, 1, 40, 2, 1, 0, "generate: it broke")
    write_live(tmp_path, live)
    assert read_live_variant(tmp_path) == live
    sweep = LiveSweep(Process.this(), 1.0, 2.0, 2, "variants", {"a": 1.5}, {"b": LiveEnd("failed", "It broke.", 3.0)})
    write_live(tmp_path, sweep)
    assert read_live_sweep(tmp_path) == sweep
    assert read_live_sweep(tmp_path).process.runs()
    remove_live(tmp_path)
    assert read_live_sweep(tmp_path) is None
    remove_live(tmp_path)


def test_no_secret_and_no_control_character_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "k3y-of-nobody-else")
    write_live(tmp_path, LiveVariant("generate", 2.0, reason="\x1b[2J k3y-of-nobody-else"))
    text = (tmp_path / LIVE_FILE).read_text()
    assert "\x1b" not in text and "k3y-of" not in text
    assert json.loads(text)["reason"] == "\x1b[2J [hidden]"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stage": 3}'])
def test_what_cannot_be_read_is_nothing(tmp_path, text):
    (tmp_path / LIVE_FILE).write_text(text)
    assert read_live_variant(tmp_path) is None
    assert read_live_sweep(tmp_path) is None
