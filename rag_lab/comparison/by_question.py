"""Question by question: what every variant did and scored, and what a variant won and lost against the baseline."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import pandas as pd

from rag_lab._kit.wording import number
from rag_lab.comparison.passages import Ranking, ranking
from rag_lab.comparison.tables.bounds import WhyFailed
from rag_lab.comparison.tables.changes import TOP, answer_words
from rag_lab.comparison.tables.costs import SHOWN_S
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.models.protocols import split_thinking
from rag_lab.records import QUERY_CLASSES, Question, Trace
from rag_lab.stages.rewrite_and_hyde import HYDE_PROMPTS, REWRITE, Hyde, hyde_messages
from rag_lab.stages.stage import OFF, written
from rag_lab.stages.steps import stage_name
from rag_lab.stages.understand import NOT_ASKED, LlmUnderstanding, understanding_messages
from rag_lab.statistics.summaries import SUMMARY_COLUMNS, per_question, summary

Key = tuple[str, int]  # variant, repeat
Runs = dict[Key, tuple[str, Trace]]  # with the letter
Scores = dict[Key, dict[str, tuple[Any, str, str]]]  # metric: value, status, reason
_COLUMNS = ["question_id", "variant_id", "repeat", "metric", "value", "status", "reason"]
_UNKNOWN = WhyFailed()
_PLACE = attrgetter("source", "page")
RebuiltPrompt = Callable[[Trace], str]  # empty where the model was not asked


@dataclass(frozen=True, slots=True)
class Understanding:
    """What the question became before it was searched."""

    query_class: str | None
    searched: str | None  # None where it is the user's own wording
    refused: str | None  # the model's rewrite that was not used


@dataclass(frozen=True, slots=True)
class Line:
    """What one variant scored and what it took, in one repeat."""

    letter: str
    scores: tuple[tuple[float | None, str], ...]  # value, status; one a quality metric
    seconds: float
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class StageTime:
    """What one stage took when it was computed: `share` of the seconds of all stages, 0 to 1."""

    title: str
    seconds: float
    share: float
    tokens: int  # read and written
    is_remembered: bool


@dataclass(frozen=True, slots=True)
class Shared:
    """Something several variants have in common. `who` are their letters, `everyone` is set where it is all of them."""

    who: tuple[str, ...]
    everyone: bool
    value: Any


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply, and how those who share it came to it: `exchanges` share an `Exchange`."""

    reply: Shared
    exchanges: tuple[Shared, ...]


@dataclass(frozen=True, slots=True)
class QuestionCard:
    """Everything that the question-by-question view shows of one question."""

    question: Question
    understood: tuple[Shared, ...]
    hypothetical: tuple[Shared, ...]
    sent: dict[str, tuple[Shared, ...]]  # stage: what it sent its model, as far as it can be told
    replies: tuple[Answered, ...]
    lines: tuple[Line, ...]  # a variant and repeat each
    problems: tuple[Shared, ...]  # value: (stage, status, reason)
    score_notes: tuple[Shared, ...]  # value: (metric, status, reason): why a score failed, or what the judge said of it
    ranking: Ranking
    timelines: tuple[Shared, ...] = ()  # value: a `StageTime` a stage that took time or tokens, in their order
    causes: tuple[Shared, ...] = ()  # value: why an answer is wrong
    paths: tuple[Shared, ...] = ()  # value: the visits of an agent


def cards(tables: RunTables, why: WhyFailed = _UNKNOWN, only: Iterable[str] | None = None) -> Iterator[QuestionCard]:
    """Give a card for each question (or for `only` these ids), in the order in which they were asked."""
    wanted = None if only is None else set(only)
    runs: dict[str, Runs] = {}
    for plan in tables.variants:
        for trace in tables.traces[plan.variant_id]:
            name = trace.question.question_id
            if wanted is None or name in wanted:
                letter = tables.codes[plan.variant_id]
                letter += f"·{trace.repeat + 1}" if tables.run.repeats > 1 else ""
                runs.setdefault(name, {})[plan.variant_id, trace.repeat] = (letter, trace)
    rows = tables.quality_scores
    if wanted is not None:
        rows = rows[rows["question_id"].isin(wanted)]
    scores: dict[str, Scores] = {}
    columns = (rows[column].tolist() for column in _COLUMNS)
    for question, variant, repeat, metric, value, status, reason in zip(*columns, strict=True):
        of_question = scores.setdefault(question, {}).setdefault((variant, repeat), {})
        of_question[metric] = (value, status, reason or "")
    unread, prompts_of = tables.run.passages(), rebuilt_prompts(tables.manifest)
    for name, asked in runs.items():
        causes = [(letter, why.causes.get((variant, name))) for (variant, _), (letter, _) in asked.items()]
        card = _card(tables.quality_metrics, asked, scores.get(name, {}), unread, prompts_of)
        yield replace(card, causes=share([one for one in causes if one[1]], len(asked)))


