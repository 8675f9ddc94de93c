"""Metrics by name: `room.measure`, with a cut-off where it takes one (`retrieval.ndcg@10`), or one of your own.

And what is known of them before a run: which questions they do not apply to, what they read, calls of the judge.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rag_lab._kit.registry import BuiltIn, Kind, Module, from_object, installed
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.evaluation.custom_metric import build_custom_metric, custom_info
from rag_lab.evaluation.judge_queue import JudgeReplies
from rag_lab.evaluation.metric import IN_TOKENS, NOT_ASKED, Family, Gap, Metric, MetricInfo, Needs, Tools, question_gap
from rag_lab.evaluation.ragas_metrics import SPECS
from rag_lab.models.shared import booked, chat_model
from rag_lab.records import Question

MAX_K, MAX_TOKENS = 1000, 1_000_000
# Measures of this provider need what our labels do not hold: aspects of a question, to which a hit is relevant or not.
AnyMetric = str | Callable[..., Any] | Metric  # a name, or an object: a function, an instance, a whole `Metric`

# What is built in are families, each a `Family`; their metrics are named `family.measure`.
METRICS = Kind(
    "metric",
    "rag_lab.metrics",
    {
        "retrieval": BuiltIn("rag_lab.evaluation.retrieval:FAMILY", "what the ranking holds of the evidence"),
        "ragas": BuiltIn("rag_lab.evaluation.ragas_metrics:FAMILY", "RAGAs' measures of answers and contexts"),
        "citations": BuiltIn("rag_lab.evaluation.trace_measures:CITATIONS", "what the answer cites"),
        "answer": BuiltIn("rag_lab.evaluation.trace_measures:ANSWERS", "the answer against references"),
        "access": BuiltIn("rag_lab.evaluation.trace_measures:ACCESS", "what was shown to who may not see it"),
        "cost": BuiltIn("rag_lab.evaluation.trace_measures:COSTS", "seconds, tokens and dollars"),
    },
    call="__call__(self, trace)",
)
# Every name of ir_measures has a capital letter or a Greek one before parameters and cut-off, and none of ours has.
_IR_MEASURE = r"(\w*[A-Zα-ω]\w*(?:\(.*\))?(?:@.+)?)"
BY = " by "  # before the judge of a metric that has one of its own


@dataclass(frozen=True, slots=True)
class ParsedName:
    """A metric: its name in tables, and its built-in family or its custom module."""

    name: str
    info: MetricInfo
    source: Family | Module
    argument: str = ""  # the cut-off, the tokens, the stage or ir_measures' name
    judge: str = ""  # that it names, as `ragas.faithfulness by ollama:qwen3:8b`; else the run's judge is asked

    @property
    def is_custom(self) -> bool:
        """Whether somebody brought it."""
        return isinstance(self.source, Module)


def describe() -> list[MetricInfo]:
    """Return every metric that is built in, by family; users fill in `@k`, `<n>`, `<stage>` and `<measure>`."""
    return [info for family in _families() for info in family.infos]


def metric_names() -> list[str]:
    """Return the names of `describe`, sorted."""
    return sorted(info.name for info in describe())


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in a list separated by commas; commas within parentheses belong to a name.

    Example:
        >>> split_names("retrieval.mrr@10, retrieval.RBP(p=0.8, rel=1)")
        ('retrieval.mrr@10', 'retrieval.RBP(p=0.8, rel=1)')
    """
    return tuple(name.strip() for name in re.split(r",(?![^()]*\))", text) if name.strip())


def parse_name(metric: AnyMetric) -> ParsedName:
    """Return what a metric is; a custom one is imported for it."""
    head = metric.partition("?")[0] if isinstance(metric, str) else ""
    if (
        isinstance(metric, str)
        and ":" not in head.partition("(")[0].partition(BY)[0]
        and head not in installed(METRICS.group)
    ):
        return _parse_built_in(metric)
    module = METRICS.find(metric) if isinstance(metric, str) else from_object(metric, METRICS)
    info = custom_info(module)
    return ParsedName(info.name, info, module)


def find_info(name: str) -> MetricInfo | None:
    """Return what the built-in metric called `name` is; None for any other, as a run folder may hold."""
    try:
        return _parse_built_in(name).info
    except ConfigError:
        return None


def cutoff(name: str) -> int | None:
    """Return how many ranks the metric called `name` looks at; None where it has no cut-off, or nobody knows it."""
    info = find_info(name)
    if info is None or not info.name.endswith(("@k", "<measure>")):
        return None
    argument = _parse_built_in(name).argument
    if info.name.endswith("@k"):
        return int(argument)
    import ir_measures

    k = ir_measures.parse_measure(argument).params.get("cutoff")
    return None if k is None else int(k)


def text_budget(name: str) -> int | None:
    """Return how many tokens of a ranking the metric called `name` reads; None where it counts none."""
    info = find_info(name)
    return int(_parse_built_in(name).argument) if info is not None and info.name.endswith(IN_TOKENS) else None


