"""Which files a block opens for reading, libraries and temporary files aside."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_CODE = {".py", ".pyc", ".so", ".pyd", ".dll"}
_CACHES = ("HF_HOME", "HF_HUB_CACHE", "TORCH_HOME", "XDG_CACHE_HOME")  # where libraries keep weights
_open: list[OpenedFiles] = []  # audit hooks cannot be taken out again, so one hook serves all blocks


class OpenedFiles:
    """Watches while its block runs; `paths` are the files below the current folder or the home of one's modules."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()

    def __enter__(self) -> Self:
        if not _hooked:
            sys.addaudithook(_note)
            _hooked.append(True)
        _open.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _open.remove(self)


_hooked: list[bool] = []
_paused: list[bool] = []


@contextmanager
def unwatched() -> Iterator[None]:
    """Leave out what is opened here, by whatever thread: a model's weights are known by the model's identity."""
    _paused.append(True)
    try:
        yield
    finally:
        _paused.pop()


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if not _open or _paused or event != "open" or not isinstance(arguments[0], str | Path):
        return
    path, mode = Path(arguments[0]), str(arguments[1] or "r")
    if path.suffix in _CODE or not mode.startswith("r") or _is_aside(path):
        return
    for each in _open:
        each.paths.add(path.resolve())


def _is_aside(path: Path) -> bool:
    """Tell whether a file is a library's or the system's, or weights in a cache, and not one of the experiment's."""
    whole = path.absolute()
    caches: tuple[str | Path, ...] = (
        Path("~/.cache").expanduser(),
        *(os.environ[name] for name in _CACHES if os.environ.get(name)),
    )
    places = (sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev", "/etc", "/usr", *caches)
    return any(whole.is_relative_to(place) for place in places)
