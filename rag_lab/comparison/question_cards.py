"""Question by question: what every variant did. What several variants share is kept once, with their letters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rag_lab._kit.numbers import number
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.passage_table import Ranking, ranking
from rag_lab.records import Question, StageRecord, Trace
from rag_lab.stages.query.rewrite import REWRITE


@dataclass(frozen=True, slots=True)
class Shared:
    """Something several variants have in common. `who` are their letters, `everyone` is set where it is all of them."""

    who: tuple[str, ...]
    everyone: bool
    value: Any


@dataclass(frozen=True, slots=True)
class Understanding:
    """What the question became before it was searched."""

    query_class: str | None
    searched: str | None  # None where it is the user's own wording
    refused: str | None  # the model's rewrite that was not used


@dataclass(frozen=True, slots=True)
class Reply:
    """What the variant answered, or what its model wrote where that could not be read."""

    text: str
    abstained: bool
    citations: tuple[tuple[int, str, str], ...]  # number, place, quote
    rejected: tuple[str, ...]
    failure: str  # empty where there is an answer


@dataclass(frozen=True, slots=True)
class QuestionCard:
    """Everything that the question-by-question view shows of one question."""

    question: Question
    spread: float | None  # of the main metric between variants
    strip: tuple[tuple[str, float | None], ...]  # letter, main metric
    understood: tuple[Shared, ...]
    hypothetical: tuple[Shared, ...]
    replies: tuple[Shared, ...]
    scores: tuple[Shared, ...]  # value: one (text, status) a quality metric
    problems: tuple[Shared, ...]  # value: (stage, status, reason)
    score_problems: tuple[Shared, ...]  # value: (metric, reason)
    ranking: Ranking


def cards(comparison: Comparison, only: Iterable[str] | None = None) -> list[QuestionCard]:
    """Return a card for each question (or for `only` these ids), in the order in which they were asked."""
    wanted = None if only is None else set(only)
    runs = _by_question(comparison)
    table = comparison.questions.set_index("question_id")
    scores = _scores_by_question(comparison)
    excerpts = comparison.run.excerpts()
    return [
        _card(comparison, runs[name], table.loc[name], scores.get(name, {}), excerpts)
        for name in table.index
        if wanted is None or name in wanted
    ]


def share(items: Iterable[tuple[str, Any]], total: int) -> tuple[Shared, ...]:
    """Group (letter, value) pairs by value, in order of first appearance; `total` letters are everyone."""
    groups: dict[Any, list[str]] = {}
    for letter, value in items:
        groups.setdefault(value, []).append(letter)
    return tuple(Shared(tuple(who), len(who) == total and total > 1, value) for value, who in groups.items())


def place(source: str, page: int | None) -> str:
    """Write where a passage stands: `manual.pdf, p. 3`."""
    return source if page is None else f"{source}, p. {page}"


def refused_rewrite(trace: Trace) -> str | None:
    """Return the model's rewrite where the guard refused it.

    A variant that does not rewrite may have a proposal too, as the model that classifies a question also rewrites it.
    """
    refused = any(record.stage == REWRITE and record.status == "fallback" for record in trace.stages)
    return trace.proposed_query or None if refused else None


Runs = list[tuple[str, Trace]]  # (letter, trace)


def _by_question(comparison: Comparison) -> dict[str, Runs]:
    """Return the traces of each question; a letter carries its repeat where there are several."""
    runs: dict[str, Runs] = {}
    for plan in comparison.variants:
        for trace in comparison.traces[plan.variant_id]:
            letter = comparison.codes[plan.variant_id]
            letter += f"·{trace.repeat + 1}" if comparison.run.repeats > 1 else ""
            runs.setdefault(trace.question.question_id, []).append((letter, trace))
    return runs


def _scores_by_question(comparison: Comparison) -> dict[str, dict[tuple[str, int], dict[str, tuple[Any, str, str]]]]:
    """Return question -> (variant, repeat) -> metric -> (value, status, reason)."""
    result: dict[str, dict[tuple[str, int], dict[str, tuple[Any, str, str]]]] = {}
    columns = ["question_id", "variant_id", "repeat", "metric", "value", "status", "reason"]
    for name, variant, repeat, metric, value, status, reason in comparison.scores[columns].itertuples(index=False):
        one = result.setdefault(str(name), {}).setdefault((str(variant), int(repeat)), {})
        one[str(metric)] = (value, str(status), str(reason or ""))
    return result


def _card(
    comparison: Comparison, runs: Runs, row: Any, scores: dict[Any, Any], excerpts: dict[str, str]
) -> QuestionCard:
    total = len(runs)
    letters = comparison.codes
    lines = _score_lines(comparison, scores)
    stage_problems = [(letter, _problem(record)) for letter, trace in runs for record in trace.stages if _bad(record)]
    return QuestionCard(
        question=runs[0][1].question,
        spread=number(row["spread"]),
        strip=tuple((letters[p.variant_id], number(row[p.variant_id])) for p in comparison.variants),
        understood=share([(letter, _understanding(trace)) for letter, trace in runs], total),
        hypothetical=share([(letter, t.hypothetical) for letter, t in runs if t.hypothetical], total),
        replies=share([(letter, reply) for letter, trace in runs if (reply := _reply(trace))], total),
        scores=share([(letter, cells) for letter, cells, _ in lines], len(lines)),
        problems=share(stage_problems, total),
        score_problems=share([(letter, bad) for letter, _, problems in lines for bad in problems], len(lines)),
        ranking=ranking(runs, excerpts),
    )


def _score_lines(comparison: Comparison, scores: dict[Any, Any]) -> list[tuple[str, tuple[Any, ...], list[Any]]]:
    """Return (letter, cells, failed scores) for each variant and repeat."""
    lines = []
    order = list(comparison.codes)
    for (variant, repeat), found in sorted(scores.items(), key=lambda item: (order.index(item[0][0]), item[0][1])):
        letter = comparison.codes[variant] + (f"·{repeat + 1}" if comparison.run.repeats > 1 else "")
        values = [(metric, *found.get(metric, (None, "not_applicable", ""))) for metric in comparison.quality_metrics]
        cells = tuple((number(value), status) for _, value, status, _ in values)
        lines.append((letter, cells, [(metric, reason) for metric, _, status, reason in values if status == "failed"]))
    return lines


def _bad(record: StageRecord) -> bool:
    return record.status != "ok"


def _problem(record: StageRecord) -> tuple[str, str, str]:
    return record.stage, record.status, record.reason


def _understanding(trace: Trace) -> Understanding:
    searched = trace.search_query if trace.search_query != trace.question.text else None
    return Understanding(trace.query_class, searched, refused_rewrite(trace))


def _reply(trace: Trace) -> Reply | None:
    """Return the reply, or None where the variant was not to answer and nothing failed."""
    if trace.answer is None:
        failure = trace.failure
        if failure is None:
            return None
        return Reply(trace.raw_text or "", False, (), (), f"{failure.stage} failed: {failure.reason}")
    cited = tuple((c.number, place(c.source, c.page), c.quote) for c in trace.answer.citations)
    return Reply(trace.answer.text, trace.answer.abstained, cited, trace.answer.rejected_citations, "")
