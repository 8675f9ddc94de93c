"""Runs one notebook by papermill in a process of its own, and dies with the process that started it.

It reads a job, one line of JSON, from stdin and answers with one line of JSON on stdout. The parent keeps stdin open:
its end means that the parent is gone, even if it was killed, so that no orphan goes on writing into the run folder.
The kernel, of the very Python that runs the sweep, watches this process in the same way. The notebook is written after
every cell, without known secrets and with visible control characters in its outputs.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from typing import Any, TextIO

import zmq
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill import execute_notebook
from papermill.exceptions import PapermillExecutionError
from papermill.iorw import papermill_io
from traitlets import default

from rag_lab.experiment.kernels.clean_notebook import CleanNotebooks
from rag_lab.redaction import redact_sentence
from rag_lab.visible import visible

START_TIMEOUT_S = 120
CELL_TIMEOUT_S = 24 * 3600


def run_notebook(notebook: str, output: str, parameters: dict[str, Any], cwd: str) -> str:
    """Execute `notebook` into `output`, which is kept whatever happens; return why it failed, or nothing."""
    papermill_io.register(output, CleanNotebooks())
    try:
        execute_notebook(
            notebook,
            output,
            parameters=parameters,
            kernel_name="python3",
            kernel_manager_class=SamePythonKernelManager,
            cwd=cwd,
            start_timeout=START_TIMEOUT_S,
            execution_timeout=CELL_TIMEOUT_S,
            progress_bar=False,
        )
    except PapermillExecutionError as error:
        return failure_sentence(error.ename, error.evalue)
    except DeadKernelError:
        return "The kernel died; the usual cause is that memory ran out."
    except CellTimeoutError:
        return f"A cell took longer than {CELL_TIMEOUT_S / 3600:.0f} hours."
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


def main() -> None:
    """Serve one job."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, args=(sys.stdin,), daemon=True).start()
    warnings.filterwarnings("ignore")
    reason = run_notebook(**job)
    sys.stdout.write(json.dumps({"reason": reason}) + "\n")
    sys.stdout.flush()


def _end_with_parent(stdin: TextIO) -> None:
    stdin.read()
    os._exit(1)


class SamePythonKernelManager(AsyncKernelManager):
    """Starts `sys.executable -m ipykernel_launcher`; no kernel called python3 in the user's folder takes its place.

    Colours of tracebacks are escape sequences, which a notebook that is kept must not hold. What passes between the two
    is encrypted where the kernel can: other users of the machine can read its loopback.
    """

    @default("transport_encryption")
    def _encrypted(self) -> str:
        return "auto" if zmq.has("curve") else "disabled"

    @property
    def kernel_spec(self) -> Any:
        """The one kernel that this manager starts."""
        return KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--colors=nocolor"],
            display_name="Python 3",
            language="python",
            metadata=get_kernel_dict().get("metadata", {}),
        )


if __name__ == "__main__":
    main()
