"""The fork server of a sweep: a process with all imports done, which forks the processes of each job.

`python -m rag_lab.experiment.kernels.fork_server FD` takes jobs from the socket FD: for each the three streams that its
process will have (see `notebook_process`), and says its number, and later how it ended. What it is told ahead of jobs
it does once for all of them. It ends when the socket does, so with the sweep. It starts no thread and no event loop,
and touches no GPU, since a fork keeps neither.

What a notebook has imported of the heavy libraries and of this project, its successors find imported.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NoReturn

from rag_lab.experiment.kernels.forked_kernel import ForkedKernel, end_process, seed_anew
from rag_lab.experiment.kernels.forked_process import AHEAD

# What is worth importing for the successors. None of them starts a thread, and none reads at its import what only a
# kernel sets (matplotlib does).
HEAVY = (
    "chromadb",
    "gguf",
    "langchain_core",
    "langchain_text_splitters",
    "ragas",
    "sentence_transformers",
    "sklearn",
    "tokenizers",
    "torch",
    "transformers",
)
_OURS = "rag_lab."
_NEEDED = (  # by every variant
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.debugger",
    "tornado.platform.asyncio",
    "rag_lab.experiment.kernels.notebook_process",
    "rag_lab.notebook.variant",
    "rag_lab.notebook.display",
    "rag_lab.notebook.views.trace_view",
    "rag_lab.notebook.views.scores_view",
    "rag_lab.evaluation.evaluate",
    "rag_lab.runs.score_file",
    "bm25s",
    "pandas.io.formats.html",
    "pyarrow.parquet",
    "pyarrow.pandas_compat",
)
_TEMPLATES = ("macros.html", "view.html", "trace.html")  # of what every variant shows
_LOOK_S = 0.01  # for processes that have ended
_STREAMS = 3
_PIECE = 4096  # bytes of a pipe that no other's come in between


def main() -> None:
    """Fork a process for each job that comes, until none can come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare()
    wire = socket.socket(fileno=int(sys.argv[1]))
    heard, tell = os.pipe()
    rest = b""
    children: set[int] = set()
    while True:
        ready, _, _ = select.select([wire.fileno(), heard], [], [], _LOOK_S if children else None)
        if wire.fileno() in ready:
            said, streams, _, _ = socket.recv_fds(wire, 1, _STREAMS)
            if not said:
                return
            if said == AHEAD:
                line = b""
                while not line.endswith(b"\n") and (more := wire.recv(1)):
                    line += more
                _do_ahead(**json.loads(line or b"{}"))
                continue
            at_end = partial(_tell_imported, tell, frozenset(sys.modules))
            if (pid := os.fork()) == 0:
                _serve(streams, at_end, (wire, heard))
            for stream in streams:
                os.close(stream)
            children.add(pid)
            wire.sendall(json.dumps({"began": pid}).encode() + b"\n")
        for pid in list(children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                children.remove(pid)
                wire.sendall(json.dumps({"ended": pid, "status": os.waitstatus_to_exitcode(status)}).encode() + b"\n")
        if heard in ready:
            *lines, rest = (rest + os.read(heard, _PIECE)).split(b"\n")
            _import([line.decode() for line in lines])


def prepare() -> None:
    """Import what executes a notebook, and what every variant needs."""
    gc.disable()  # imports make very many objects, nearly all of which stay
    for name in _NEEDED:
        importlib.import_module(name)
    from rag_lab.report.page.templates import compile_templates

    compile_templates(_TEMPLATES)
    gc.freeze()
    gc.enable()


def _do_ahead(modules: Sequence[str] = (), questions: int = 0) -> None:
    """Import modules, and draw for intervals over so many questions, for all kernels that come."""
    _import(modules)
    if questions:
        from rag_lab.statistics.bootstrap import draw_ahead

        draw_ahead(questions)


def _import(names: Sequence[str]) -> None:
    for name in dict.fromkeys(names):
        if name not in sys.modules:
            with suppress(Exception):  # what it was imported for may be gone: it is the kernel's then
                importlib.import_module(name)
    gc.freeze()


def _tell_imported(tell: int, before: frozenset[str]) -> None:
    """Say which of the heavy libraries and of our own modules this kernel has imported, a line each."""
    new = [name for name in sys.modules if name not in before]
    found = [name for name in new if name in HEAVY or (name.startswith(_OURS) and "matplotlib" not in new)]
    for name in found:
        os.write(tell, f"{name}\n".encode())


def _serve(streams: list[int], at_end: partial[None], ours: tuple[socket.socket, int]) -> NoReturn:
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        wire, heard = ours
        wire.close()
        os.close(heard)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        job = json.loads(sys.stdin.readline())
        os.environ.clear()
        os.environ.update(job.pop("environment"))
        seed_anew()
        kernel = ForkedKernel(at_end)
        from rag_lab.experiment.kernels.notebook_process import serve

        serve(job, kernel)
        status = 0
    except BaseException:
        traceback.print_exc()
    end_process(status)


if __name__ == "__main__":
    main()
