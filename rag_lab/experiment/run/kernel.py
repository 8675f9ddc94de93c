"""The kernel of a variant runs in the very Python that runs the sweep, whatever kernels are installed."""

from __future__ import annotations

import sys
from typing import Any

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager


class SamePythonKernelManager(AsyncKernelManager):
    """Starts `sys.executable -m ipykernel_launcher`; no kernel called python3 in the user's folder takes its place.

    Colours of tracebacks are escape sequences, which a notebook that is kept must not hold.
    """

    @property
    def kernel_spec(self) -> Any:
        """The one kernel that this manager starts."""
        return KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--colors=nocolor"],
            display_name="Python 3",
            language="python",
        )
