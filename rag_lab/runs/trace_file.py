"""traces.jsonl: one trace a line, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from rag_lab._kit.whole_file import whole_file
from rag_lab.errors import DamagedFile
from rag_lab.records import Trace
from rag_lab.redaction import hide_known_jsons

_TRACE: TypeAdapter[Trace] = TypeAdapter(Trace)
_HAD_A_FIELD = ("dense", "bm25", "tfidf", "hyde")  # searches, in traces that were written before `Trace.hits`


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write `traces` to `path`, replacing it at the end: the file's presence means that it is whole.

    Control characters stay as they are, escaped where JSON wants it; secrets that this process knows are hidden.
    """
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        lines = (_TRACE.dump_json(trace, exclude={"texts"}).decode() for trace in traces)
        file.writelines(f"{line}\n" for line in hide_known_jsons(lines))


def read_traces(path: Path) -> list[Trace]:
    """Read the traces that `write_traces` wrote, in order.

    Raises:
        DamagedFile: naming the first line that is no trace.
    """
    with path.open("rb") as file:
        return [_read(path, number, line) for number, line in enumerate(file, 1)]


def _read(path: Path, number: int, line: bytes) -> Trace:
    try:
        return _TRACE.validate_python(_with_hits(from_json(line)))
    except (ValueError, TypeError, AttributeError):  # the latter two: JSON, and no object
        raise DamagedFile(path, f"line {number} is no trace") from None


def _with_hits(data: dict[str, Any]) -> dict[str, Any]:
    earlier = {name: data.pop(f"{name}_hits") for name in _HAD_A_FIELD if f"{name}_hits" in data}
    return {"hits": earlier, **data}
