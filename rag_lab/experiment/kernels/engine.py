"""The papermill engine `rag_lab`: a kernel of the very Python that runs papermill, forked beforehand where it can be.

By hand it is `papermill --engine rag_lab notebooks/02_run_variant.ipynb out.ipynb`. A fork is the one way in which two
notebooks share imports and nothing else: whatever one changes, it changes in memory of its own.
"""

from __future__ import annotations

import atexit
import gc
import json
import math
import os
import random
import signal
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partialmethod
from pathlib import Path
from queue import Empty
from typing import IO, Any, NoReturn, cast

import zmq
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from nbclient.exceptions import DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines

ENGINE = "rag_lab"
_LOOK_S = 0.01  # whether a kernel has ended
_SOCKET_FOLDER_CHARS = 80  # the path of a socket may have about 100
_LAUNCHER = ["-P", "-m", "ipykernel_launcher"]
_RECONNECT_MS = 5


class ReadyClient(AsyncKernelClient):
    """A kernel is ready when it has answered, and its other channel has said that it is idle again.

    The first connection comes before a kernel listens, and is tried again after the interval, which is 100 ms.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.context.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)

    async def _async_wait_for_ready(self, timeout: float | None = None) -> None:
        ends_s = time.monotonic() + (math.inf if timeout is None else timeout)
        while not await self._answers():
            if not await self._async_is_alive():
                raise RuntimeError("Kernel died before replying to kernel_info")
            if time.monotonic() > ends_s:
                raise RuntimeError(f"Kernel didn't respond in {timeout:g} seconds")

    wait_for_ready = _async_wait_for_ready  # as its base has it

    async def _answers(self) -> bool:
        asked = self.kernel_info()
        with suppress(Empty):
            reply = await self.shell_channel.get_msg(timeout=1.0)
            while reply["msg_type"] == "kernel_info_reply":
                message = await self.iopub_channel.get_msg(timeout=0.2)
                is_ours = message["parent_header"].get("msg_id") == asked
                if is_ours and message["content"].get("execution_state") == "idle":
                    self._handle_kernel_info_reply(reply)
                    return True
        return False


class SamePythonKernelManager(AsyncKernelManager):
    """Starts `sys.executable -P -m ipykernel_launcher`; no kernel called python3 in the user's folder takes its place.

    Each notebook has a class of its own, since papermill makes the instance.

    Colours of tracebacks are escape sequences, which a notebook that is kept must not hold. What passes between the two
    goes through sockets in `folder`, which only this user may enter. Where there is none it goes over the loopback,
    which other users can read, and is encrypted; there two kernels that start at the same time may choose one port.
    """

    silence_s = 120.0  # without a heartbeat, which a kernel gives in any work: one stopped or swapped out does not
    kernel: ForkedKernel | None = None  # which waits, to take the place of the process that would be started
    folder = ""  # for what the kernel is told of its connection, and its sockets
    was_silent = False  # whether it was ended for silence
    _client: Any = None
    _silent_looks = 0

    def __init__(self, **options: Any) -> None:
        has_sockets = bool(self.folder) and os.name == "posix" and len(self.folder) < _SOCKET_FOLDER_CHARS
        super().__init__(
            client_factory=ReadyClient,
            connection_file=str(Path(self.folder) / "connection.json") if self.folder else "",
            transport="ipc" if has_sockets else "tcp",
            transport_encryption="auto" if not has_sockets and zmq.has("curve") else "disabled",
            **options,
        )

    def client(self, **options: Any) -> Any:
        """Return the client, whose heartbeat is watched."""
        self._client = super().client(**options)
        return self._client

    async def _async_pre_start_kernel(self, **options: Any) -> Any:
        if self.kernel is not None:
            self.provisioner = _Forked(parent=self, kernel_spec=self.kernel_spec, kernel_id=uuid.uuid4().hex)
        return await super()._async_pre_start_kernel(**options)

    async def _async_is_alive(self) -> bool:
        """Whether the kernel runs and answers; one that is silent for long is ended.

        nbclient asks once a second, so looks are counted, and no time in which this process was stopped as well.
        """
        alive = await super()._async_is_alive()
        heart = None if self._client is None else self._client._hb_channel
        is_silent = heart is not None and heart.is_alive() and not heart.is_beating()
        self._silent_looks = self._silent_looks + 1 if alive and is_silent else 0
        if self._silent_looks < self.silence_s or self.provisioner is None:
            return alive
        type(self).was_silent = True
        await self.provisioner.kill()
        return False

    async def _async_interrupt_kernel(self) -> None:
        """Interrupt it, but not on the way to its end: a kernel whose last cell has ended would log the signal."""
        if not self.shutting_down:
            await super()._async_interrupt_kernel()

    _async_finish_shutdown: Any = partialmethod(AsyncKernelManager._async_finish_shutdown, pollinterval=_LOOK_S)
    is_alive = _async_is_alive  # as its base has it
    pre_start_kernel = _async_pre_start_kernel

    @property
    def kernel_spec(self) -> Any:
        """The one kernel that this manager starts."""
        return KernelSpec(
            argv=[sys.executable, *_LAUNCHER, "-f", "{connection_file}", "--colors=nocolor"],
            display_name="Python 3",
            language="python",
            metadata=get_kernel_dict().get("metadata", {}),
        )


class _Forked(LocalProvisioner):
    """Tells the kernel that waits its arguments, where others start a process."""

    async def launch_kernel(self, cmd: list[str], **options: Any) -> Any:
        arguments = cmd[cmd.index(_LAUNCHER[-1]) + 1 :]
        kernel: ForkedKernel = cast(Any, self.parent).kernel
        kernel.begin(arguments, str(Path(options.get("cwd") or "").resolve()), options["env"])
        self.process = cast(Any, kernel)
        self.pid = self.pgid = kernel.pid
        return self.connection_info


class SilentKernelError(Exception):
    """A kernel did not answer for long, though its process was there, and was ended; it is a sentence."""


class KernelEngine(NBClientEngine):  # type: ignore[misc]  # papermill has no stubs
    """Executes a notebook by nbclient in a kernel of ours."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, kernel: ForkedKernel | None = None, folder: str = "", **options: Any
    ) -> Any:
        """Execute it, in `kernel` where one is given; see papermill. `folder` is for files of the connection."""
        manager: Any = type("KernelManager", (SamePythonKernelManager,), {"folder": folder, "kernel": kernel})
        save = nb_man.save

        def save_outputs(**options: Any) -> None:
            """Save the notebook, but not for a cell that has only begun."""
            begun = (cell for cell in nb_man.nb.cells if cell.metadata.papermill["status"] == nb_man.RUNNING)
            if all(cell.get("outputs") for cell in begun):
                save(**options)

        nb_man.save = save_outputs
        try:
            return super().execute_managed_notebook(nb_man, kernel_name, kernel_manager_class=manager, **options)
        except DeadKernelError as error:
            if not manager.was_silent:
                raise
            raise SilentKernelError(
                f"The kernel did not answer for {manager.silence_s:g} seconds and was ended; the usual cause is "
                "that it was stopped."
            ) from error


