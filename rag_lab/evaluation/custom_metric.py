"""A custom metric: `(trace) -> float`, `(float, reason)`, or None where there is no value; or a whole `Metric`.

It is a function, or a frozen dataclass with `__call__`. Parameters named `judge` and `embedder` receive these models.
What it says of itself in its attributes is checked; all of them may be left out.
"""

import inspect
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, get_args

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab._kit.registry import Module, unwatched
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.evaluation import metric
from rag_lab.evaluation.judge_queue import JudgeReplies, RememberedJudge
from rag_lab.memory.results import batches
from rag_lab.records import Score, Trace

_NOT_OF_STAGES = {"question", "repeat", "stages", "texts"}
FIELDS = frozenset(each.name for each in fields(Trace)) - _NOT_OF_STAGES
_MODELS: Mapping[str, metric.Need] = {"judge": "judge", "embedder": "embeddings"}  # the parameter that asks for a model


def custom_info(module: Module) -> metric.MetricInfo:
    """Return what a metric says of itself.

    `name` in tables is by default that of the function or class, with its parameters; `needs` (`answer`, `evidence`
    ...) is nothing, and `fields`, which it reads and stages are run for, are all. `low`, `high`, `higher_is_better` and
    `is_cost` say what its values mean; `calls` counts those of the judge, for one score.
    """
    made = module.value
    written = str(getattr(made, "__name__", type(made).__name__))
    if is_dataclass(made):  # its parameters, as a configuration has them
        changed = [f"{f.name}={getattr(made, f.name)}" for f in fields(made) if getattr(made, f.name) != f.default]
        written = "?".join(filter(None, (type(made).__name__, "&".join(changed))))
    name = getattr(made, "name", None) or (module.name.rpartition(":")[2] if ":" in module.name else written)
    if not isinstance(name, str) or not name.strip() or set(name) & set(",<>\n"):
        raise ConfigError(f"A metric is called {name!r}; write it with def, or give it a `name` without , < or >.")
    bounds = {side: getattr(made, side, None) for side in ("low", "high")}
    for side, value in bounds.items():
        if value is not None and (not isinstance(value, int | float) or not math.isfinite(value)):
            raise ConfigError(f"The metric {name!r} has {side} = {value!r}; give a number, or leave it out.")
    low, high = (None if value is None else float(value) for value in bounds.values())
    if low is not None and high is not None and low >= high:
        raise ConfigError(f"The metric {name!r} has low = {low:g}, which is not below its high = {high:g}.")
    calls = getattr(made, "calls", None)
    if calls is not None and (not isinstance(calls, int) or calls < 0):
        raise ConfigError(f"The metric {name!r} has calls = {calls!r}; say how often one score asks the judge.")
    needs: Any = _names(made, "needs", get_args(metric.Need), name)
    return metric.MetricInfo(
        name,
        " ".join((inspect.getdoc(made) or "A metric of one's own.").partition("\n\n")[0].split()),
        needs | {_MODELS[parameter] for parameter in models_asked(made, name)},
        low,
        high,
        higher_is_better=bool(getattr(made, "higher_is_better", True)),
        is_cost=bool(getattr(made, "is_cost", False)),
        fields=_names(made, "fields", FIELDS, name) if hasattr(made, "fields") else FIELDS,
        calls=calls,
    )


def is_whole(made: Any) -> bool:
    """Tell whether something is a whole `Metric`, which scores many traces at once."""
    return callable(getattr(made, "score", None)) and callable(getattr(made, "identity", None))


def models_asked(made: Any, name: str) -> list[str]:
    """Return the parameters after the trace that stand for models, in order; others must have a default."""
    if is_whole(made) or not callable(made):
        return []
    try:
        parameters = list(inspect.signature(made).parameters.values())[1:]
    except ValueError:  # one that is not written in Python
        return []
    asked = [each.name for each in parameters if each.name in _MODELS]
    for each in parameters:
        has_default = each.default is not each.empty or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        if each.name not in _MODELS and not has_default:
            raise ConfigError(
                f"The metric {name!r} takes {each.name!r}; it is called with a trace, and with the models `judge` and "
                "`embedder` where it names them."
            )
    return asked


def _names(made: Any, attribute: str, allowed: Collection[str], name: str) -> frozenset[str]:
    value = getattr(made, attribute, ())
    names = (value,) if isinstance(value, str) else tuple(value)
    if strangers := [each for each in names if str(each).partition(".")[0] not in allowed]:
        what = f"{'need' if attribute == 'needs' else 'field of a trace'} of the metric {name!r}"
        raise ConfigError(unknown_name(what, str(strangers[0]), allowed))
    return frozenset(names)


class WatchedTrace(Trace):
    """A trace that has `stages_read` once its `stages` were, also by `failure` and `curable`: they differ by run."""

    __slots__ = ("stages_read",)

    def __getattribute__(self, name: str) -> Any:
        """Note where the records of the stages are read."""
        if name == "stages":
            object.__setattr__(self, "stages_read", True)
        return super().__getattribute__(name)


