import json

import pytest

from rag_lab._kit.machine import Process
from rag_lab.runs.run_folder import write_json
from rag_lab.runs.variant_files import LIVE_FILE, LiveEnd, LiveSweep, LiveVariant, read_live


def test_what_is_written_is_read_until_it_is_removed(tmp_path):
    live = LiveVariant("generate", 2.0, 3, 8, 1, 40, 2, 1, 0, "generate: it broke")
    write_json(tmp_path / LIVE_FILE, live)
    assert read_live(tmp_path, LiveVariant) == live
    sweep = LiveSweep(Process.this(), 1.0, 2.0, 2, "variants", {"a": 1.5}, {"b": LiveEnd("failed", "It broke.", 3.0)})
    write_json(tmp_path / LIVE_FILE, sweep)
    assert read_live(tmp_path, LiveSweep) == sweep
    assert read_live(tmp_path, LiveSweep).process.runs()
    (tmp_path / LIVE_FILE).unlink()
    assert read_live(tmp_path, LiveSweep) is None


def test_no_secret_and_no_control_character_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "k3y-of-nobody-else")
    write_json(tmp_path / LIVE_FILE, LiveVariant("generate", 2.0, reason="\x1b[2J k3y-of-nobody-else"))
    text = (tmp_path / LIVE_FILE).read_text()
    assert "\x1b" not in text and "k3y-of" not in text
    assert json.loads(text)["reason"] == "\x1b[2J [hidden]"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stage": 3}'])
def test_what_cannot_be_read_is_nothing(tmp_path, text):
    (tmp_path / LIVE_FILE).write_text(text)
    assert read_live(tmp_path, LiveVariant) is None
    assert read_live(tmp_path, LiveSweep) is None
