"""The papermill engine `rag_lab`: a kernel of the very Python that runs papermill, forked beforehand where it can be.

By hand it is `papermill --engine rag_lab notebooks/02_run_variant.ipynb out.ipynb`.
"""

from __future__ import annotations

import math
import os
import sys
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any, cast

import zmq
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from nbclient.exceptions import DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from traitlets import default

from rag_lab.experiment.kernels.forked_kernel import ForkedKernel

ENGINE = "rag_lab"
SILENCE_S = 120.0  # without a heartbeat, which a kernel gives in any work: one that is stopped or swapped out does not
_LOOK_S = 0.01  # whether a kernel has ended
_SOCKET_FOLDER_CHARS = 80  # the path of a socket may have about 100
_LAUNCHER = ["-P", "-m", "ipykernel_launcher"]
_REPLY_S = 1.0
_STATUS_S = 0.2


class ReadyClient(AsyncKernelClient):
    """A kernel is ready when it has answered, and its other channel has said that it is idle again."""

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
        reply = await self._next(self.shell_channel, _REPLY_S)
        if reply is None or reply["msg_type"] != "kernel_info_reply":
            return False
        while (told := await self._next(self.iopub_channel, _STATUS_S)) is not None:
            if told["parent_header"].get("msg_id") == asked and told["content"].get("execution_state") == "idle":
                self._handle_kernel_info_reply(reply)
                return True
        return False

    async def _next(self, channel: Any, seconds: float) -> dict[str, Any] | None:
        try:
            return dict(await channel.get_msg(timeout=seconds))
        except Empty:
            return None


class SamePythonKernelManager(AsyncKernelManager):
    """Starts `sys.executable -P -m ipykernel_launcher`; no kernel called python3 in the user's folder takes its place.

    Each notebook has a class of its own, since papermill makes the instance.

    Colours of tracebacks are escape sequences, which a notebook that is kept must not hold. What passes between the two
    goes through sockets in `folder`, which only this user may enter. Where there is none it goes over the loopback,
    which other users can read, and is encrypted; there two kernels that start at the same time may choose one port.
    """

    silence_s = SILENCE_S
    kernel: ForkedKernel | None = None  # which waits, to take the place of the process that would be started
    folder = ""  # for what the kernel is told of its connection, and its sockets
    was_silent = False  # whether it was ended for silence
    _client: Any = None
    _silent_looks = 0

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

    async def _async_finish_shutdown(
        self, waittime: float | None = None, pollinterval: float = _LOOK_S, restart: bool = False
    ) -> None:
        await super()._async_finish_shutdown(waittime, pollinterval, restart)

    is_alive = _async_is_alive  # as its base has it
    pre_start_kernel = _async_pre_start_kernel

    @default("client_factory")
    def _client_factory_default(self) -> type[ReadyClient]:
        return ReadyClient

    @default("connection_file")
    def _connection_file(self) -> str:
        return str(Path(self.folder) / "connection.json") if self.folder else ""

    @default("transport")
    def _through_files(self) -> str:
        return "ipc" if self.folder and os.name == "posix" and len(self.folder) < _SOCKET_FOLDER_CHARS else "tcp"

    @default("transport_encryption")
    def _encrypted(self) -> str:
        return "auto" if self.transport == "tcp" and zmq.has("curve") else "disabled"

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
        given = {"folder": folder, "kernel": kernel}
        manager: type[SamePythonKernelManager] = type("KernelManager", (SamePythonKernelManager,), given)
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
