"""Models as kernels of a sweep see them: what needs no weights is done here, a process that holds them is asked.

It is started where there is none, and once again where it died. A call is a connection of its own, so threads and
forked kernels share nothing, and the end of either side is seen at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from multiprocessing.connection import Client
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from filelock import FileLock

from rag_lab._kit.digest import digest
from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models.host.address import HOST_VARIABLE, await_end, host_folder, is_open, log_path, socket_path
from rag_lab.models.host.messages import (
    Sent,
    error_received,
    receive,
    replies_received,
    requests_sent,
    send,
    vectors_received,
)
from rag_lab.models.local.local_model import HoldsWeights
from rag_lab.models.protocols import ChatReply, ChatRequest, Concurrent, Vectors
from rag_lab.models.providers import CHAT_MODELS, EMBEDDERS
from rag_lab.models.truncation import Pair, TextKind
from rag_lab.redaction import redact_value

_MOST_DEATHS = 2
_STARTED: list[subprocess.Popen[bytes]] = []  # held until they end, so that their numbers are given back
_PEAKS_MB: dict[str, int] = {}  # by the process that held a model: the most while it computed for this kernel


def ask(folder: Path, name: str, kind: str, model: str, asked: Sent) -> Sent:
    """Return the reply of the process of this name, which holds `model`.

    Raises:
        RagLabError: what the model raised there.
        ModelError: if the process died, was started again, and died again; or if the model failed there otherwise.
    """
    message = Sent({**asked.head, "kind": kind, "model": model}, asked.parts)
    deaths, is_new = 0, False
    while deaths < _MOST_DEATHS:
        try:
            with Client(socket_path(folder, name), "AF_UNIX") as connection:
                send(connection, message)
                reply = receive(connection)
        except (FileNotFoundError, ConnectionRefusedError):
            deaths += is_new  # it listened, and died before it was asked
            _start(folder, name, kind, model)
            is_new = True
        except (EOFError, OSError):
            deaths, is_new = deaths + 1, False
            await_end(folder, name)
        else:
            is_new = False
            if "error" in reply.head:
                raise error_received(reply.head["error"], redact_value(model))
            if "ended" not in reply.head:  # else its memory was needed, and another process follows
                _PEAKS_MB[name] = max(_PEAKS_MB.get(name, 0), reply.head["peak_mb"] or 0)
                return reply
    raise _died(model)


def model_processes_mb() -> int:
    """Return the memory that processes which hold models took at their peaks for this kernel's calls, in MiB."""
    return sum(_PEAKS_MB.values())


def _start(folder: Path, name: str, kind: str, model: str) -> None:
    """Start the process that holds a model and wait until it listens; whoever comes second finds it there."""
    if not is_open(folder):
        raise ModelError(f"The sweep has ended, and with it the process that held {redact_value(model)}.")
    with FileLock(folder / "starting.lock"):
        if _listens(folder, name):
            return
        with log_path(folder, name).open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - a command of our own
                [sys.executable, "-P", "-m", "rag_lab.models.model_process", str(folder), name, kind, model],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={key: value for key, value in os.environ.items() if key != HOST_VARIABLE},
                start_new_session=True,  # neither Ctrl-C nor the end of this kernel reaches it
            )
        _STARTED[:] = [one for one in _STARTED if one.poll() is None] + [process]
        said = _first_words(process)
    if said is None:
        raise _died(model)
    if "error" in said:
        raise error_received(said["error"], redact_value(model))


def _listens(folder: Path, name: str) -> bool:
    try:
        Client(socket_path(folder, name), "AF_UNIX").close()
    except OSError:
        Path(socket_path(folder, name)).unlink(missing_ok=True)  # of one that died
        return False
    return True