def build_metric(metric: AnyMetric, tools: Tools) -> Metric:
    """Return a metric; no model is loaded yet."""
    parsed = parse_name(metric)
    if parsed.judge:
        judge = booked(chat_model(parsed.judge), parsed.name)
        tools = replace(
            tools, judge=judge, replies=JudgeReplies(judge, tools.replies.memory if tools.replies else None)
        )
    if isinstance(parsed.source, Family):
        return parsed.source.build(parsed.name, parsed.info, parsed.argument, tools)
    return build_custom_metric(parsed.info, parsed.source, tools)


def problems(metrics: Iterable[AnyMetric], has_judge: bool, has_embedder: bool = True, language: str = "") -> list[str]:
    """Return everything that is wrong with a list of metrics, one sentence each; empty where all is well."""
    found: list[str] = []
    names: Counter[str] = Counter()
    for metric in metrics:
        try:
            parsed = parse_name(metric)
        except ConfigError as error:
            names[str(metric)] += 1
            found += [str(error)] if names[str(metric)] == 1 else []
            continue
        names[parsed.name] += 1
        info, name = parsed.info, parsed.name
        if names[name] > 1:
            continue
        if parsed.is_custom and find_info(name) is not None:
            found.append(f"A metric of your own is called {name!r}, as a built-in one is: give it another `name`.")
        if language and not info.translatable:
            found.append(
                f"RAGAs cannot put the prompts of {name!r} into {language}: leave out the metric or the language."
            )
        if "judge" in info.needs and not has_judge and not parsed.judge:
            found.append(f"Metric {name!r} needs a judge and has none: set `judge` to provider:name, or leave it out.")
        if "embeddings" in info.needs and not has_embedder:
            found.append(f"Metric {name!r} needs an embedding model and none was given: pass one, or leave it out.")
    return [f"Metric {name!r} is named {n} times; name it once." for name, n in names.items() if n > 1] + found


@cache
def _families() -> tuple[Family, ...]:
    return tuple(METRICS.find(name).value for name in METRICS.built_in)


def with_judges(
    metrics: Sequence[AnyMetric], judge: str | Sequence[str] | None
) -> tuple[tuple[AnyMetric, ...], str | None]:
    """Return the metrics and the judge of a run; of several judges the others score each judged metric once more."""
    judges = [judge] if isinstance(judge, str) else list(judge or ())
    judged = [one for one in metrics if isinstance(one, str) and (i := find_info(one)) and "judge" in i.needs]
    more = (f"{one}{BY}{other}" for other in judges[1:] for one in judged if BY not in one)
    return tuple(dict.fromkeys([*metrics, *more])), next(iter(judges), None)


@cache
def _parse_built_in(name: str) -> ParsedName:
    stem, by, judge = name.partition(BY)
    if by:
        parsed = _parse_built_in(stem)
        if "judge" not in parsed.info.needs or not judge.strip():
            raise ConfigError(f"Metric {name!r} names a judge: give one, provider:name, to a metric that asks one.")
        return replace(parsed, name=name, judge=judge.strip())
    for family in _families():
        for info in family.infos:
            pattern = re.escape(info.name).replace("@k", r"@(\d+)").replace("<stage>", r"([a-z0-9_]+)")
            pattern = pattern.replace(re.escape(IN_TOKENS), r"@(\d+)tokens").replace("<measure>", _IR_MEASURE)
            match = re.fullmatch(pattern, name)
            if match is None:
                continue
            argument = (match.groups() or ("",))[0]
            if info.name.endswith("<measure>"):
                _check_ir_measure(name, argument)
            elif info.name.endswith("@k") and not 1 <= int(argument) <= MAX_K:
                raise ConfigError(f"Metric {name!r} has an impossible cut-off: allowed is a number from 1 to {MAX_K}.")
            elif info.name.endswith(IN_TOKENS) and not 1 <= int(argument) <= MAX_TOKENS:
                allowed = f"allowed is 1 to {MAX_TOKENS:,}"
                raise ConfigError(f"Metric {name!r} reads an impossible number of tokens: {allowed}.")
            return ParsedName(name, info, family, argument)
    stem, at, cutoff = name.partition("@")
    names = metric_names()
    reason = f"{unknown_name('metric', name, [*names, *installed(METRICS.group)])} One of your own is module:function."
    if cutoff.endswith("tokens"):
        known = [one.removesuffix(IN_TOKENS) for one in names if one.endswith(IN_TOKENS)]
        reason = f"Metric {name!r} cannot be cut by tokens: allowed are {', '.join(known)}, as {known[0]}@800tokens."
    elif f"{stem}@k" in names:
        given = f"{cutoff!r} is none" if at else "none is given"
        reason = f"Metric {name!r} needs a cut-off from 1 to {MAX_K} and {given}: write {stem}@10, for instance."
    elif at and stem in names:
        reason = f"Metric {name!r} takes no cut-off: write {stem}."
    raise ConfigError(reason)


