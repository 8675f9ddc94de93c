"""What stands in pages as it is: files of this folder, texts escaped for it, and the policy under which scripts run."""

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape

from rag_lab._kit import wording as numbers
from rag_lab.redaction import visible

FOLDER = Path(__file__).parent
_POLICY = "script-src '"  # of a page, where one more script is allowed


def asset(name: str) -> Markup:
    """Return a style sheet or script of this folder, to be written into a page as it is."""
    return Markup((FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704 -- our own file


def script_digest(script: str) -> str:
    """Return a script's digest in the form that a content security policy wants."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def with_script(page: str, notice: str, script: str) -> str:
    """Return a page with a notice at its end, and with a script of it allowed, which may ask the page's own server."""
    allowed = page.replace(_POLICY, f"connect-src 'self'; {_POLICY}{script_digest(script)}' '", 1)
    head, end, rest = allowed.rpartition("</body>")
    return f"{head}{notice}{end}{rest}" if end else allowed


def soft(text: str) -> Markup:
    """Escape `text` and let long names break after dots, commas, slashes and underscores."""
    return Markup(re.sub(r"([._/=@,])(?=[^\W\d])", r"\1<wbr>", str(escape(text))))  # noqa: S704 -- escaped before


def prose(text: str) -> Markup:
    """Escape a sentence, set what stands between backticks as code, and write real minus signs."""
    signed = re.sub(r"(?<![\w.-])-(?=\d)", numbers.MINUS, str(escape(text)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", signed))  # noqa: S704 -- escaped before


def setting(value: Any) -> str:
    """Write a value of the configuration for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {setting(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(setting(inner) for inner in value)
    return "none" if value is None else str(value)


def address(wanted: Mapping[str, str | None]) -> str:
    """Write filters of the questions as they stand in the page's address: `variant=B&metric=retrieval.ndcg%405`."""
    return urlencode({name: visible(value) for name, value in wanted.items() if value})
