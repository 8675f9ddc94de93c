"""Which weights names of Ollama's models stood for when its server was last asked, so that it may be off for a replay.

What is remembered of a model is known by the digest of its weights. Where the server does not answer, the last digest
that it told finds that again.
"""

from __future__ import annotations

import json
from pathlib import Path

from rag_lab._kit.home import home_at_work
from rag_lab._kit.whole_file import whole_file

_FILE = "ollama_digests.json"


def recalled(address: str, name: str) -> str:
    """Return the last known digest of a model of the server at `address`, or ''."""
    return _read().get(_key(address, name), "")


def remember(address: str, name: str, digest: str) -> None:
    """Keep the digest of a model, where it is not kept yet."""
    known, key = _read(), _key(address, name)
    if known.get(key) == digest:
        return
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as partial:
        partial.write_text(json.dumps(known | {key: digest}, indent=1, sort_keys=True), encoding="utf-8")


def _key(address: str, name: str) -> str:
    return f"{address} {name}"


def _path() -> Path:
    return home_at_work() / _FILE


def _read() -> dict[str, str]:
    try:
        found = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}
