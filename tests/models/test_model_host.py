import json
import os
import stat
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

from rag_lab._kit.machine import owner_runs
from rag_lab.errors import ConfigError, DamagedFile, ModelError, RagLabError
from rag_lab.models.hosted import (
    CALLS,
    HOST_VARIABLE,
    error_received,
    error_sent,
    host_folder,
    model_host,
    model_processes,
    receive,
    send,
    write_process,
)
from rag_lab.models.hosted import (
    REPLIES as AS_REPLIES,
)
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.records import MachineUse

ENDED = """
import os
from rag_lab.models.hosted import model_host
with model_host() as environment:
    print(next(iter(environment.values())), flush=True)
    os._exit(1)  # as one that is killed
"""


def test_the_place_is_private_starts_nothing_and_goes_with_the_sweep(monkeypatch):
    with model_host() as environment:
        folder = Path(environment[HOST_VARIABLE])
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert host_folder() is None  # the sweep's own process keeps its models
        monkeypatch.setenv(HOST_VARIABLE, str(folder))
        assert host_folder() == folder
        assert model_processes(folder) == []
    assert not folder.exists()
    assert host_folder() is None


def test_a_user_may_switch_it_off(monkeypatch):
    monkeypatch.setenv(HOST_VARIABLE, "off")
    assert host_folder() is None
    with model_host() as environment:
        assert environment == {}


def test_the_place_of_a_sweep_that_was_killed_is_closed():
    done = subprocess.run([sys.executable, "-c", ENDED], capture_output=True, text=True)
    folder = Path(done.stdout.strip())
    assert folder.is_dir() and not owner_runs(folder)


def test_the_place_of_another_machine_is_closed(tmp_path):
    (tmp_path / "owner.json").write_text(json.dumps(["elsewhere", "", os.getpid(), "1"]))
    assert not owner_runs(tmp_path)


def test_the_longest_unused_comes_first(tmp_path):
    for name, used_s in (("a", 30), ("b", 10), ("c", 20)):
        write_process(tmp_path, name, f"model {name}", "cpu", 100.0)
        os.utime(tmp_path / f"{name}.holder", (used_s, used_s))
    assert [(one.name, one.model) for one in model_processes(tmp_path)] == [
        ("b", "model b"),
        ("c", "model c"),
        ("a", "model a"),
    ]


@pytest.mark.parametrize("given", ["much", "0", "-3", "nan", "inf"])
def test_a_budget_that_is_no_number_is_said_before_the_sweep(given, monkeypatch):
    monkeypatch.setenv("RAG_LAB_MODEL_MEMORY_GB", given)
    with pytest.raises(ConfigError, match="RAG_LAB_MODEL_MEMORY_GB is .* give a positive number"), model_host():
        pass


REQUESTS = [
    ChatRequest((Message("user", "a\ud800 ü 🙂", (b"\x89PNG one", b"two")), Message("assistant", "b"))),
    ChatRequest(
        (Message("user", "c", (b"three",)),),
        max_tokens=7,
        temperature=0.1,
        seed=3,
        json_schema={"type": "object", "properties": {"z": {}, "a": {}}},
        thinking_tokens=5,
        top_p=0.9,
        top_k=4,
        min_p=0.05,
    ),
]
REPLIES = [
    ChatReply("text", "thought", 3, 4, 0.1 + 0.2, 1e-9, machine=MachineUse(0.1, None, 2.5)),
    ChatReply("\ud800", error="too long", transient=True, asked=False, truncated=True),
]


def sent(value):
    """What arrives of a value on the other side."""
    here, there = Pipe()
    with here, there:
        send(here, {"value": value})
        return receive(there)["value"]


def test_what_is_sent_arrives():
    requests = CALLS["generate"].validate_python(sent(REQUESTS))
    assert requests == REQUESTS
    assert list(requests[1].json_schema["properties"]) == ["z", "a"]
    assert AS_REPLIES.validate_python(sent(REPLIES)) == REPLIES
    assert CALLS["score"].validate_python(sent([("a\ud800", "b")])) == [("a\ud800", "b")]


@pytest.mark.parametrize("shape", [(3, 4), (0, 384), (0, 0)])
def test_vectors_arrive_to_the_bit(shape):
    vectors = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = sent(vectors)
    assert found.shape == shape and found.dtype == np.float32
    assert found.tobytes() == vectors.tobytes()
    found += 1  # it is the reader's own


@pytest.mark.parametrize("error", [ModelError("No \x1b weights."), ConfigError("A."), DamagedFile(Path("x"), "cut")])
def test_errors_keep_their_kind_and_sentence(error):
    found = error_received(json.loads(json.dumps(error_sent(error))), "a:b")
    assert type(found) is type(error) and str(found) == str(error)


def test_what_is_no_error_of_ours_is_told_of_the_model():
    found = error_received(error_sent(RuntimeError("CUDA out of memory")), "transformers:large")
    assert isinstance(found, RagLabError)
    assert "transformers:large failed (RuntimeError: CUDA out of memory)" in str(found)


@pytest.mark.parametrize("garbage", [b"[]", b"GET /", b"\x80\x04", b'{"\\u0000bytes": 1}', b"[" * 65_536])
def test_garbage_is_no_message(garbage):
    here, there = Pipe()
    with here, there:
        here.send_bytes(garbage)
        with pytest.raises(OSError, match="no message"):
            receive(there)


def test_a_message_is_no_pickle():
    here, there = Pipe()
    with here, there:
        send(here, {"do": "end"})
        assert json.loads(there.recv_bytes()) == {"do": "end"}