def default_metrics(questions: Iterable[Question]) -> tuple[str, ...]:
    """Return the metric that the labels of `questions` allow; what each costs, where they have none."""
    asked = list(questions)
    if any(question.evidence for question in asked):
        return ("retrieval.ndcg@10",)
    return ("answer.token_f1",) if any(question.answers for question in asked) else ("cost.seconds", "cost.tokens")


def _check_ir_measure(name: str, text: str) -> None:
    """Refuse the measure `text` of the metric called `name` where no package computes it on our labels."""
    import ir_measures

    known = ir_measures.measures.registry
    head = text.partition("(")[0].partition("@")[0]
    if head not in known:
        raise ConfigError(unknown_name("measure of ir_measures", head, sorted(known)))
    try:
        measure = ir_measures.parse_measure(text)
        measure.validate_params()
    except (ValueError, TypeError, KeyError, AssertionError) as error:
        # A name with a value for each parameter that must be given.
        required = {key: info for key, info in known[head].SUPPORTED_PARAMS.items() if info.required}
        at = required.pop(known[head].AT_PARAM, None)
        inside = f"({', '.join(f'{key}=1' for key in required)})" if required else ""
        example = f"retrieval.{known[head].NAME}{inside}" + (
            "" if at is None else "@0.5" if at.dtype is float else "@10"
        )
        raise ConfigError(f"Metric {name!r}: {error}; write {example}, for instance.") from None
    if not 1 <= measure.params.get("cutoff", 1) <= MAX_K:
        raise ConfigError(f"Metric {name!r} has an impossible cut-off: allowed is a number from 1 to {MAX_K}.")
    able = [provider for provider in ir_measures.DefaultPipeline.providers if provider.supports(measure)]
    if any(provider.NAME == "pyndeval" for provider in able):
        raise ConfigError(f"Metric {name!r} needs labels of a question's aspects, which datasets here do not have.")
    if any(provider.is_available() for provider in able):
        return
    installs = [text for provider in able if (text := provider.install_instructions())]
    if not installs:  # the missing parameters without which no package computes the measure
        forms = [form for p in ir_measures.DefaultPipeline.providers for form in p.SUPPORTED_MEASURES]
        params = [item for form in forms if form.NAME == measure.NAME for item in form.params.items()]
        required_params = {name for name, allowed in params if getattr(allowed, "required", False)}
        wanted = sorted(required_params - measure.params.keys())
        advice = f"give {' and '.join(wanted)} too" if wanted else "leave some out"
        raise ConfigError(f"Metric {name!r}: nothing computes this measure with these parameters; {advice}.")
    raise ConfigError(f"Metric {name!r} needs a package that is not installed: {' or '.join(installs)}.")


@dataclass(frozen=True, slots=True)
class ExpectedGap:
    """A metric that will be `not_applicable` to `n` of `n_questions`, all for one reason."""

    metric: str
    n: int
    n_questions: int
    reason: str

    def __str__(self) -> str:
        return f"Metric {self.metric} is not applicable to {self.n} of {self.n_questions} questions: {self.reason}."


def expected_gaps(
    metrics: Iterable[AnyMetric], questions: Sequence[Question], answered: Collection[str] | None = None
) -> list[ExpectedGap]:
    """Return what will be `not_applicable` by the questions alone: by metric, in order, commonest reason first."""
    found = []
    for parsed in map(parse_name, metrics):
        needs = parsed.info.needs
        reasons = Counter(gap.reason for question in questions if (gap := _gap(question, needs, answered)))
        found += [ExpectedGap(parsed.name, n, len(questions), reason) for reason, n in reasons.most_common()]
    return found


def reads_of(metrics: Iterable[AnyMetric], answered: Collection[str]) -> Callable[[Question], frozenset[str]]:
    """Return a function from a question to the fields of its trace that `metrics` read, of those that apply to it."""
    infos = [parse_name(metric).info for metric in metrics]
    return lambda question: frozenset[str]().union(
        *(info.reads for info in infos if _gap(question, info.needs, answered) is None)
    )


def applies(metric: AnyMetric | ParsedName, question: Question, is_answered: bool) -> bool:
    """Tell whether a question's labels, and whether it is answered, let `metric` measure anything on it."""
    needs = (metric if isinstance(metric, ParsedName) else parse_name(metric)).info.needs
    return _gap(question, needs, {question.question_id} if is_answered else ()) is None


def _gap(question: Question, needs: Needs, answered: Collection[str] | None) -> Gap | None:
    is_answered = answered is None or question.question_id in answered
    return question_gap(question, needs) or (NOT_ASKED if "answer" in needs and not is_answered else None)


@dataclass(frozen=True, slots=True)
class JudgeCalls:
    """Calls for a score, where every reply is usable: `fixed`, and `a_passage` more for each passage of the context."""

    fixed: int
    a_passage: int
    prompt_tokens: int  # what RAGAs' instructions and examples add to the texts that are judged in the longest call


CALLS = {f"ragas.{name}": JudgeCalls(*spec.calls) for name, spec in SPECS.items() if spec.calls}
