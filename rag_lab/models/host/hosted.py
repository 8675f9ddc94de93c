"""Models as kernels of a sweep see them: what needs no weights is done here, a process that holds them is asked.

It is started where there is none, and once again where it died. A call is a connection of its own, so threads and
forked kernels share nothing, and the end of either side is seen at once.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from multiprocessing.connection import Client
from pathlib import Path
from typing import IO, Any, cast

from filelock import FileLock

from rag_lab._kit.digest import digest
from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models import protocols, providers, truncation
from rag_lab.models.host import address, messages
from rag_lab.models.local.local_model import LocalModel
from rag_lab.redaction import redact_value

_MOST_DEATHS = 2
_STARTED: list[subprocess.Popen[bytes]] = []  # held until they end, so that their numbers are given back
_PEAKS_MB: dict[str, int] = {}  # by the process that held a model: the most while it computed for this kernel
_TEXTS_COUNTED = 65_536
_NAME_LETTERS = 16


def model_processes_mb() -> int:
    """Return the memory that processes which hold models took at their peaks for this kernel's calls, in MiB."""
    return sum(_PEAKS_MB.values())


def _start(folder: Path, name: str, kind: str, model: str) -> None:
    """Start the process that holds a model and wait until it listens; whoever comes second finds it there."""
    if not address.is_open(folder):
        raise ModelError(f"The sweep has ended, and with it the process that held {redact_value(model)}.")
    with FileLock(folder / "starting.lock"):
        try:
            Client(address.socket_path(folder, name), "AF_UNIX").close()
            return
        except OSError:
            Path(address.socket_path(folder, name)).unlink(missing_ok=True)  # of one that died
        with (folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - a command of our own
                [sys.executable, "-P", "-m", "rag_lab.models.model_process", str(folder), name, kind, model],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={key: value for key, value in os.environ.items() if key != address.HOST_VARIABLE},
                start_new_session=True,  # neither Ctrl-C nor the end of this kernel reaches it
            )
        _STARTED[:] = [one for one in _STARTED if one.poll() is None] + [process]
        with cast(IO[bytes], process.stdout) as output:
            printed = output.read()  # once it has loaded; nothing where it died before
    if not printed:
        raise _died(model)
    if error := json.loads(printed).get("error"):
        raise messages.error_received(error, redact_value(model))


def _died(model: str) -> ModelError:
    return ModelError(
        f"The process that holds {redact_value(model)} died, and once more when it was started again; the usual cause "
        "is that memory ran out: choose a smaller model, or one that is held in fewer bits."
    )


def hosted(kind: Kind, model: str, made: Any) -> Any:
    """Return the model `made` of this kind and name, asked in the process that holds its weights for all kernels.

    It is `made` itself where its weights are on a server, or where the environment names no folder.
    """
    folder = address.host_folder()
    if folder is None or not isinstance(made, LocalModel):
        return made
    hosted_as = {providers.CHAT_MODELS.name: HostedChat, providers.EMBEDDERS.name: HostedEmbedder}.get(
        kind.name, HostedScorer
    )
    return hosted_as(made, folder, kind.name, model)


class _Hosted:
    """A local model that is asked in its process; `local` never loads its weights."""

    def __init__(self, local: Any, folder: Path, kind: str, model: str) -> None:
        self.local = local
        self._process = folder, kind, model

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

    def _asked(self, do: str, head: Mapping[str, Any], parts: tuple[bytes, ...] = ()) -> messages.Sent:
        """Return the reply of the process that holds the model; what the model raises there is raised here."""
        folder, kind, model = self._process
        name = digest(self.local.weights_held)[:_NAME_LETTERS]
        message = messages.Sent({**head, "do": do, "kind": kind, "model": model}, parts)
        deaths, is_new = 0, False
        while deaths < _MOST_DEATHS:
            try:
                with Client(address.socket_path(folder, name), "AF_UNIX") as connection:
                    messages.send(connection, message)
                    reply = messages.receive(connection)
            except (FileNotFoundError, ConnectionRefusedError):
                deaths += is_new  # it listened, and died before it was asked
                _start(folder, name, kind, model)
                is_new = True
            except (EOFError, OSError):
                deaths, is_new = deaths + 1, False
                address.await_end(folder, name)
            else:
                is_new = False
                if "error" in reply.head:
                    raise messages.error_received(reply.head["error"], redact_value(model))
                if "ended" not in reply.head:  # else its memory was needed, and another process follows
                    _PEAKS_MB[name] = max(_PEAKS_MB.get(name, 0), reply.head["peak_mb"] or 0)
                    return reply
        raise _died(model)


class HostedChat(_Hosted):
    """A local chat model."""

    def __init__(self, local: Any, folder: Path, kind: str, model: str) -> None:
        super().__init__(local, folder, kind, model)
        self.constrains_json: bool = local.constrains_json
        if isinstance(local, protocols.Concurrent):
            self.concurrency = local.concurrency
        self._counted = lru_cache(_TEXTS_COUNTED)(
            lambda text: int(self._asked("count_tokens", {"text": text}).head["tokens"])
        )

    @property
    def context_tokens(self) -> int:
        """How much the model can read and write together."""
        return int(self.local.context_tokens)

    def count_tokens(self, text: str) -> int:
        """Return the exact number of tokens; only where the tokenizer is unknown the process counts."""
        return int(self.local.count_tokens(text)) if self.local.counts_alone else self._counted(text)

    def generate(self, requests: Sequence[protocols.ChatRequest]) -> list[protocols.ChatReply]:
        """Return one reply for each request, in order; see `ChatModel`."""
        if not requests:
            return []
        sent = messages.requests_sent(requests)
        return messages.replies_received(self._asked("generate", sent.head, sent.parts))


class HostedEmbedder(_Hosted):
    """A local embedding model."""

    def embed_documents(self, texts: Sequence[str]) -> protocols.Vectors:
        """Return (n_texts, dim) unit vectors of passages, in order; see `Embedder`."""
        return messages.vectors_received(self._asked("embed_documents", {"texts": list(texts)}))

    def embed_queries(self, texts: Sequence[str]) -> protocols.Vectors:
        """Return (n_texts, dim) unit vectors of questions, in order; see `Embedder`."""
        return messages.vectors_received(self._asked("embed_queries", {"texts": list(texts)}))

    def text_tokens(self, texts: Sequence[str], kind: truncation.TextKind) -> list[int]:
        """Return how many tokens each text has for the model."""
        found: list[int] = self.local.text_tokens(texts, kind)
        return found


class HostedScorer(_Hosted):
    """A local scorer of pairs."""

    def score(self, pairs: Sequence[truncation.Pair]) -> list[float]:
        """Return one score for each (question, passage), in order; see `PairScorer`."""
        if not pairs:
            return []
        return list(self._asked("score", {"pairs": [list(pair) for pair in pairs]}).head["scores"])

    def pair_tokens(self, pairs: Sequence[truncation.Pair]) -> list[int]:
        """Return how many tokens of each pair count towards its limit."""
        found: list[int] = self.local.pair_tokens(pairs)
        return found
