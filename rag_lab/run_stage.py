"""Run one stage over many traces, computing only what the memory does not hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json, to_jsonable_python

from rag_lab.digest import digest
from rag_lab.memory import Memory, batches
from rag_lab.purpose import doing
from rag_lab.records import StageRecord, Trace
from rag_lab.replayed import counting_replayed, replayed_s
from rag_lab.stage import Outcome, Stage
from rag_lab.waiting import Waiting

Progress = Callable[[str, int, int], None]  # stage, traces done, traces to do


def run_stage(
    stage: Stage, traces: Sequence[Trace], memory: Memory | None = None, progress: Progress | None = None
) -> list[Trace]:
    """Return `traces` with the stage's results and its record, in order; traces that have failed pass through.

    Results are saved after each batch of `stage.batch_size`, so that a kill loses one batch at most.
    """
    remembering = memory if stage.costly else None
    keys = _keys(stage, traces, remembering is not None)
    wanted = {key: trace for key, trace in zip(keys, traces, strict=True) if key is not None}
    if remembering is None:
        outcomes = _compute_all(stage, wanted, progress)
        known: dict[str, Outcome] = {}
    else:
        known = {key: decode_outcome(text) for key, text in remembering.recall(wanted).items()}
        outcomes = known | _compute_missing(stage, wanted, known, remembering, progress)
    return [
        trace if key is None else apply_outcome(stage, trace, outcomes[key], remembered=key in known)
        for key, trace in zip(keys, traces, strict=True)
    ]


def _keys(stage: Stage, traces: Sequence[Trace], remembering: bool) -> list[str | None]:
    """Return a key for each trace that has not failed: its place where nothing is remembered, which costs nothing."""
    if not remembering:
        return [None if trace.failure else str(place) for place, trace in enumerate(traces)]
    identity = digest(stage.identity())
    return [None if trace.failure else stage_key(stage, identity, trace) for trace in traces]


def stage_key(stage: Stage, identity: str, trace: Trace, without: Collection[str] = ()) -> str:
    """Return the digest of all that can change the stage's result for this trace.

    Args:
        stage: of which the fields that it reads count, but for those named in `without`.
        identity: the digest of the stage's own.
        trace: of one question and repeat.
        without: fields whose values are not known yet.
    """
    return digest(
        {
            "stage": stage.name,
            "identity": identity,
            "repeat": trace.repeat,
            "reads": {path: to_jsonable_python(_read(trace, path)) for path in stage.reads if path not in without},
        }
    )


def _compute_all(stage: Stage, wanted: Mapping[str, Trace], progress: Progress | None) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for keys in batches(wanted, stage.batch_size):
        outcomes |= _compute(stage, {key: wanted[key] for key in keys})
        if progress:
            progress(stage.name, len(outcomes), len(wanted))
    return outcomes


def _compute_missing(
    stage: Stage, wanted: Mapping[str, Trace], known: Mapping[str, Outcome], memory: Memory, progress: Progress | None
) -> dict[str, Outcome]:
    """Compute what is not known, batch by batch, sharing the work with other processes that want the same."""
    fresh: dict[str, Outcome] = {}
    waiting = Waiting(memory, stage.name)
    while missing := [key for key in wanted if key not in known and key not in fresh]:
        mine, waits = memory.claim(missing, stage.batch_size), ""
        if mine:
            fresh |= _compute_claimed(stage, {key: wanted[key] for key in mine}, memory)
        else:
            found = memory.recall(missing)
            fresh |= {key: decode_outcome(text) for key, text in found.items()}
            if not found:
                waits = waiting.wait(missing)
        if progress:
            progress(stage.name + waits, len(known) + len(fresh), len(wanted))
    return fresh


def _compute_claimed(stage: Stage, claimed: Mapping[str, Trace], memory: Memory) -> dict[str, Outcome]:
    with memory.keeping(claimed):
        outcomes = _compute(stage, claimed)
        memory.store(stage.name, {key: _encode(outcome) for key, outcome in outcomes.items() if outcome.lasting})
    return outcomes


def _compute(stage: Stage, wanted: Mapping[str, Trace]) -> dict[str, Outcome]:
    started = time.perf_counter()
    with doing(stage.name), counting_replayed():
        outcomes = stage.run(list(wanted.values()))
        share_s, replayed = (time.perf_counter() - started) / len(wanted), replayed_s() / len(wanted)
    timed = [
        o if o.seconds is not None else replace(o, seconds=share_s + replayed, replayed_s=replayed) for o in outcomes
    ]
    return dict(zip(wanted, timed, strict=True))


def apply_outcome(stage: Stage, trace: Trace, outcome: Outcome, *, remembered: bool) -> Trace:
    """Return `trace` with the outcome's updates and its record."""
    record = StageRecord(
        stage=stage.name,
        status=outcome.status,
        reason=outcome.reason,
        seconds=outcome.seconds or 0.0,
        replayed_s=outcome.replayed_s,
        tokens_in=outcome.tokens_in,
        tokens_out=outcome.tokens_out,
        cost_usd=outcome.cost_usd,
        remembered=remembered,
        curable=not outcome.lasting,
    )
    return replace(_updated(trace, outcome.updates), stages=(*trace.stages, record))


def _updated(trace: Trace, updates: Mapping[str, Any]) -> Trace:
    changes: dict[str, Any] = {}
    for path, value in updates.items():
        name, _, search = path.partition(".")
        changes[name] = {**changes.get(name, getattr(trace, name)), search: value} if search else value
    return replace(trace, **changes)


def _read(trace: Trace, path: str) -> Any:
    value: Any = trace
    for name in path.split("."):
        value = value.get(name, ()) if isinstance(value, Mapping) else getattr(value, name)
    return value


def _encode(outcome: Outcome) -> str:
    return to_json(outcome).decode()


def decode_outcome(text: str) -> Outcome:
    """Return the outcome that the memory holds as `text`."""
    data = from_json(text)
    updates = {name: _field(name).validate_python(value) for name, value in data.pop("updates").items()}
    return Outcome(updates=updates, **data)


@cache
def _field(path: str) -> TypeAdapter[Any]:
    name, _, search = path.partition(".")
    hint = get_type_hints(Trace)[name]
    return TypeAdapter(get_args(hint)[1] if search else hint)