@dataclass(frozen=True)
class WholeMetric:
    """A custom whole `Metric`; a batch that fails as a whole is scored again trace by trace."""

    name: str
    needs: metric.Needs
    code: CustomCode

    def identity(self) -> Mapping[str, Any]:
        """Return its own, and the digest of its source."""
        return {"metric": self.name, "code": self.code.identity()}

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order."""
        return [score for batch in batches(traces, 32) for score in self._score(batch)]

    def _score(self, traces: list[Trace]) -> list[Score]:
        try:
            scores: list[Score] = self.code.call(traces, accept=lambda returned: self._accepted(returned, traces))
        except CustomCodeError as error:
            if len(traces) == 1:
                return [metric.Gap("failed", str(error)).to_score(traces[0], self.name)]
            return [score for trace in traces for score in self._score([trace])]
        return scores

    def _accepted(self, returned: Any, traces: Sequence[Trace]) -> list[Score]:
        scores = list(returned) if isinstance(returned, Sequence) else [returned]
        if strangers := [type(score).__name__ for score in scores if not isinstance(score, Score)]:
            raise CustomCodeError(f"the {self.code.what} returned {strangers[0]} where a Score is due")
        due = [(trace.question.question_id, trace.repeat, self.name) for trace in traces]
        if [(score.question_id, score.repeat, score.metric) for score in scores] != due:
            raise CustomCodeError(f"the {self.code.what} returned other scores than one for each trace, in order")
        for score in scores:
            is_number = isinstance(score.value, int | float) and math.isfinite(score.value)
            if is_number != (score.status == "scored") or (not is_number and score.value is not None):
                raise CustomCodeError(f"the {self.code.what} gave {score.value!r:.60} and called it {score.status}")
        return scores


def build_custom_metric(info: metric.MetricInfo, module: Module, tools: metric.Tools) -> metric.Metric:
    """Return what `module` holds as a metric whose faults cost single scores."""
    what = f"metric {info.name!r}"
    if is_whole(module.value):
        return WholeMetric(info.name, info.needs, CustomCode(module, what, "score"))
    models = tuple(models_asked(module.value, info.name))
    return CustomMetric(info.name, info.needs, info, CustomCode(module, what), tools, models)


@dataclass(frozen=True)
class CustomMetric:
    """Something that is called with each trace that has what it needs."""

    name: str
    needs: metric.Needs
    info: metric.MetricInfo
    code: CustomCode
    tools: metric.Tools
    models: tuple[str, ...]  # the parameters behind the trace
    batch_size: int = 8  # a kill loses as many at most
    of_run: set[tuple[str, int]] = field(default_factory=set, compare=False)  # of which records of stages were read

    def identity(self) -> Mapping[str, Any]:
        """Return its source and parameters, and the models that it asks."""
        asked = [getattr(self.tools, name) for name in self.models]
        models = [dict(model.identity()) for model in asked if model is not None]
        return {"metric": self.name, "code": self.code.identity(), "models": models}

    def reads(self, trace: Trace) -> Mapping[str, Any] | None:
        """Return the trace as the metric sees it; None where it is not called."""
        if metric.find_gap(trace, self.needs):
            return None
        if not self.models:  # it is quick
            return {"seen": sha256(metric.trace_bytes(self._seen(trace))).hexdigest()}
        seen: dict[str, Any] = metric.TRACE.dump_python(self._seen(trace), mode="json", exclude={"texts"})
        return seen

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order."""
        return [self._score(trace) for trace in traces]

    def _score(self, trace: Trace) -> Score:
        if gap := metric.find_gap(trace, self.needs):
            return gap.to_score(trace, self.name)
        judge = None
        if "judge" in self.needs and self.tools.judge is not None:
            judge = RememberedJudge(
                self.tools.judge, self.tools.replies or JudgeReplies(self.tools.judge), trace.repeat
            )
        known: dict[str, Any] = {"judge": judge, "embedder": None}
        if "embedder" in self.models:  # whose weights may be loaded now: they are known by its identity
            calls = ("identity", "embed_documents", "embed_queries")
            watched = {name: unwatched()(getattr(self.tools.embedder, name)) for name in calls}
            known["embedder"] = SimpleNamespace(**watched)
        models = [known[name] for name in self.models]
        started, seen = time.perf_counter(), self._seen(trace)
        try:
            found = self.code.call(seen, *models, accept=self._accepted)
        except CustomCodeError as error:
            after = f"{trace.failure.stage} failed: {trace.failure.reason}; then " if trace.failure else ""
            found = metric.Gap("failed", f"{after}{error}")
        if hasattr(seen, "stages_read"):
            self.of_run.add((trace.question.question_id, trace.repeat))
        own_s = time.perf_counter() - started
        is_gap, replies = isinstance(found, metric.Gap), list(judge.replies.values()) if judge else []
        return Score(
            trace.question.question_id,
            self.name,
            None if isinstance(found, metric.Gap) else found[0],
            found.status if isinstance(found, metric.Gap) else "scored",
            found.reason if isinstance(found, metric.Gap) else found[1],
            trace.repeat,
            judge=metric.model_name(judge.identity()) if judge else "",
            seconds=sum(reply.seconds for reply in replies) if judge else own_s,
            calls=len(replies),
            curable=is_gap and judge is not None and judge.is_troubled,
            truncated_tokens=sum(reply.truncated_tokens for reply in replies),
        )

    def _seen(self, trace: Trace) -> WatchedTrace:
        """Return the trace without what the metric does not say that it reads: what it says is what counts.

        One that asks models does not see the records of stages: its score is remembered by what it sees.
        """
        read = {field.partition(".")[0] for field in self.info.reads} | (set() if self.models else {"stages"})
        return WatchedTrace(trace.question, trace.repeat, **{name: getattr(trace, name) for name in read})

    def _accepted(self, returned: Any) -> metric.Gap | tuple[float, str]:
        if isinstance(returned, metric.Gap):
            return returned
        value, reason = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, "")
        if value is None:
            return metric.Gap("not_applicable", str(reason or f"the {self.code.what} has no value for it"))
        try:
            number = math.nan if isinstance(value, str | bytes) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        low, high = self.info.low, self.info.high
        if not math.isfinite(number):
            raise CustomCodeError(f"the {self.code.what} returned {value!r:.60}, which is no number")
        if (low is not None and number < low) or (high is not None and number > high):
            raise CustomCodeError(f"the {self.code.what} returned {number:g}, which is beyond its own low or high")
        return number, str(reason)
