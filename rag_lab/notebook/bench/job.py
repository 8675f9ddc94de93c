"""Work in a thread of its own, so that the kernel goes on listening: it can be watched, and stopped between steps."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread

from rag_lab.errors import RagLabError
from rag_lab.redaction import redact_sentence

_ONE_AT_A_TIME = Lock()  # two benches of a kernel share its models


class Stopped(Exception):  # noqa: N818 - it is no error
    """Somebody asked for an end."""


class Job:
    """Work that has been started.

    Args:
        work: is given the job, and calls `step` where it may end.
        ended: called at the very end, in the same thread.
    """

    def __init__(self, work: Callable[[Job], None], ended: Callable[[Job], None]) -> None:
        self.step_now, self.share = "", 0.0
        self.error: RagLabError | None = None
        self.is_stopped = self._is_over = False
        self._work, self._ended = work, ended
        self._stop = Event()
        self._thread = Thread(target=self._run, name="bench", daemon=True)

    @property
    def is_stopping(self) -> bool:
        """Whether an end was asked for; what is being computed is finished first."""
        return self._stop.is_set()

    @property
    def is_running(self) -> bool:
        """Whether its work has not come to its end."""
        return not self._is_over

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end; an interrupt of the kernel stops the work."""
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self.stop()
            raise

    def stop(self) -> None:
        """End at the next step: a call of a model that runs is waited for, and remembered."""
        self._stop.set()

    def step(self, name: str, share: float) -> None:
        """Enter a step, when this `share` of the work is done, from 0 to 1.

        Raises:
            Stopped: if somebody asked for an end.
        """
        self.step_now, self.share = name, share
        if self._stop.is_set():
            raise Stopped

    def _run(self) -> None:
        try:
            with _ONE_AT_A_TIME:
                self._work(self)
        except Stopped:
            self.is_stopped = True
        except RagLabError as error:
            self.error = error
        except Exception as error:  # of a library, or of a module of somebody's own: the bench goes on
            self.error = RagLabError(f"{type(error).__name__}: {redact_sentence(' '.join(str(error).split()))[:400]}")
            self.error.__cause__ = error
        finally:
            self._is_over = True
            self._ended(self)
