"""The door through which all that the command line says leaves: no secret and no control character passes.

Answers, file names and a server's errors come from outside, and reach the terminal in many ways: by a command, a log, a
progress bar, a traceback. Here they all meet.
"""

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
        is_terminal = self._stream.isatty()
        if _LINE_UP.fullmatch(text) or _CLEARED.fullmatch(text):
            self._stream.write(text if is_terminal else "")
        elif text.startswith("\r"):  # a file gets a line each time of a bar, which would be drawn over itself
            self._stream.write(("\r" if is_terminal else "\n") + shown(text[1:]))
        else:
            self._stream.write(shown(text))
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
