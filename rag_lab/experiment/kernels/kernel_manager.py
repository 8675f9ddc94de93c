"""Kernels of the very Python that runs the sweep: in a new process, or in one that was forked and waits."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Any, cast

import zmq
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import default

from rag_lab.experiment.kernels.forked_kernel import ForkedKernel

_LAUNCHER = ["-m", "ipykernel_launcher"]


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
            argv=[sys.executable, *_LAUNCHER, "-f", "{connection_file}", "--colors=nocolor"],
            display_name="Python 3",
            language="python",
            metadata=get_kernel_dict().get("metadata", {}),
        )


class ForkedKernelManager(SamePythonKernelManager):
    """Lets `kernel`, which waits, take the place of the process that would be started."""

    kernel: ForkedKernel

    @classmethod
    def of(cls, kernel: ForkedKernel) -> type[ForkedKernelManager]:
        """Return the manager's class for this kernel: papermill makes the instance."""
        return type(cls.__name__, (cls,), {"kernel": kernel})

    async def _async_pre_start_kernel(self, **options: Any) -> Any:
        self.provisioner = _Forked(parent=self, kernel_spec=self.kernel_spec, kernel_id=uuid.uuid4().hex)
        self.provisioner.process_to_be = self.kernel
        return await super()._async_pre_start_kernel(**options)

    pre_start_kernel = _async_pre_start_kernel  # type: ignore[assignment]  # as its base has it


class _Forked(LocalProvisioner):
    """Tells the kernel that waits its arguments, where others start a process."""

    process_to_be: ForkedKernel

    async def launch_kernel(self, cmd: list[str], **options: Any) -> Any:
        arguments = cmd[cmd.index(_LAUNCHER[-1]) + 1 :]
        kernel = self.process_to_be
        kernel.begin(arguments, str(Path(options.get("cwd") or "").resolve()), options["env"])
        self.process = cast(Any, kernel)
        self.pid = self.pgid = kernel.pid
        return self.connection_info
