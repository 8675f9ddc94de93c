"""RAGAs is imported late, told to report nothing, and run in a thread of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

Result = TypeVar("Result")


def ragas_module(name: str) -> ModuleType:
    """Import a module of RAGAs, or one of ours that does, which would report its use where it is not told otherwise."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    return import_module(name)


def run_to_end(coroutine: Coroutine[Any, Any, Result], stop: Callable[[], None]) -> Result:
    """Run to the end in a thread of its own: a notebook's thread already runs an event loop.

    An interruption reaches the waiting thread alone, so `stop` must bring the coroutine to its end.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ragas") as thread:
        future = thread.submit(asyncio.run, coroutine)
        try:
            return future.result()
        except BaseException:
            stop()
            raise
