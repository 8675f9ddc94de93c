"""One sweep at a time in a run folder, also where two machines see it: a file's lock may hold on one of them only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_lab._kit.home import usable_home
from rag_lab.errors import RagLabError
from rag_lab.experiment.executors.job_queue import FILE
from rag_lab.memory.results import Memory
from rag_lab.runs.run_folder import run_name


@contextmanager
def alone_in_store(path: Path) -> Iterator[str]:
    """Yield the name of the run in `path`, which is held in the store in this block.

    Raises:
        RagLabError: if another sweep holds it.
    """
    name, memory = run_name(path), Memory(usable_home() / FILE)
    key = f"sweep {name}"
    if not memory.claim([key], 1):
        others = ", ".join(map(str, memory.holders([key])))
        raise RagLabError(
            f"Another sweep is running in {path}, by {others}; wait for it (a minute, where its machine is gone), or "
            "give another folder with --out."
        )
    with memory.keeping([key]):
        yield name
