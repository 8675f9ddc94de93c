"""What passes between a kernel and the process that holds a model: JSON, and arrays and images as bytes. No pickles."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from rag_lab import errors
from rag_lab.models.protocols import ChatReply, ChatRequest, Message, Vectors

_REPLIES = TypeAdapter(list[ChatReply])
_MOST_BYTES = 2**30  # of one part of a message
_ERRORS = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.RagLabError)
}


@dataclass(frozen=True, slots=True)
class Sent:
    """One message: a JSON object, and what is no JSON beside it."""

    head: Mapping[str, Any]
    parts: tuple[bytes, ...] = ()


def send(connection: Connection, message: Sent) -> None:
    """Send a message."""
    connection.send_bytes(json.dumps({**message.head, "n_parts": len(message.parts)}).encode("ascii"))
    for part in message.parts:
        connection.send_bytes(part)


def receive(connection: Connection) -> Sent:
    """Wait for a message."""
    try:
        head = json.loads(connection.recv_bytes(_MOST_BYTES))
        return Sent(head, tuple(connection.recv_bytes(_MOST_BYTES) for _ in range(head.pop("n_parts"))))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise OSError("what was received is no message") from None


def requests_sent(requests: Sequence[ChatRequest]) -> Sent:
    """Write requests of a chat model; their images are the parts, in order."""
    images = tuple(image for request in requests for message in request.messages for image in message.images)
    written = [
        {
            **{field.name: getattr(request, field.name) for field in fields(request)},
            "json_schema": None if request.json_schema is None else dict(request.json_schema),
            "messages": [(one.role, one.content, len(one.images)) for one in request.messages],
        }
        for request in requests
    ]
    return Sent({"requests": written}, images)


def requests_received(message: Sent) -> list[ChatRequest]:
    """Read what `requests_sent` wrote."""
    images = iter(message.parts)
    requests = []
    for written in message.head["requests"]:
        messages = tuple(
            Message(role, content, tuple(next(images) for _ in range(n_images)))
            for role, content, n_images in written["messages"]
        )
        requests.append(ChatRequest(**{**written, "messages": messages}))
    return requests


def replies_received(message: Sent) -> list[ChatReply]:
    """Read replies of a chat model, each as `asdict` writes it."""
    return _REPLIES.validate_python(message.head["replies"])


def vectors_sent(vectors: Vectors) -> Sent:
    """Write (n_texts, dim) vectors as float32, row by row."""
    return Sent({"shape": vectors.shape}, (np.ascontiguousarray(vectors, dtype="<f4").tobytes(),))


def vectors_received(message: Sent) -> Vectors:
    """Read what `vectors_sent` wrote."""
    return np.frombuffer(message.parts[0], "<f4").reshape(message.head["shape"]).astype(np.float32)


def error_sent(error: BaseException) -> dict[str, str]:
    """Write an error as its kind and its sentence."""
    return {"kind": type(error).__name__, "sentence": str(error)}


def error_received(written: Mapping[str, str], model: str) -> errors.RagLabError:
    """Return the same error with the same sentence; what is none of the workbench's own is told of the model."""
    kind = _ERRORS.get(written["kind"])
    if kind is None:
        said = ": ".join(filter(None, (written["kind"], written["sentence"])))
        return errors.ModelError(f"The model {model} failed ({said}); see whether it fits in memory.")
    return kind.__new__(kind, written["sentence"])  # the sentence is cleaned already, and kinds take other arguments
