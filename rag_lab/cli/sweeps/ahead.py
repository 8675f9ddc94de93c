"""Kernels that are prepared while a sweep is still read and planned, which both take seconds."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from rag_lab._kit.config_file import read_yaml
from rag_lab.errors import RagLabError


def kernels_ahead(experiment: Path, out: Path | None) -> AbstractContextManager[None]:
    """Prepare kernels from now on, unless the run folder looks finished; without any the block works as well."""
    from rag_lab.experiment.executors.local import prepared
    from rag_lab.experiment.run import MADE_FILE

    folder = out or _default(experiment)
    return nullcontext() if folder is None or (folder / MADE_FILE).is_file() else prepared()


def _default(experiment: Path) -> Path | None:
    """Return the run folder of an experiment that names none; None where the file is wrong, which is told later."""
    with suppress(RagLabError, OSError, LookupError, TypeError):
        return Path("results") / str(read_yaml(experiment)["name"])
    return None
