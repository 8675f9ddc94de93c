"""What models of this machine have in common: contract, converted weights, quiet loading, measurement."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rag_lab._kit.home import home_at_work
from rag_lab._kit.machine import begin_peak, energy_counter, memory_mb
from rag_lab.errors import ModelError
from rag_lab.records import MachineUse

Result = TypeVar("Result")
_PADDING = 0.1  # of a batch at most: a wider one takes longer than two


class LocalModel:
    """A model whose weights are loaded into the process that asks it, when they are first needed."""

    name: str
    weights_held: Any  # a text: which weights are loaded, and how; models that say the same share them
    loaded: Any  # what computes; the weights are loaded when it is first read
    runs_on = ""  # the device that was asked for: `cpu`, `cuda`, ..., or '' for a GPU where there is one

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def even_batches(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Return the places of all lengths, the longest first, in batches of up to `most` that hold little padding."""
    batches: list[list[int]] = [[]]
    for place in sorted(range(len(lengths)), key=lambda n: lengths[n], reverse=True):
        more = [*batches[-1], place]
        is_even = sum(lengths[n] for n in more) >= (1 - _PADDING) * lengths[more[0]] * len(more)
        batches[-1:] = [more] if is_even and len(more) <= most else [batches[-1], [place]]
    return batches


def keep_converted(name: str, make: Callable[[Path], None]) -> Path:
    """Return `weights/name` of the home folder, made once by `make`, with a temporary path, if it is not there yet."""
    from filelock import FileLock

    target = home_at_work() / "weights" / name
    if target.exists():
        return target
    partial = target.with_name(f"{name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f"{name}.lock")):
            if not target.exists():
                if partial.is_dir():
                    shutil.rmtree(partial)
                else:
                    partial.unlink(missing_ok=True)
                make(partial)
                partial.replace(target)
    except OSError as error:
        raise ModelError(
            f"Cannot write converted weights to {target.parent}: {error.strerror or error}; free some space or set "
            "RAG_LAB_HOME to another folder."
        ) from error
    return target


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Switch transformers' progress bars off inside the block, and back to what they were."""
    from transformers.utils import logging

    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()


@dataclass
class MachineMeter:
    """Measures one model. Its memory is what the process grew by while it loaded, and the most that calls added."""

    load_s: float | None = None
    loaded_mb: float | None = None
    called_mb: float = 0.0

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Measure what is done within as the loading of the weights."""
        before, started = _held(), time.perf_counter()
        yield
        self.load_s = time.perf_counter() - started
        after = _held()
        self.loaded_mb = None if before is None or after is None else max(after - before, 0.0)

    def measured(self, call: Callable[[], Result]) -> tuple[Result, MachineUse]:
        """Return what `call` returns, and what the model has taken with it."""
        before, joules_since, cuda = _held(), energy_counter(), _cuda()
        begin_peak()
        if cuda:
            cuda.reset_peak_memory_stats()
        result = call()
        joules, peak = joules_since(), memory_mb("VmHWM")
        if self.loaded_mb is None or before is None or peak is None:
            return result, MachineUse(self.load_s, None, joules)
        if cuda := _cuda():
            peak += cuda.max_memory_allocated() / 2**20
        self.called_mb = max(self.called_mb, peak - before)
        return result, MachineUse(self.load_s, self.loaded_mb + self.called_mb, joules)


def _held() -> float | None:
    held, cuda = memory_mb("VmRSS"), _cuda()
    return None if held is None else held + (cuda.memory_allocated() / 2**20 if cuda else 0.0)


def _cuda() -> Any:
    """Return torch's view of the GPU where this process uses it, else None."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None
