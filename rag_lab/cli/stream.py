"""The door through which all that the command line says leaves: no secret and no control character passes.

Answers, file names and a server's errors come from outside, and reach the terminal in many ways: by a command, a log, a
progress bar, a traceback. Here they all meet.
"""

from __future__ import annotations

import io
import re
from typing import Any, TextIO, cast

from rag_lab.redaction import shown

_LINE_UP = re.compile(r"(?:\x1b\[A)+")  # how a progress bar goes back to its line
_CLEARED = re.compile(r"\r *\r?")  # how it empties its line


class GuardedStream:
    """Writes to `stream` what may be shown. A bar's own return to the start of its line passes on a terminal."""

    color = True  # so that click leaves escape sequences for this stream to show, and drops none in silence

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `text` as it may be shown."""
        self._stream.write(_terminal(text) if self._stream.isatty() else _file(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write each of `lines`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # bytes written to it would go around this door
            raise AttributeError(name)
        return getattr(self._stream, name)


def guarded(stream: TextIO) -> TextIO:
    """Return `stream` behind the door, once; what its encoding cannot write is escaped there."""
    if isinstance(stream, GuardedStream):
        return cast(TextIO, stream)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return cast(TextIO, GuardedStream(stream))


def _terminal(text: str) -> str:
    if _LINE_UP.fullmatch(text) or _CLEARED.fullmatch(text):
        return text
    return f"\r{shown(text[1:])}" if text.startswith("\r") else shown(text)


def _file(text: str) -> str:
    """Return what a file gets: of a bar, which would be drawn over itself, a line each time."""
    if _LINE_UP.fullmatch(text) or _CLEARED.fullmatch(text):
        return ""
    return f"\n{shown(text[1:])}" if text.startswith("\r") else shown(text)
