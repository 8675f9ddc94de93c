"""Spans of OpenTelemetry for stages, calls and custom functions; nothing, and nearly free, where they are off.

On where the environment names an endpoint (OTEL_EXPORTER_OTLP_ENDPOINT, …_TRACES_ENDPOINT) or RAG_LAB_TRACING is 1, and
the extra `tracing` is installed. Kernels take up the sweep's trace by TRACEPARENT. Texts are kept only where
RAG_LAB_TRACING_TEXTS is 1, without secrets. Names are those of OpenTelemetry for generative AI (gen_ai.*).
"""

import atexit
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, overload

from rag_lab._kit.logs import work_now
from rag_lab.errors import ConfigError
from rag_lab.redaction import redact_sentence

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
