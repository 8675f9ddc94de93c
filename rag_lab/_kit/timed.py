"""Calling what may hang."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


class Hung(TimeoutError):  # noqa: N818
    """A call that did not return in time."""


def timed(call: Callable[[], T], timeout_s: float) -> T:
    """Return what `call` returns, or raise what it raises.

    Raises:
        Hung: if it does not return in time; it goes on in its thread, which holds up no exit.
    """
    returned: list[T] = []
    raised: list[Exception] = []

    def work() -> None:
        try:
            returned.append(call())
        except Exception as error:
            raised.append(error)
        except BaseException as error:  # a call that exits must neither look like one that hangs nor exit
            raised.append(RuntimeError(repr(error)))

    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join(timeout_s)
    if raised:
        raise raised[0]
    if not returned:
        raise Hung(f"did not return within {timeout_s:g} s")
    return returned[0]