def timeline(trace: Trace) -> tuple[StageTime, ...]:
    """Return what took at least a thousandth of all seconds, in order; nothing where all took less than is shown."""
    total = sum(record.seconds for record in trace.stages)
    if total < SHOWN_S and not any(record.tokens_in for record in trace.stages):
        return ()
    total = total or 1.0
    return tuple(
        StageTime(
            stage_name(one.stage), one.seconds, one.seconds / total, one.tokens_in + one.tokens_out, one.remembered
        )
        for one in trace.stages
        if one.seconds >= total / 1000 or one.tokens_in
    )


def refused_rewrite(trace: Trace) -> str | None:
    """Return the model's rewrite where the guard refused it.

    A variant that does not rewrite may have a proposal too, as the model that classifies a question also rewrites it.
    """
    refused = any(record.stage == REWRITE and record.status == "fallback" for record in trace.stages)
    return trace.proposed_query or None if refused else None


def _card(
    metrics: Sequence[str],
    asked: Runs,
    scores: Scores,
    unread: Mapping[str, str],
    prompts_of: Mapping[str, RebuiltPrompt],
) -> QuestionCard:
    runs, total = list(asked.values()), len(asked)
    understood, problems, lines, notes = [], [], [], []
    for key, (letter, trace) in asked.items():
        searched = trace.search_query if trace.search_query != trace.question.text else None
        understood.append((letter, Understanding(trace.query_class, searched, refused_rewrite(trace))))
        failed = [record for record in trace.stages if record.status != "ok"]
        problems += [(letter, (record.stage, record.status, record.reason)) for record in failed]
        values = [scores.get(key, {}).get(metric, (None, "not_applicable", "")) for metric in metrics]
        lines.append(
            Line(
                letter,
                tuple((number(value), status) for value, status, _ in values),
                sum(record.seconds for record in trace.stages),
                sum(record.tokens_in for record in trace.stages),
                sum(record.tokens_out for record in trace.stages),
            )
        )
    for metric in metrics:
        for key, (letter, _) in asked.items():
            _, status, reason = scores.get(key, {}).get(metric, (None, "", ""))
            if reason and status != "not_applicable":
                notes.append((letter, (metric, status, reason)))
    return QuestionCard(
        question=runs[0][1].question,
        understood=share(understood, total),
        hypothetical=share([(letter, "\n\n".join(t.hypotheticals)) for letter, t in runs if t.hypotheticals], total),
        sent={
            stage: share([(letter, text) for letter, trace in runs if (text := prompt(trace))], total)
            for stage, prompt in prompts_of.items()
        },
        replies=answered(runs),
        lines=tuple(lines),
        problems=share(problems, total),
        score_notes=share(notes, total),
        ranking=ranking(runs, unread),
        timelines=share([(letter, timeline(trace)) for letter, trace in runs], total),
        paths=share([(letter, trace.visits) for letter, trace in runs if trace.visits], total),
    )


def share(items: Iterable[tuple[str, Any]], total: int) -> tuple[Shared, ...]:
    """Group (letter, value) pairs by value, in order of first appearance; `total` letters are everyone."""
    groups: dict[Any, list[str]] = {}
    for letter, value in items:
        groups.setdefault(value, []).append(letter)
    return tuple(Shared(tuple(who), len(who) == total and total > 1, value) for value, who in groups.items())


