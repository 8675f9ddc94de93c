"""The process that holds one model's weights for all kernels of a sweep; arguments: a folder, a name, kind and model.

It makes room, loads the weights, and says on stdout, in JSON, why it cannot, or nothing: then it listens. It ends when
the sweep has ended, or when its memory is needed for another model. As many calls compute at a time as the model
welcomes; what is measured of memory is that of all. A model is never refused for lack of room: where it does not fit,
others are ended, the longest unused first, and it is loaded alone.
"""

import errno
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from filelock import FileLock

from rag_lab._kit.machine import bytes_on_disk, free_mb, memory_mb, owner_runs, peak_of
from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models import hosted, providers, shared, weights
from rag_lab.models.local.causal import device_or_default, transformers_copy
from rag_lab.models.local.gguf import gguf_metadata
from rag_lab.models.model_card import gguf_cache, model_card

_ON_TOP = 1.1  # of weights and cache: buffers, and fragments of memory
_PROCESS_MB = 400.0  # the libraries, and the context of a GPU
_LOOK_EVERY_S = 1.0
_GRACE_S = 1.0  # at the end, for a caller that is connected and has not asked
_WAITING = 64  # calls that wait to be taken


def foretold_mb(kind: Kind, model: str) -> float:
    """Return the MiB that a model will need, those of its libraries included; of one that nothing tells of, these."""
    weights_mb = 0.0
    with suppress(ModelError):  # it is told where the model is loaded
        if kind is providers.CHAT_MODELS and model.startswith("llamacpp:"):
            # a GGUF file's weights and caches: its card reads the whole file, this the head alone
            made = shared.model_of(providers.CHAT_MODELS, model)
            path: Path = made.stored_path()
            cache, (servers, _, together) = gguf_cache(gguf_metadata(path) or {}, made.kv or "f16"), made.shape
            cache_mb = cache.mb(made.context_tokens) * servers * together if cache else 0.0
            weights_mb = bytes_on_disk(path) / 2**20 + cache_mb
        else:
            name = providers.ModelSpec.parse(model, kind).name
            location = weights.find(name).location
            if location.endswith(".gguf"):
                model = model.replace(name, str(transformers_copy(Path(location))), 1)
            weights_mb = model_card(model, kind=kind).memory_mb or 0.0
    return weights_mb * _ON_TOP + _PROCESS_MB


def make_room(folder: Path, need_mb: float, device: str, end: Callable[[hosted.ProcessRecord, Path], None]) -> None:
    """End models held on this device, the longest unused first, until one that needs so much fits, or none is left."""
    budget_mb = hosted.model_budget_mb()
    while others := [one for one in hosted.model_processes(folder) if one.device == device]:
        resident_mb = sum(one.memory_mb for one in others)
        if budget_mb is not None:
            left_mb: float | None = budget_mb - resident_mb
        elif device == "cuda":  # torch is imported: it has told that there is a GPU
            left_mb = float(sys.modules["torch"].cuda.mem_get_info()[0]) / 2**20
        else:
            left_mb = free_mb()
        if left_mb is None or need_mb <= left_mb:
            return
        end(others[0], folder)


