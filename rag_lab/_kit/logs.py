"""Logs of all processes of a sweep in one file of JSON lines, redacted, with what each thread works at.

The command line names level and file in the environment, which kernels inherit. Each line is one write to a file that
is opened to append, so that lines of several processes do not mix.
"""

import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from rag_lab.errors import ConfigError
from rag_lab.redaction import hide_known, redact_sentence, visible_json

LEVELS = ("debug", "info", "warning", "error")
FILE_VARIABLE = "RAG_LAB_LOG_FILE"
LEVEL_VARIABLE = "RAG_LAB_LOG_LEVEL"
DEFAULT_LEVEL = "info"
MAX_QUESTIONS = 8  # of a batch that are named


@dataclass(frozen=True, slots=True)
class WorkContext:
    """Ids of the variant and of the questions at work, and the stage; '' and none where there are none."""

    variant: str = ""
    stage: str = ""
    questions: tuple[str, ...] = ()


_NOTHING = WorkContext()
# What this thread works at; those that work for a stage are started in a copy of its context.
work_now: ContextVar[WorkContext] = ContextVar("rag_lab_work", default=_NOTHING)


@contextmanager
def working(
    variant: str | None = None, stage: str | None = None, questions: Sequence[str] | None = None
) -> Iterator[None]:
    """Work at this in the block; None leaves what is around it."""
    around = work_now.get()
    ids = around.questions if questions is None else tuple(questions[:MAX_QUESTIONS])
    one = WorkContext(around.variant if variant is None else variant, around.stage if stage is None else stage, ids)
    token = work_now.set(one)
    try:
        yield
    finally:
        work_now.reset(token)


def begin_logs(level: str | None, file: Path | None) -> None:
    """Log from `level` on, in this process and in those that it starts: to `file`, or without one to stderr.

    Of libraries warnings are logged, at level `debug` everything. Where None, the environment decides; where it names
    neither, nothing changes.
    """
    if level is not None:
        os.environ[LEVEL_VARIABLE] = level
    if file is not None:
        os.environ[FILE_VARIABLE] = str(file.resolve())
    begin_inherited_logs()
    if os.environ.get(LEVEL_VARIABLE) and not os.environ.get(FILE_VARIABLE):
        _add(_Terminal(_level(), "%(levelname)s %(name)s: %(message)s"))


def begin_inherited_logs() -> None:
    """Log to the file that the environment names, if it does; again is no more than once."""
    if path := os.environ.get(FILE_VARIABLE):
        _add(JsonLines(Path(path)))
        _add(_Terminal(logging.WARNING, "%(message)s"))  # as Python does where nobody handles what is logged


class JsonLines(logging.Handler):
    """Appends a line of JSON a record: time, level, logger, message; variant, stage, question where there are any."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
        except OSError as error:
            raise ConfigError(f"Cannot log to {path}: {error.strerror}; give another file with --log-file.") from None

    def emit(self, record: logging.LogRecord) -> None:
        """Append the record, without secrets and with visible control characters."""
        try:
            work = work_now.get()
            entry: dict[str, Any] = {
                "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
                "level": record.levelname.lower(),
                "logger": record.name,
                "message": redact_sentence(record.getMessage()),
                "process": record.process,
                "variant": work.variant,
                "stage": work.stage,
                "question": work.questions[0] if len(work.questions) == 1 else list(work.questions),
            }
            if record.exc_info:
                entry["exception"] = redact_sentence(logging.Formatter().formatException(record.exc_info))
            kept = {name: value for name, value in entry.items() if value not in ("", [])}
            os.write(self._file, f"{visible_json(hide_known(json.dumps(kept, ensure_ascii=False)))}\n".encode())
        except Exception:  # a full disk must not end the work
            self.handleError(record)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
        super().close()


class _Terminal(logging.Handler):
    """Writes to whatever stderr is at that moment: a bar, a test or a kernel may have replaced it."""

    def __init__(self, level: int, form: str) -> None:
        super().__init__(level)
        self.setFormatter(logging.Formatter(form))

    def emit(self, record: logging.LogRecord) -> None:
        stream: TextIO = sys.stderr
        stream.write(redact_sentence(self.format(record)) + "\n")


def _add(handler: logging.Handler) -> None:
    """Put a handler in place of an earlier one of its kind."""
    root = logging.getLogger()
    for other in [one for one in root.handlers if type(one) is type(handler)]:
        root.removeHandler(other)
        other.close()
    root.addHandler(handler)
    level = _level()
    logging.getLogger("rag_lab").setLevel(level)
    root.setLevel(logging.DEBUG if level == logging.DEBUG else logging.WARNING)


def _level() -> int:
    name = os.environ.get(LEVEL_VARIABLE) or DEFAULT_LEVEL
    if name not in LEVELS:
        raise ConfigError(f"There is no log level {name!r}; give one of {', '.join(LEVELS)}.")
    return logging.getLevelNamesMapping()[name.upper()]
