"""A file that is there whole or not at all: written beside its place and renamed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a path that replaces `path` at the end of the block; where the block fails, `path` stays as it was."""
    partial = path.with_name(f"{path.name}.partial-{uuid.uuid4().hex}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