class ModelProcess:
    """One process at work. A model that shares the weights of the first may be asked, too."""

    def __init__(self, folder: Path, name: str, kind: Kind, model: str) -> None:
        self.folder, self.name = folder, name
        self._is_ending = threading.Event()
        self._callers: dict[threading.Thread, bool] = {}  # who are not answered yet: whether they have asked
        made = shared.model_of(kind, model)
        welcome = getattr(made, "concurrency", 1)
        self._computes = {kind.name: threading.Semaphore(welcome) for kind in providers.MODEL_KINDS}
        device = made.runs_on
        if device != "cpu":  # torch is asked where nobody has said; `cuda`, whichever of several
            device = device_or_default(device).partition(":")[0]
        need_mb = foretold_mb(kind, model)
        with FileLock(folder / "room.lock"):  # what loads is none of what room is made beside
            make_room(folder, need_mb, device, _end)
            _ = made.loaded  # the weights are loaded
            self._listener = Listener(hosted.socket_path(folder, name), "AF_UNIX", backlog=_WAITING)
            resident_mb = (memory_mb("VmRSS") or 0.0) if device == "cpu" else 0.0
            hosted.write_process(folder, name, model, device, max(need_mb, resident_mb))

    def serve(self) -> None:
        """Answer calls until it is told to end. The call that computes then comes to its end."""
        threading.Thread(target=self._accept, daemon=True).start()
        self._is_ending.wait()
        Path(hosted.socket_path(self.folder, self.name)).unlink(missing_ok=True)
        (self.folder / f"{self.name}.holder").unlink(missing_ok=True)
        until_s = time.monotonic() + _GRACE_S
        while any(self._callers.copy().values()) or (self._callers and time.monotonic() < until_s):
            time.sleep(_LOOK_EVERY_S / 100)

    def _accept(self) -> None:
        """Take each call to a thread of its own."""
        while True:
            try:
                connection: Any = self._listener.accept()
            except OSError:  # a caller that was killed while it knocked
                continue
            caller = threading.Thread(target=self._answer, args=(connection,), daemon=True)
            self._callers[caller] = False
            caller.start()

    def _answer(self, connection: Connection) -> None:
        me = threading.current_thread()
        with suppress(EOFError, OSError):  # a caller that was killed
            asked = hosted.receive(connection)
            if asked.get("do") == "end":
                self._callers.pop(me)
                self._is_ending.set()
                threading.Event().wait()  # with the connection open: who asked waits for its end, the process's
            self._callers[me] = True
            with connection, self._computes.get(str(asked.get("kind")), nullcontext()):  # of garbage none
                if not connection.poll():  # else its end: nobody waits for the reply any more
                    hosted.send(connection, {"ended": True} if self._is_ending.is_set() else self._reply(asked))
        self._callers.pop(me)

    def _reply(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        try:
            kind = next(kind for kind in providers.MODEL_KINDS if kind.name == asked["kind"])
            call = getattr(shared.model_of(kind, asked["model"]), asked["do"])
            value, peak_mb = peak_of(lambda: call(hosted.CALLS[asked["do"]].validate_python(asked["value"])))
        except Exception as error:  # whatever a library raises is told where it was asked
            return {"error": hosted.error_sent(error)}
        finally:
            with suppress(OSError):  # when it was last used
                os.utime(self.folder / f"{self.name}.holder")
        return {"value": value, "peak_mb": peak_mb}


def _end(holder: hosted.ProcessRecord, folder: Path) -> None:
    """Tell another process to end, and wait until its memory is free."""
    with suppress(OSError, EOFError), Client(hosted.socket_path(folder, holder.name), "AF_UNIX") as connection:
        hosted.send(connection, {"do": "end"})
        connection.recv_bytes()


def main() -> None:
    """Load the model and answer calls."""
    folder, name, kind_name, model = Path(sys.argv[1]), *sys.argv[2:]
    kind = next(kind for kind in providers.MODEL_KINDS if kind.name == kind_name)
    tempfile.tempdir = str(folder)  # which is removed, however this process ends
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print goes to the log

    def end_with_sweep() -> None:
        while owner_runs(folder):
            time.sleep(_LOOK_EVERY_S)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)

    threading.Thread(target=end_with_sweep, daemon=True).start()
    process, problem = None, {}
    try:
        process = ModelProcess(folder, name, kind, model)
    except Exception as error:
        if not isinstance(error, OSError) or error.errno != errno.EADDRINUSE:  # else a killed kernel started another
            problem = {"error": hosted.error_sent(error)}
    with suppress(BrokenPipeError), output:  # the kernel that waited was killed: others will ask
        json.dump(problem, output)
    if process is not None:
        process.serve()
    os._exit(0)


if __name__ == "__main__":
    main()
