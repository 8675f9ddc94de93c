"""Takes secrets out of texts that are shown, stored or logged."""

from __future__ import annotations

import os
import re

_KEY_VARIABLES = ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "HF_TOKEN")
_PATTERNS = (
    re.compile(r"(?i)\b(bearer\s+)[^\s\"',;]+"),
    re.compile(r"(?i)((?:api[_-]?key|[?&]key|access_token|password)[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;}]+"),
    re.compile(r"()\b(?:sk-|AIza)[\w*-]{6,}"),
    re.compile(r"(?i)(https?://)[^\s/@]+@"),
)
_HIDDEN = "[hidden]"


def redact(text: str) -> str:
    """Return `text` without the keys set in the environment and without anything that looks like a key."""
    for name in _KEY_VARIABLES:
        value = os.environ.get(name, "")
        if len(value) >= 4:
            text = text.replace(value, _HIDDEN)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\1{_HIDDEN}", text)
    return text


def one_line(text: str, limit_chars: int = 300) -> str:
    """Return `text` redacted, on one line, cut to `limit_chars` characters."""
    return " ".join(redact(text).split())[:limit_chars]
