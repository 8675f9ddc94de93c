"""The last door before a report leaves the machine: nothing that looks like a key passes, wherever it came from.

Reasons of failures quote providers, and providers quote requests.
"""

from __future__ import annotations

import os
import re

HIDDEN = "[hidden]"
_LOOKS_SECRET = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bAIza[A-Za-z0-9_-]{30,}|\bhf_[A-Za-z0-9]{20,}|\bgh[pousr]_[A-Za-z0-9]{30,}"
    r"|(?<=[?&]key=)[^&\s\"'<]{8,}|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{16,}"
)
_NAMES_SECRET = re.compile(r"(?:API_?KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
SHORTEST_SECRET_CHARS = 12


def redact(text: str) -> str:
    """Return `text` with keys, and the values of environment variables that are named like keys, hidden."""
    for name, value in os.environ.items():
        if _NAMES_SECRET.search(name) and len(value) >= SHORTEST_SECRET_CHARS:
            text = text.replace(value, HIDDEN)
    return _LOOKS_SECRET.sub(HIDDEN, text)
