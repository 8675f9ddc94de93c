"""Whether a string of JSON is open, kept up to date as the text is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenString:
    """At some place of a text: `is_open` inside of a string, `escaped` behind a backslash there."""

    is_open: bool = False
    escaped: bool = False

    def after(self, written: bytes) -> OpenString:
        """Return what holds behind `written`."""
        is_open, escaped = self.is_open, self.escaped
        for byte in written:
            if escaped:
                escaped = False
            elif byte == ord('"'):
                is_open = not is_open
            else:
                escaped = is_open and byte == ord("\\")
        return OpenString(is_open, escaped)
