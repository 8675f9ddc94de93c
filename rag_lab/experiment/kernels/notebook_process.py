"""Runs one notebook by papermill in a process of its own, and dies with the process that started it.

It reads a job, one line of JSON, from stdin and answers with one line of JSON on stdout. The parent keeps stdin open:
its end means that the parent is gone, even if it was killed, so that no orphan goes on writing into the run folder.
The kernel watches this process in the same way. The notebook is written after every cell, without known secrets and
with visible control characters in its outputs.
"""

import json
import os
import re
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill import execute_notebook
from papermill.exceptions import PapermillExecutionError
from papermill.iorw import LocalHandler, papermill_io

from rag_lab._kit.machine import room_on_disk, scratch_folder
from rag_lab.errors import RagLabError
from rag_lab.experiment.kernels.engine import ENGINE, ForkedKernel, SilentKernelError
from rag_lab.redaction import CONTROL, hide_known_json, redact_sentence, visible, visible_json

_ESCAPED = re.compile(r"\\[bfru]")  # as JSON writes control characters


def run_notebook(
    notebook: str,
    output: str,
    parameters: dict[str, Any],
    cwd: str,
    cell_minutes: float,
    kernel: ForkedKernel | None = None,
) -> str:
    """Execute `notebook` into `output`, which is kept whatever happens; return why it failed, or nothing.

    `kernel` waits for its notebook; None starts a new process.
    """
    papermill_io.register(output, CleanNotebooks())
    try:
        with room_on_disk(Path(output)), scratch_folder("kernel") as folder:
            execute_notebook(
                notebook,
                output,
                parameters=parameters,
                engine_name=ENGINE,
                kernel_name="python3",
                kernel=kernel,
                folder=folder,
                cwd=cwd,
                start_timeout=120,
                execution_timeout=max(1, round(cell_minutes * 60)),
                progress_bar=False,
            )
    except PapermillExecutionError as error:
        return failure_sentence(error.ename, error.evalue)
    except (RagLabError, SilentKernelError) as error:
        return str(error)
    except DeadKernelError:
        return "The kernel died; the usual cause is that memory ran out."
    except CellTimeoutError:
        return f"A cell ran for more than {cell_minutes:g} minutes and was ended; --cell-minutes allows more."
    except RuntimeError as error:  # a kernel that does not answer within the start timeout
        return failure_sentence("RuntimeError", str(error))
    return ""


def failure_sentence(ename: str, evalue: str) -> str:
    """Return one line for an exception in a notebook; the workbench's own errors are sentences already."""
    sentence = " ".join(visible(redact_sentence(evalue)).split())
    return (
        sentence
        if ename.endswith(("ConfigError", "DamagedFile", "DatasetError", "ModelError", "RagLabError", "StoreError"))
        else (f"{ename}: {sentence}" if sentence else ename)
    )


class CleanNotebooks(LocalHandler):  # type: ignore[misc]  # papermill has no stubs
    """papermill's writer of local files, which writes what may be kept of a notebook."""

    def write(self, buf: str, path: str) -> None:
        """Write the notebook `buf`."""
        text = hide_known_json(buf)
        if _ESCAPED.search(text) or CONTROL.search(text):
            book = json.loads(text)
            for cell in book["cells"]:
                if "outputs" in cell:
                    cell["outputs"] = _visible_in(cell["outputs"])
            text = visible_json(json.dumps(book, indent=1, ensure_ascii=False))
        super().write(f"{text}\n", path)


def _visible_in(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _visible_in(inner) for key, inner in value.items()}
    return [_visible_in(inner) for inner in value] if isinstance(value, list) else value


def serve(job: dict[str, Any], kernel: ForkedKernel | None = None) -> None:
    """Run a job and answer on stdout; see `run_notebook`."""
    threading.Thread(target=_end_with_parent, args=(sys.stdin, kernel), daemon=True).start()
    warnings.filterwarnings("ignore")
    reason = run_notebook(**job, kernel=kernel)
    sys.stdout.write(json.dumps({"reason": reason}) + "\n")
    sys.stdout.flush()


def _end_with_parent(stdin: TextIO, kernel: ForkedKernel | None) -> None:
    stdin.read()
    if kernel is not None:  # it would see only a moment later that it is alone
        with suppress(ChildProcessError):  # somebody else has waited for it
            kernel.kill()
            kernel.wait()
    os._exit(1)


if __name__ == "__main__":
    task = json.loads(sys.stdin.readline())
    del task["environment"]  # which this process was started with
    serve(task)
