"""Run one stage over many traces, computing only what the memory does not hold."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, Literal

from pydantic_core import from_json, to_json, to_jsonable_python

from rag_lab._kit.custom_code import CustomCodeError
from rag_lab._kit.digest import digest
from rag_lab._kit.observability import span, working
from rag_lab._kit.wording import counted
from rag_lab.memory.results import Memory, Replayed, Work, retries_failed
from rag_lab.models.shared import spec_of
from rag_lab.records import MachineUse, StageRecord, Trace
from rag_lab.stages.stage import Off, Outcome, Stage, field_type

_LOGGER = logging.getLogger(__name__)

_PLACES = {one.name: place for place, one in enumerate(fields(Trace))}
_VALUES = attrgetter(*_PLACES)
_RECORDED = {one.name for one in fields(Outcome)} & {one.name for one in fields(StageRecord)}

Origin = Literal["remembered", "computed", "cheap"]  # cheap: computed each time, since it is quicker than to look up
Progress = Callable[[str, int, int], None]  # stage, traces done, traces to do


def with_readers(stages: Sequence[Stage], read: Iterable[str]) -> list[Stage]:
    """Return, in order, the stages that set a field of `read`, or one that a later stage returned here reads."""
    wanted = set(read)
    found: list[Stage] = []
    for stage in reversed(stages):
        if isinstance(stage, Off) or any({path, path.partition(".")[0]} & wanted for path in stage.writes):
            wanted.update(stage.reads)
            found.append(stage)
    return found[::-1]


def run_stage(
    stage: Stage,
    traces: Sequence[Trace],
    memory: Memory | None = None,
    progress: Progress | None = None,
    replayed: Replayed | None = None,
    *,
    refuses: bool = False,
) -> list[Trace]:
    """Return `traces` with the stage's results and its record, in order; traces that have failed pass through.

    `progress` is called with how many are done, of how many. One that has a method `saw(stage, outcomes, origin)` is
    shown the results, too, each once, but none of a stage that is off. Where it `refuses`, a trace fails of which a
    model was sent more than it reads. Results are saved after each batch of `stage.batch_size`, so that a kill loses
    one batch at most. What the memories below the stage count in `replayed` is added to its seconds.
    """
    if isinstance(stage, Off) and traces:  # most are, and none does anything
        if progress:
            n = sum(trace.failure is None for trace in traces)
            progress(stage.name, n, n)
        nothing = stage.outcome(traces[0])
        record = record_of(stage, nothing, remembered=False)
        return [trace if trace.failure else applied(trace, nothing, record) for trace in traces]
    remembering = memory if stage.costly else None
    identity = digest(stage.identity()) if remembering else ""
    keys = [  # where nothing is remembered, which costs nothing, the place is key enough
        None if trace.failure else stage_key(stage, identity, trace) if identity else str(place)
        for place, trace in enumerate(traces)
    ]
    wanted = {key: trace for key, trace in zip(keys, traces, strict=True) if key is not None}
    show: Callable[[str, Collection[Outcome], Origin], None] | None = getattr(progress, "saw", None)
    n_done, shown = 0, set[str]()

    def tell(new: int, waits: str) -> None:
        """Tell that so many more traces are done, and for whom the stage waits."""
        nonlocal n_done
        n_done += new
        if progress:
            progress(stage.name + waits, n_done, len(wanted))

    def saw(found: Mapping[str, Outcome], origin: Origin) -> None:
        """Show results that were not shown before; what another process has computed is remembered."""
        new = [one for key, one in found.items() if key not in shown]
        shown.update(found)
        if show and new:
            show(stage.name, new, origin)

    new_origin: Origin = "computed" if remembering else "cheap"
    work = _work(stage, wanted, replayed or Replayed(), lambda found: saw(found, new_origin))
    remembered = work.recall(remembering, wanted)
    failed = [key for key, one in remembered.items() if one.status == "failed"] if retries_failed() else []
    known = {key: one for key, one in remembered.items() if key not in failed}
    with working(stage=stage.name), span(f"stage {stage.name}") as traced_span:
        traced_span.set(rag_lab__traces=len(wanted), rag_lab__remembered=len(known))
        saw(known, "remembered")
        _LOGGER.info("%s begins: %d of %d questions are remembered", stage.name, len(known), len(wanted))
        tell(len(known), "")
        outcomes = remembered | work.again(remembering, failed)
        outcomes |= work.do(remembering, [key for key in wanted if key not in outcomes], tell)
        saw(outcomes, "remembered")
    judged = dict(outcomes)
    for key, one in outcomes.items() if refuses else ():
        if one.truncated_tokens and one.status != "failed":  # a model did not read all that it was sent
            why = one.reason or f"{counted(one.truncated_tokens, 'token')} were not read"
            judged[key] = replace(one, status="failed", reason=f"refused, as on_truncation says: {why}")
    return [
        trace if key is None else applied(trace, judged[key], record_of(stage, judged[key], remembered=key in known))
        for key, trace in zip(keys, traces, strict=True)
    ]


def stage_key(stage: Stage, identity: str, trace: Trace, without: Collection[str] = ()) -> str:
    """Return the digest of all that can change the stage's result, but for fields `without` values yet."""
    reads = {}
    for path in stage.reads:
        if path not in without:
            name, _, inner = path.partition(".")  # a search may have dots in its name
            value = getattr(trace, name)
            if inner:
                value = value.get(inner, ()) if isinstance(value, Mapping) else getattr(value, inner)
            reads[path] = to_jsonable_python(value)
    return digest({"stage": stage.name, "identity": identity, "repeat": trace.repeat, "reads": reads})