def _first_words(process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """Return what the process says once it has loaded; None where it died before."""
    with cast(IO[bytes], process.stdout) as told:
        said = told.read()
    return json.loads(said) if said else None


def _died(model: str) -> ModelError:
    return ModelError(
        f"The process that holds {redact_value(model)} died, and once more when it was started again; the usual cause "
        "is that memory ran out: choose a smaller model, or one that is held in fewer bits."
    )


_TEXTS_COUNTED = 65_536
_NAME_LETTERS = 16


def hosted(kind: Kind, model: str, made: Any) -> Any:
    """Return the model `made` of this kind and name, asked in the process that holds its weights for all kernels.

    It is `made` itself where its weights are elsewhere, or where the environment names no place to meet.
    """
    folder = host_folder()
    if folder is None or not isinstance(made, HoldsWeights):
        return made
    asked = _Asked(folder, kind.name, model, made)
    if kind is CHAT_MODELS:
        return HostedChat(made, asked)
    return HostedEmbedder(made, asked) if kind is EMBEDDERS else HostedScorer(made, asked)


class _Asked:
    """One model in the process that holds it."""

    def __init__(self, folder: Path, kind: str, model: str, local: HoldsWeights) -> None:
        self._folder, self._kind, self._model, self._local = folder, kind, model, local

    def __call__(self, do: str, given: Sent) -> Sent:
        name = digest(self._local.weights_held)[:_NAME_LETTERS]
        return ask(self._folder, name, self._kind, self._model, Sent({**given.head, "do": do}, given.parts))


class _Hosted:
    """A local model that is asked in its process; `local` never loads its weights."""

    def __init__(self, local: Any, asked: _Asked) -> None:
        self.local = local
        self._asked = asked

    def __repr__(self) -> str:
        return repr(self.local)

    def identity(self) -> Mapping[str, Any]:
        """Return the local model's identity: where it computes changes no result."""
        found: Mapping[str, Any] = self.local.identity()
        return found

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that it reads of a text or pair; None where that is not known."""
        found: int | None = self.local.most_tokens
        return found


class HostedChat(_Hosted):
    """A local chat model."""

    def __init__(self, local: Any, asked: _Asked) -> None:
        super().__init__(local, asked)
        self.constrains_json: bool = local.constrains_json
        if isinstance(local, Concurrent):
            self.concurrency = local.concurrency
        self._counted = lru_cache(_TEXTS_COUNTED)(self._count)

    @property
    def context_tokens(self) -> int:
        """How much the model can read and write together."""
        return int(self.local.context_tokens)

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order; see `ChatModel`."""
        return replies_received(self._asked("generate", requests_sent(requests))) if requests else []

    def count_tokens(self, text: str) -> int:
        """Return the exact number of tokens; only where the tokenizer is unknown the process counts."""
        return int(self.local.count_tokens(text)) if self.local.counts_alone else self._counted(text)

    def _count(self, text: str) -> int:
        return int(self._asked("count_tokens", Sent({"text": text})).head["tokens"])


class HostedEmbedder(_Hosted):
    """A local embedding model."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of passages, in order; see `Embedder`."""
        return self._embed("embed_documents", texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of questions, in order; see `Embedder`."""
        return self._embed("embed_queries", texts)

    def text_tokens(self, texts: Sequence[str], kind: TextKind) -> list[int]:
        """Return how many tokens each text has for the model."""
        found: list[int] = self.local.text_tokens(texts, kind)
        return found

    def _embed(self, do: str, texts: Sequence[str]) -> Vectors:
        return np.ascontiguousarray(vectors_received(self._asked(do, Sent({"texts": list(texts)}))))


class HostedScorer(_Hosted):
    """A local scorer of pairs."""

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one score for each (question, passage), in order; see `PairScorer`."""
        asked = Sent({"pairs": [list(pair) for pair in pairs]})
        return list(self._asked("score", asked).head["scores"]) if pairs else []

    def pair_tokens(self, pairs: Sequence[Pair]) -> list[int]:
        """Return how many tokens of each pair count towards its limit."""
        found: list[int] = self.local.pair_tokens(pairs)
        return found
