import json
from dataclasses import asdict
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

from rag_lab.errors import ConfigError, DamagedFile, ModelError, RagLabError
from rag_lab.models.hosted import (
    REPLIES as AS_REPLIES,
)
from rag_lab.models.hosted import (
    Sent,
    error_received,
    error_sent,
    receive,
    requests_received,
    requests_sent,
    send,
    vectors_received,
    vectors_sent,
)
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.records import MachineUse

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


def sent(message):
    """What arrives of a message on the other side."""
    here, there = Pipe()
    with here, there:
        send(here, message)
        return receive(there)


def test_what_is_sent_arrives():
    assert requests_received(sent(requests_sent(REQUESTS))) == REQUESTS
    assert list(requests_received(sent(requests_sent(REQUESTS)))[1].json_schema["properties"]) == ["z", "a"]
    assert (
        AS_REPLIES.validate_python(sent(Sent({"replies": [asdict(reply) for reply in REPLIES]})).head["replies"])
        == REPLIES
    )


@pytest.mark.parametrize("shape", [(3, 4), (0, 384), (0, 0)])
def test_vectors_arrive_to_the_bit(shape):
    vectors = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = vectors_received(sent(vectors_sent(vectors)))
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


def test_a_message_is_no_pickle():
    here, there = Pipe()
    with here, there:
        send(here, Sent({"do": "end"}))
        assert json.loads(there.recv_bytes()) == {"do": "end", "n_parts": 0}
