"""Logs of all processes of a sweep in one file of JSON lines, and spans of OpenTelemetry for stages, calls and code.

The command line names the log's level and file in the environment, which kernels inherit. Each line is one redacted
write to a file that is opened to append, so that lines of several processes do not mix.

Traces are on where the environment names an endpoint (OTEL_EXPORTER_OTLP_ENDPOINT, …_TRACES_ENDPOINT) or
RAG_LAB_TRACING is 1, and the extra `tracing` is installed; where off they are nearly free. Kernels take up the sweep's
trace by TRACEPARENT. Texts are kept only where RAG_LAB_TRACING_TEXTS is 1, without secrets. Names are those of
OpenTelemetry for generative AI (gen_ai.*).
"""

import atexit
import functools
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, overload

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

    Of libraries warnings are logged, at level `debug` everything. Where None, the environment decides.
    """
    if level is not None:
        os.environ[LEVEL_VARIABLE] = level
    if file is not None:
        os.environ[FILE_VARIABLE] = str(file.resolve())
    begin_inherited_logs()
    if os.environ.get(LEVEL_VARIABLE) and not os.environ.get(FILE_VARIABLE):
        _add(_Terminal(_level()), "%(levelname)s %(name)s: %(message)s")


def begin_inherited_logs() -> None:
    """Log to the file that the environment names, if it does; again is no more than once."""
    if path := os.environ.get(FILE_VARIABLE):
        _add(JsonLines(Path(path)))
        _add(_Terminal(logging.WARNING), "%(message)s")  # as Python does where nobody handles what is logged


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
        os.close(self._file)
        super().close()


class _Terminal(logging.Handler):
    """Writes to whatever stderr is at that moment: a bar, a test or a kernel may have replaced it."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(redact_sentence(self.format(record)) + "\n")


def _add(handler: logging.Handler, form: str | None = None) -> None:
    """Put a handler in place of an earlier one of its kind."""
    handler.setFormatter(logging.Formatter(form))
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


SWITCH = "RAG_LAB_TRACING"
TEXTS = "RAG_LAB_TRACING_TEXTS"
PARENT = "TRACEPARENT"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_MISSING = "Tracing is on, but OpenTelemetry is missing: pip install 'rag_lab[tracing]', or unset what asks for it."

P = ParamSpec("P")
R = TypeVar("R")


class Span:
    """What a block records of itself while it is traced; nothing where `inner` is None."""

    def __init__(self, inner: Any = None) -> None:
        self._inner = inner
        self.is_recording = inner is not None  # else nothing that takes time need be found out

    def set(self, **attributes: Any) -> None:
        """Set attributes, `__` in their names standing for a dot; None is left out."""
        for name, value in attributes.items():
            if self._inner is not None and value is not None:
                self._inner.set_attribute(name.replace("__", "."), _clean(value))

    def set_text(self, name: str, text: str) -> None:
        """Set a text as an attribute, where texts are asked for."""
        if self._inner is not None and os.environ.get(TEXTS) == "1":
            self._inner.set_attribute(name, redact_sentence(text))


_OFF = Span()


def is_traced() -> bool:
    """Return whether spans are asked for."""
    switch = os.environ.get(SWITCH)
    return switch == "1" or (switch != "0" and any(os.environ.get(name) for name in _ENDPOINTS))


@contextmanager
def span(name: str, attributes: Mapping[str, Any] | None = None) -> Iterator[Span]:
    """Trace a block, with the variant, stage and questions at work; an exception that leaves it is its error."""
    if not is_traced():
        yield _OFF
        return
    work = work_now.get()
    at_work = {"rag_lab.variant": work.variant, "rag_lab.stage": work.stage, "rag_lab.questions": work.questions}
    known = {name: value for name, value in at_work.items() if value} | dict(attributes or {})
    tracer = _tracer(os.getpid())  # first: it says what to do where OpenTelemetry is missing
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context, parent = None, os.environ.get(PARENT)
    if parent and not trace.get_current_span().get_span_context().is_valid:  # the first span of a kernel
        context = TraceContextTextMapPropagator().extract({"traceparent": parent})
    with tracer.start_as_current_span(name, context=context, record_exception=False) as inner:
        found = Span(inner)
        found.set(**{key.replace(".", "__"): value for key, value in known.items()})
        yield found


@overload
def traced(function: Callable[P, R]) -> Callable[P, R]: ...
@overload
def traced(function: str) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def traced(function: Any) -> Any:
    """Trace each call of a function as a span of its name: `@traced`, or `@traced("name")`."""
    return span(function) if isinstance(function, str) else span(function.__qualname__)(function)


def trace_environment() -> dict[str, str]:
    """Return the environment by which a process that is started here continues the trace."""
    if not is_traced():
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return {PARENT: carrier["traceparent"]} if "traceparent" in carrier else {}


def set_attributes(**attributes: Any) -> None:
    """Set attributes of the span that is open around the caller; see `Span.set`."""
    if is_traced():
        from opentelemetry import trace

        Span(trace.get_current_span()).set(**attributes)


def flush() -> None:
    """Send what is left: a kernel may be ended without a word."""
    if is_traced():
        from opentelemetry import trace

        getattr(trace.get_tracer_provider(), "force_flush", lambda: None)()


@functools.cache
def _tracer(pid: int) -> Any:
    """Return the tracer of this process; one that was forked has none of its parent's threads, and makes another."""
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ConfigError(_MISSING) from None
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        provider = TracerProvider(resource=Resource.create({"service.name": "rag_lab"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
        atexit.register(provider.shutdown)
    return provider.get_tracer("rag_lab")


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return redact_sentence(value)
    return [_clean(one) for one in value] if isinstance(value, list | tuple) else value
