"""Runs one notebook by papermill in a process of its own, and dies with the process that started it.

It reads a job, one line of JSON, from stdin and answers with one line of JSON on stdout. The parent keeps stdin open:
its end means that the parent is gone, even if it was killed, so that no orphan goes on writing into the run folder.
The kernel watches this process in the same way.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from typing import Any, TextIO

from rag_lab.redaction import redact_sentence
from rag_lab.visible import visible

START_TIMEOUT_S = 120
CELL_TIMEOUT_S = 24 * 3600


def run_notebook(notebook: str, output: str, parameters: dict[str, Any], cwd: str) -> str:
    """Execute `notebook` into `output`, which is kept whatever happens; return why it failed, or nothing."""
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError
    from papermill.iorw import papermill_io

    from rag_lab.experiment.run.kernel import SamePythonKernelManager
    from rag_lab.experiment.run.notebook_file import CleanNotebooks

    papermill_io.register(output, CleanNotebooks())
    try:
        papermill.execute_notebook(
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


if __name__ == "__main__":
    main()
