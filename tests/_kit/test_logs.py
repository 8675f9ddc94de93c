import json
import logging
import os
import subprocess
import sys

import pytest

from rag_lab._kit.observability import FILE_VARIABLE, LEVEL_VARIABLE, begin_inherited_logs, begin_logs, working
from rag_lab.errors import ConfigError
from rag_lab.models.remote.requests import in_parallel

LOGGER = logging.getLogger("rag_lab.some.module")
CHILD = """
import logging
from rag_lab._kit.observability import begin_inherited_logs
from rag_lab._kit.observability import working
begin_inherited_logs()
with working(variant="child"):
    for n in range(200):
        logging.getLogger("rag_lab.child").info("%d %s", n, "x" * 500)
"""


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    for name in (FILE_VARIABLE, LEVEL_VARIABLE):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards, whatever sets it
    root, ours = logging.getLogger(), logging.getLogger("rag_lab")
    before = list(root.handlers), root.level, ours.level
    yield
    for handler in [one for one in root.handlers if one not in before[0]]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(before[1])
    ours.setLevel(before[2])


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_says_what_is_worked_at(tmp_path):
    begin_logs(None, tmp_path / "a" / "log.jsonl")
    with working(variant="v1", stage="generate"), working(questions=["q1"]):
        LOGGER.info("it is %s", "late")
    with working(questions=["q1", "q2"]):
        LOGGER.warning("two")
    LOGGER.debug("nobody asked")
    logging.getLogger("a_library").info("chatter")
    first, second = lines(tmp_path / "a" / "log.jsonl")
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "info", "logger": "rag_lab.some.module", "message": "it is late", "process": os.getpid(),
        "variant": "v1", "stage": "generate", "question": "q1",
    }  # fmt: skip
    assert (second["question"], second["level"]) == (["q1", "q2"], "warning")
    assert "variant" not in second


def test_secrets_and_control_characters_do_not_come_in(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "a-key-of-nobody")
    begin_logs("info", tmp_path / "log.jsonl")
    try:
        raise ValueError("a-key-of-nobody \x1b[2J")
    except ValueError:
        LOGGER.exception("sent a-key-of-nobody\n\u202eand Bearer abcdefgh12345678zz")
    text = (tmp_path / "log.jsonl").read_text()
    assert text.count("\n") == 1
    assert not any(bad in text for bad in ("a-key-of", "abcdefgh12345678zz", "\x1b", "\u202e"))
    assert "ValueError" in lines(tmp_path / "log.jsonl")[0]["exception"]


def test_processes_that_inherit_the_file_write_whole_lines_into_it(tmp_path):
    path = tmp_path / "log.jsonl"
    begin_logs("info", path)
    children = [subprocess.Popen([sys.executable, "-c", CHILD]) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    found = lines(path)
    assert len(found) == 400 and {line["variant"] for line in found} == {"child"}
    assert len({line["process"] for line in found}) == 2


def test_threads_that_ask_for_a_stage_know_its_question(tmp_path):
    begin_logs("info", tmp_path / "log.jsonl")
    with working(stage="generate", questions=["q7"]):
        in_parallel(lambda n: LOGGER.info("%d", n), [1, 2, 3], 3)
    assert {(line["stage"], line["question"]) for line in lines(tmp_path / "log.jsonl")} == {("generate", "q7")}


def test_without_a_file_the_level_is_that_of_the_terminal(tmp_path, capsys):
    begin_logs("info", None)
    LOGGER.info("hello")
    assert capsys.readouterr().err == "INFO rag_lab.some.module: hello\n"


def test_with_a_file_the_terminal_shows_warnings_as_before_and_each_once(tmp_path, capsys):
    begin_logs(None, tmp_path / "log.jsonl")
    begin_inherited_logs()
    LOGGER.info("quiet")
    LOGGER.warning("loud")
    assert capsys.readouterr().err == "loud\n"
    assert len(lines(tmp_path / "log.jsonl")) == 2


def test_what_cannot_be_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match="no log level 'loud'; give one of debug, info, warning, error"):
        begin_logs("loud", None)
    os.environ[LEVEL_VARIABLE] = ""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="Cannot log to .*; give another file with --log-file"):
        begin_logs(None, tmp_path / "file" / "log.jsonl")