@dataclass(frozen=True, slots=True)
class Reply:
    """What the variant answered, or what its model wrote where that could not be read."""

    text: str
    abstained: bool
    citations: tuple[tuple[int, str, str, str], ...]  # number, place, quote, address
    rejected: tuple[str, ...]
    failure: str  # empty where there is an answer


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a model was sent, message by message, and what came back; each empty where there was none."""

    prompt: str
    raw: str  # without the thinking
    thinking: str
    thinking_tokens: int = 0


def answered(runs: Sequence[tuple[str, Trace]]) -> tuple[Answered, ...]:
    """Return what was answered, for (letter, trace) pairs of one question; equal replies stand together."""
    replies = share([(letter, reply) for letter, trace in runs if (reply := _reply(trace))], len(runs))
    exchanges = {}
    for letter, trace in runs:
        thinking, raw = thinking_of(trace), trace.raw_text or ""
        tokens = sum(record.thinking_tokens for record in trace.stages if record.stage == "generate")
        written_out = split_thinking(raw)[0] if thinking else raw
        exchanges[letter] = Exchange(trace.prompt or "", written_out, thinking, tokens)
    return tuple(Answered(one, share([(who, exchanges[who]) for who in one.who], len(one.who))) for one in replies)


def place(source: str, page: int | None) -> str:
    """Write where a passage stands: `manual.pdf, p. 3`."""
    return source if page is None else f"{source}, p. {page}"


def _reply(trace: Trace) -> Reply | None:
    """Return the reply, or None where the variant was not to answer and nothing failed."""
    if trace.answer is None:
        failure = trace.failure
        if failure is None:
            return None
        written, _ = split_thinking(trace.raw_text or "")
        return Reply(written, False, (), (), f"{failure.stage} failed: {failure.reason}")
    cited = tuple((c.number, place(c.source, c.page), c.quote, c.url) for c in trace.answer.citations)
    return Reply(trace.answer.text, trace.answer.abstained, cited, trace.answer.rejected_citations, "")


def thinking_of(trace: Trace) -> str:
    """Return what the reader thought, also where no answer came of it."""
    return trace.answer.thinking if trace.answer else split_thinking(trace.raw_text or "")[1]


def rebuilt_prompts(manifest: Mapping[str, Any]) -> dict[str, RebuiltPrompt]:
    """Return for each stage of the query how its prompt is made again.

    A stage is left out where that could be another text than the model got: nothing says what ran (a run that is not
    done), the run's prompts had another version, or a variant had a custom stage.
    """
    found: dict[str, RebuiltPrompt] = {}
    for stage in (LlmUnderstanding, Hyde):
        identities = manifest.get("models", {}).get(stage.name, [])
        if identities and all(identity.get("prompts") == stage.PROMPTS for identity in identities):
            found[stage.name] = partial(_rebuilt_prompt, stage.name)
    return found


def _rebuilt_prompt(stage: str, trace: Trace) -> str:
    if not any(record.stage == stage and record.reason not in (OFF, NOT_ASKED) for record in trace.stages):
        return ""
    if stage == LlmUnderstanding.name:
        return written(understanding_messages(trace.question.text, trace.remembered))
    route, query = trace.hyde_route, trace.search_query or trace.question.text
    return written(hyde_messages(route, query)) if route in HYDE_PROMPTS else ""


FAILED = "x"  # in the place of a value: the score failed
_DIGITS = 9  # of a value: enough for the order of any two that are not equal but for rounding
FALLBACK, STAGE_FAILED, ANSWERED, ABSTAINED = 1, 2, 4, 8
Value = float | str | None  # None: not scored and not to be scored


def scores_by_question(
    scores: pd.DataFrame, metric: str, asked: Mapping[str, Question], variants: Iterable[str]
) -> pd.DataFrame:
    """Return a row a question: its id, class and text, and for each variant its mean over repeats, NaN without any."""
    means = per_question(scores, [metric]).pivot(index="question_id", columns="variant_id", values="mean")
    table = means.reindex(index=list(asked), columns=list(variants)).astype(float).reset_index(names="question_id")
    table.insert(1, "query_class", [question.query_class for question in asked.values()])
    table.insert(2, "question", [question.text for question in asked.values()])
    return table


def paired_questions(tables: RunTables, variant_id: str, metric: str | None = None) -> pd.DataFrame:
    """Return a row for each question that has a score under both, the one on which the variant lost most first.

    Columns: question_id, query_class, question, the baseline's score and the variant's by their ids, and `gain`, their
    difference with the sign with which more is better. Questions of equal gain stand in the order in which they were
    asked.

    Raises:
        ConfigError: if the run has no such variant or metric, or nothing to pair it with.
    """
    metric, baseline = metric or tables.main_metric or "", tables.run.baseline
    others = [plan.variant_id for plan in tables.variants if plan.variant_id != baseline]
    if variant_id not in others:
        raise ConfigError(unknown_name("variant beside the baseline", variant_id, others))
    if metric not in set(tables.scores["metric"]):
        raise ConfigError(unknown_name("metric of the run", metric, dict.fromkeys(tables.scores["metric"])))
    both = [baseline, variant_id]
    table = scores_by_question(tables.scores, metric, tables.asked, both).dropna(subset=both)
    gains = table.assign(gain=tables.sign(metric) * (table[variant_id] - table[baseline]))
    return gains.sort_values("gain", kind="stable", ignore_index=True)


@dataclass(frozen=True, slots=True)
class QuestionValues:
    """Questions and variants (baseline first) stand in the order of the tables.

    values: metric -> one row a question, with a value a variant: the mean over repeats, `FAILED` or None.
    marks: one text a question, a hexadecimal digit a variant: the sum of what befell it (`FALLBACK`, ...).
    answers, read: a row a question, with a number a variant, the same for the same answer and for the same pages that
        the reader saw; -1 where there is none. Of repeats the first counts.
    """

    questions: tuple[str, ...]
    values: dict[str, list[list[Value]]]
    marks: list[str]
    answers: list[list[int]]
    read: list[list[int]]


def question_values(tables: RunTables) -> QuestionValues:
    """Return the values of every metric that is compared or is a cost."""
    questions, variants = tuple(tables.asked), list(tables.codes)
    row = {name: place for place, name in enumerate(questions)}
    column = {name: place for place, name in enumerate(variants)}
    values: dict[str, list[list[Value]]] = {
        metric: [[None] * len(variants) for _ in questions]
        for metric in (*tables.quality_metrics, *tables.cost_metrics)
    }
    table = per_question(tables.scores)
    names = ("metric", "question_id", "variant_id", "mean", "scored", "failed")
    columns = (table[name].tolist() for name in names)
    for metric, question, variant, mean, scored, failed in zip(*columns, strict=True):
        if (scored or failed) and question in row and metric in values:
            values[metric][row[question]][column[variant]] = float(f"{mean:.{_DIGITS}g}") if scored else FAILED
    marks = [[0] * len(variants) for _ in questions]
    answers: list[list[Any]] = [[None] * len(variants) for _ in questions]
    read: list[list[Any]] = [[None] * len(variants) for _ in questions]
    for place, variant in enumerate(variants):
        final_k = config.rerank.final_k if (config := tables.pipelines.get(variant)) else TOP
        for trace in tables.traces[variant]:
            if trace.repeat == 0:
                at = row[trace.question.question_id]
                answers[at][place] = None if trace.answer is None else answer_words(trace.answer.text)
                seen = trace.passages or trace.ranked[:final_k]
                read[at][place] = frozenset(map(_PLACE, seen)) if trace.failure is None else None
            statuses = {record.status for record in trace.stages}
            mark = FALLBACK * ("fallback" in statuses) + STAGE_FAILED * ("failed" in statuses)
            if trace.answer is not None:
                mark += ABSTAINED if trace.answer.abstained else ANSWERED
            marks[row[trace.question.question_id]][place] |= mark
    texts = ["".join(f"{mark:x}" for mark in one) for one in marks]
    # For each the place of the first that is the same; -1 for None.
    same = ([[-1 if one is None else found.index(one) for one in found] for found in each] for each in (answers, read))
    return QuestionValues(questions, values, texts, *same)


def summary_of_groups(tables: RunTables, column: str) -> pd.DataFrame:
    """Return `summary` of each query class as the dataset labels it, or of each `tag`; a question counts in each tag.

    Classes stand in their usual order, tags in that of their first appearance.
    """
    scores = tables.scores
    groups_of = {name: one.tags if column == "tag" else (one.query_class,) for name, one in tables.asked.items()}
    tags = dict.fromkeys(group for groups in groups_of.values() for group in groups)
    parts = []
    for group in tags if column == "tag" else QUERY_CLASSES:
        rows = scores[scores["question_id"].isin([name for name, groups in groups_of.items() if group in groups])]
        if not rows.empty:
            parts.append(summary(rows, clusters=tables.clusters, scales=tables.scales).assign(**{column: group}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*SUMMARY_COLUMNS, column])
