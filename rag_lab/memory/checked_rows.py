"""Stored results carry a checksum: one that was damaged on disk is dropped, counted and computed again.

Tables have the columns `key`, `value` and `sum`. What is damaged is deleted where it is met, so that each is counted
once, by whichever process met it; each process says at its end how many that were.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
from collections.abc import Sequence
from typing import TypeVar

from rag_lab._kit.process import in_kernel
from rag_lab._kit.wording import counted
from rag_lab.memory.open_store import Database

_LOGGER = logging.getLogger(__name__)
_KEYS_AT_ONCE = 500  # below SQLite's limit of variables

Key = TypeVar("Key", str, bytes)


class Dropped:
    """How many damaged results this process knows of."""

    n = 0


def checksum(key: str | bytes, value: bytes) -> bytes:
    """Return the eight bytes that `key` and `value` are stored with."""
    name = key.encode() if isinstance(key, str) else key
    return hashlib.blake2b(len(name).to_bytes(4, "big") + name + value, digest_size=8).digest()


def recall(database: Database, table: str, keys: Sequence[Key]) -> dict[Key, bytes]:
    """Return the values of those of `keys` that `table` holds unharmed; what is damaged is deleted from it."""
    found: dict[Key, bytes] = {}
    damaged: list[tuple[Key, bytes]] = []
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys[start : start + _KEYS_AT_ONCE]
        # Read as bytes: text that is no longer UTF-8 would be an error of the whole query.
        columns = f"key, {database.as_bytes('value')}, {database.as_bytes('sum')}"
        query = f"SELECT {columns} FROM {table} WHERE key IN ({','.join('?' * len(some))})"  # noqa: S608 - our names
        for key, value, kept in database.execute(query, some):
            content = value.encode() if isinstance(value, str) else value or b""
            if kept == checksum(key, content):
                found[key] = content
            else:
                damaged.append((key, kept))
    if damaged:
        _drop(database, table, damaged)
    return found


def tell_dropped(n: int) -> None:
    """Say at the end of this process, or at once below a notebook's cell, that `n` more results were damaged."""
    first = Dropped.n == 0
    Dropped.n += n
    if n and in_kernel():
        _LOGGER.warning(_sentence(n))
    elif n and first:
        atexit.register(lambda: _LOGGER.warning(_sentence(Dropped.n)))


def _drop(database: Database, table: str, damaged: Sequence[tuple[str | bytes, bytes]]) -> None:
    statement = f"DELETE FROM {table} WHERE key = ? AND {database.as_bytes('sum')} = ?"  # noqa: S608 - our names
    with database:
        tell_dropped(sum(database.execute(statement, row).rowcount for row in damaged))


def _sentence(n: int) -> str:
    return f"{counted(n, 'stored result')} {'was' if n == 1 else 'were'} damaged and had to be computed again."