def _work(
    stage: Stage, wanted: Mapping[str, Trace], replayed: Replayed, computed: Callable[[Mapping[str, Outcome]], None]
) -> Work[Outcome]:
    def compute(keys: list[str]) -> dict[str, Outcome]:
        started, replayed_before_s = time.perf_counter(), replayed.seconds
        batch = [wanted[key] for key in keys]
        with working(questions=[trace.question.question_id for trace in batch]):
            outcomes = _run(stage, batch)
        for trace, outcome in zip(batch, outcomes, strict=True):
            if outcome.status != "ok":
                with working(questions=[trace.question.question_id]):
                    _LOGGER.info("%s %s: %s", stage.name, outcome.status, outcome.reason)
        earlier_s = (replayed.seconds - replayed_before_s) / len(keys)
        share_s = (time.perf_counter() - started) / len(keys) + earlier_s
        timed = [o if o.seconds is not None else replace(o, seconds=share_s, replayed_s=earlier_s) for o in outcomes]
        found = dict(zip(keys, timed, strict=True))
        computed(found)
        return found

    return Work(
        stage.name,
        compute,
        lambda outcome: to_json(outcome).decode() if outcome.lasting else None,
        decode_outcome,
        stage.batch_size,
    )


def _run(stage: Stage, traces: Sequence[Trace]) -> list[Outcome]:
    """Return the stage's results; where custom code gives a batch nothing, each trace is tried alone."""
    try:
        return stage.run(traces)
    except CustomCodeError as error:
        if len(traces) == 1:
            return [Outcome(status="failed", reason=str(error), lasting=False)]
    return [outcome for trace in traces for outcome in _run(stage, [trace])]


def record_of(stage: Stage, outcome: Outcome, *, remembered: bool) -> StageRecord:
    """Return what a trace keeps of an outcome beside its updates."""
    same: dict[str, Any] = {name: getattr(outcome, name) for name in _RECORDED}
    same |= {"seconds": outcome.seconds or 0.0, "curable": not outcome.lasting}
    return StageRecord(stage.name, remembered=remembered, model=spec_of(getattr(stage, "model", None)), **same)


def applied(trace: Trace, outcome: Outcome, record: StageRecord) -> Trace:
    """Return `trace` with updates and record; without `replace`, of which the many stages of many questions feel it."""
    values = list(_VALUES(trace))
    for path, value in outcome.updates.items():
        name, _, search = path.partition(".")
        place = _PLACES[name]
        values[place] = {**values[place], search: value} if search else value
    values[_PLACES["stages"]] = (*trace.stages, record)
    return Trace(*values)


def decode_outcome(text: str) -> Outcome:
    """Return the outcome that the memory holds as `text`."""
    data = from_json(text)
    updates = {name: field_type(name).validate_python(value) for name, value in data.pop("updates").items()}
    machine = data.pop("machine", None)
    return Outcome(updates=updates, machine=MachineUse(**machine) if machine else None, **data)