papermill_engines.register(ENGINE, KernelEngine)  # where the package was installed before it had the entry point


class ForkedKernel:
    """A process that waits to be told its arguments; then what jupyter_client takes a `subprocess.Popen` for."""

    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None = None
    stderr: IO[bytes] | None = None

    def __init__(self, at_end: Callable[[], None]) -> None:
        """Fork it; `at_end` is called in it when its notebook has ended."""
        arguments, self._tell = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._tell)
            end_after(lambda: _wait_for_notebook(arguments, at_end))
        os.close(arguments)

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

    kill = partialmethod(send_signal, signal.SIGKILL)
    terminate = partialmethod(send_signal, signal.SIGTERM)


def _wait_for_notebook(told: int, at_end: Callable[[], None]) -> int:
    """Run ipykernel as `python -m ipykernel_launcher` would when its arguments come; return the exit status."""
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()  # as a kernel that is started: signals to the sweep do not reach it
    with os.fdopen(told, encoding="utf-8") as pipe:
        text = pipe.read()
    if not text:  # they never do
        return 1
    task = json.loads(text)
    os.environ.clear()
    os.environ.update(task["environment"])
    os.chdir(task["cwd"])
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what libraries print goes to the log; stdout is where the answer to the job goes
    seed_anew()
    sys.argv = ["ipykernel_launcher.py", *task["arguments"]]
    IPKernelApp.launch_instance([*task["arguments"], f"--IPKernelApp.parent_handle={task['parent']}"])
    # Sockets end with the process. Closed in order, their threads wait for each other now and then, until it is killed.
    app = IPKernelApp.instance()
    for close in (app.close, app.iopub_thread.stop):
        atexit.unregister(close)
    at_end()
    return 0


def seed_anew() -> None:
    """Give this process random states of its own, as a process that is started has."""
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def end_after(work: Callable[[], int]) -> NoReturn:
    """End a forked process after its work, with the status that this returns; 1 where it fails."""
    status = 1
    try:
        status = work()
    except BaseException:
        traceback.print_exc()
    ending: Any = threading
    try:
        ending._shutdown()  # waits for threads that are no daemons
        gc.freeze()  # IPython would search all for circles, which the end of the process frees
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
