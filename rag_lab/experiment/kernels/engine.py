"""The papermill engine `rag_lab`: a kernel of the Python that runs papermill, prepared beforehand where there is one.

By hand it is `papermill --engine rag_lab notebooks/02_run_variant.ipynb out.ipynb`.
"""

from __future__ import annotations

from typing import Any

from nbclient.exceptions import DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines

from rag_lab.experiment.kernels.forked_kernel import ForkedKernel
from rag_lab.experiment.kernels.kernel_manager import ForkedKernelManager, SamePythonKernelManager

ENGINE = "rag_lab"


class SilentKernelError(Exception):
    """A kernel did not answer for long, though its process was there, and was ended; it is a sentence."""


class KernelEngine(NBClientEngine):  # type: ignore[misc]  # papermill has no stubs
    """Executes a notebook by nbclient in a kernel of ours."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, kernel: ForkedKernel | None = None, folder: str = "", **options: Any
    ) -> Any:
        """Execute it, in `kernel` where one is given; see papermill. `folder` is for files of the connection.

        Raises:
            SilentKernelError: if the kernel was ended because it did not answer.
        """
        given: dict[str, Any] = {"folder": folder} | ({} if kernel is None else {"kernel": kernel})
        manager = (SamePythonKernelManager if kernel is None else ForkedKernelManager).of(**given)
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
