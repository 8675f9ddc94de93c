"""Stores whose vectors lie on a server: where, under which name, and what is said when it does not answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from rag_lab.errors import RagLabError, StoreError
from rag_lab.redaction import one_line
from rag_lab.stores.vector.rows import Rows

_FILE = "server.json"


@dataclass(frozen=True)
class Server:
    """A collection on a server. Its name is the digest of what it holds, so that equal stores share it."""

    url: str
    collection: str

    @classmethod
    def write(cls, path: Path, url: str, rows: Rows) -> Self:
        """Note in the folder `path` that `rows` lie at `url`, and return where."""
        server = cls(url, f"rag_lab_{_digest(rows)[:40]}")
        (path / _FILE).write_text(json.dumps(asdict(server)), encoding="utf-8")
        return server

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return what `write` noted, or None where the vectors lie in the folder itself."""
        if not (path / _FILE).exists():
            return None
        return cls(**json.loads((path / _FILE).read_text(encoding="utf-8")))

    @property
    def host(self) -> str:
        """The host's name."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port, that of the scheme where the URL names none."""
        return urlsplit(self.url).port or (443 if self.tls else 80)

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return urlsplit(self.url).scheme == "https"


@contextmanager
def answering(server: Server | None) -> Iterator[None]:
    """Turn whatever a server's client raises inside into one sentence; without a server, change nothing."""
    try:
        yield
    except RagLabError:
        raise
    except Exception as error:  # clients pass on what their transport raises: time-outs, refusals, protocol errors
        if server is None:
            raise
        reason = one_line(str(error)) or type(error).__name__
        raise StoreError(
            f"The vector store at {server.url} failed: {reason}; is it running, and is store.url right?"
        ) from error


def _digest(rows: Rows) -> str:
    content = hashlib.sha256()
    content.update(json.dumps([rows.ids, rows.labels]).encode())
    content.update(rows.label_numbers.tobytes())
    content.update(rows.vectors.data.cast("B"))
    return content.hexdigest()
