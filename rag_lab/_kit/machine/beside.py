"""Work that is done beside the rest, in a process forked from this one, which has all that was read before."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from rag_lab._kit.machine.cores import usable_cores

_HARMLESS = "tqdm_monitor"  # the thread of progress bars, which holds nothing that others need


@contextmanager
def beside(work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Give a function that waits for the result of `work`, a JSON value, which is made meanwhile on another core.

    It is made when it is asked for, in this process, where there is no other core or no fork, where other threads run,
    whose locks a fork would never see released, and once more where it failed, so that its error is raised here.
    """
    if usable_cores() < 2 or not _can_fork():
        yield work
        return
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _do(work, write)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        try:
            yield lambda: json.loads(said) if (said := pipe.read()) else work()
        finally:
            os.kill(pid, signal.SIGKILL)  # it has ended, or nobody waits for it any more
            os.waitpid(pid, 0)


def _can_fork() -> bool:
    others = [one for one in threading.enumerate() if one is not threading.current_thread()]
    return hasattr(os, "fork") and sys.platform != "darwin" and all(one.name == _HARMLESS for one in others)


def _do(work: Callable[[], Any], write: int) -> NoReturn:
    """Say the result, or nothing where there is none."""
    try:
        said = json.dumps(work())
        with os.fdopen(write, "w", encoding="utf-8") as pipe:
            pipe.write(said)
    finally:
        os._exit(0)
