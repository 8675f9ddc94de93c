"""A kernel that was forked before its notebook is known: all that it needs is imported, nothing of it was used.

A fork is the one way in which two notebooks share imports and nothing else: whatever one changes, it changes in memory
of its own.
"""

import atexit
import json
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, NoReturn


class ForkedKernel:
    """A process that waits to be told its arguments; then what jupyter_client takes a `subprocess.Popen` for."""

    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None = None
    stderr: IO[bytes] | None = None

    def __init__(self, at_end: Callable[[], None]) -> None:
        """Fork it; `at_end` is called in it when its notebook has ended."""
        told, self._tell = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._tell)
            _wait_for_notebook(told, at_end)
        os.close(told)

    def begin(self, arguments: Sequence[str], cwd: str, environment: Mapping[str, str]) -> None:
        """Let it become a kernel, with the arguments of ipykernel."""
        told = {"arguments": list(arguments), "cwd": cwd, "environment": dict(environment), "parent": os.getpid()}
        with suppress(BrokenPipeError), os.fdopen(self._tell, "w", encoding="utf-8") as pipe:  # that it died is seen
            json.dump(told, pipe)

    def poll(self) -> int | None:
        """Return its exit status, or None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status when it has ended."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


def _wait_for_notebook(told: int, at_end: Callable[[], None]) -> NoReturn:
    """Become a kernel when its arguments come; end where they never do."""
    status = 1
    try:
        os.setsid()  # as a kernel that is started: signals to the sweep do not reach it
        with os.fdopen(told, encoding="utf-8") as pipe:
            text = pipe.read()
        if text:
            _be_kernel(**json.loads(text))
            at_end()
            status = 0
    except BaseException:
        traceback.print_exc()
    end_process(status)


def _be_kernel(arguments: list[str], cwd: str, environment: dict[str, str], parent: int) -> None:
    """Run ipykernel as `python -m ipykernel_launcher` would, until its notebook has ended."""
    from ipykernel.kernelapp import IPKernelApp

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what libraries print goes to the log; stdout is where the answer to the job goes
    seed_anew()
    sys.argv = ["ipykernel_launcher.py", *arguments]
    IPKernelApp.launch_instance([*arguments, f"--IPKernelApp.parent_handle={parent}"])


def seed_anew() -> None:
    """Give this process random states of its own, as a process that is started has."""
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def end_process(status: int) -> NoReturn:
    """End a forked process as Python ends one, but for what belongs to those that it was forked from."""
    ending: Any = threading
    try:
        ending._shutdown()  # waits for threads that are no daemons
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
