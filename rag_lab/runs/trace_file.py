"""traces.jsonl: one trace a line, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rag_lab._kit.whole_file import whole_file
from rag_lab.errors import DamagedFile
from rag_lab.records import Trace
from rag_lab.redaction import hide_known_jsons
from rag_lab.runs.trace_lines import Questions, TraceReader, TraceWriter


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write `traces` to `path`, replacing it at the end: the file's presence means that it is whole.

    Control characters stay as they are, escaped where JSON wants it; secrets that this process knows are hidden.
    """
    writer = TraceWriter()
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in hide_known_jsons(map(writer.line, traces)))


def read_traces(path: Path, known: Questions | None = None) -> list[Trace]:
    """Read the traces that `write_traces` wrote, in order; questions that another file has, too, are held once.

    Args:
        path: of the file.
        known: the questions of files that were read before; those of this one are added.

    Raises:
        DamagedFile: naming the first line that is no trace.
    """
    reader = TraceReader(known)
    with path.open("rb") as file:
        return [_read(reader, path, number, line) for number, line in enumerate(file, 1)]


def _read(reader: TraceReader, path: Path, number: int, line: bytes) -> Trace:
    try:
        return reader.trace(line)
    except (ValueError, TypeError, AttributeError, LookupError):  # all but the first: JSON, and no trace
        raise DamagedFile(path, f"line {number} is no trace") from None
