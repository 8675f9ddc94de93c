"""The list of questions: a line for each, with what it is filtered by, and what every variant did behind it.

That is in the page itself where it is small enough, and otherwise in a page a question beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from rag_lab._kit.numbers import number, plain
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.evidence.state_names import state_names
from rag_lab.comparison.questions.question_values import QuestionValues, question_values
from rag_lab.records import Question
from rag_lab.report.page.anchors import anchors

FOLDER = "questions"  # of the pages, beside the report
_MOST_BARS = 16


@dataclass(frozen=True, slots=True)
class Line:
    """One question. `body` is empty where it has a page of its own."""

    question: Question
    anchor: str
    strip: Markup
    body: Markup


def question_list(comparison: Comparison, bodies: Mapping[str, str]) -> dict[str, Any]:
    """Return what the list's template shows.

    Args:
        comparison: the run.
        bodies: HTML of what stands behind each question; empty where each has a page of its own.
    """
    asked, names = comparison.asked, anchors(comparison.asked)
    found = question_values(comparison)
    strips = _strips(comparison, found)
    tags = list(dict.fromkeys(tag for question in asked.values() for tag in question.tags))
    classes = list(dict.fromkeys(question.query_class or "" for question in asked.values()))
    return {
        "lines": [
            Line(question, names[one], strip, Markup(bodies.get(one, "")))  # noqa: S704 -- escaped where it was made
            for (one, question), strip in zip(asked.items(), strips, strict=True)
        ],
        "pages": not bodies and bool(asked),
        "folder": FOLDER,
        "wide": len(comparison.codes) > _MOST_BARS,
        "directed_metrics": [(metric, comparison.directed(metric)) for metric in found.values],
        "classes": [(name or "none", name or "no class") for name in classes],
        "tags": [(tag, tag) for tag in tags],
        "evidence_states": [(state, name.name) for state, name in state_names(comparison.evidence).items()],
        "values": _json(comparison, found, tags),
    }


def _strips(comparison: Comparison, found: QuestionValues) -> list[Markup]:
    main = comparison.main_metric
    rows = found.values[main] if main else [[None] * len(comparison.codes)] * len(found.questions)
    codes = list(comparison.codes.values())
    return [_strip(codes, [number(value) for value in row]) for row in rows]


def _strip(codes: list[str], values: list[float | None]) -> Markup:
    """Return the bars of a question's line: one a variant, its height the main metric, hatched where not scored."""
    if len(values) > _MOST_BARS:
        there = [value for value in values if value is not None]
        return Markup.escape(f"{plain(min(there))} to {plain(max(there))}" if there else "not scored")
    bars = "".join('<i class="n"></i>' if v is None else f'<i style="--v:{max(0, min(1, v)):.2f}"></i>' for v in values)
    told = zip(codes, values, strict=True)
    text = ", ".join(f"{code} {'not scored' if value is None else format(value, '.2f')}" for code, value in told)
    frame = Markup('<span class="strip" role="img" title="{0}" aria-label="{0}">{1}</span>')
    return frame.format(text, Markup(bars))  # noqa: S704 -- numbers only


def _json(comparison: Comparison, found: QuestionValues, tags: list[str]) -> Markup:
    """Return the values for the script: numbers, letters and hexadecimal digits, nothing that came from outside."""
    number_of = {tag: place for place, tag in enumerate(tags)}
    data = {
        "variants": list(comparison.codes.values()),
        "values": list(found.values.values()),
        "higher": [_is_higher_better(comparison, metric) for metric in found.values],
        "marks": found.marks,
        "classes": [question.query_class or "none" for question in comparison.asked.values()],
        "tags": [[number_of[tag] for tag in question.tags] for question in comparison.asked.values()],
        "evidence": _evidence(comparison),
    }
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))  # noqa: S704 -- see above


def _evidence(comparison: Comparison) -> list[list[int]]:
    """Return a number a variant for each question: a bit for each state in which a piece of its evidence ended."""
    found = comparison.evidence
    bits = {state: 1 << place for place, state in enumerate(found.states)}
    return [
        [sum(bits[state] for state in found.by_question.get((name, variant), ())) for variant in comparison.codes]
        for name in ([] if found.is_empty else comparison.asked)
    ]


def _is_higher_better(comparison: Comparison, metric: str) -> bool:
    scale = comparison.scales.get(metric)
    return scale is None or scale.higher_is_better
