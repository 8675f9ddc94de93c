"""Pairs of answers without names: what a person is asked who says which is better, in an order and on sides drawn."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from rag_lab._kit.digest import digest
from rag_lab.comparison.marked_text import excerpt
from rag_lab.comparison.run_tables import RunTables
from rag_lab.records import Question, Trace


@dataclass(frozen=True, slots=True)
class Side:
    """What one variant shows of a question: an answer with its citations, or the passages that it found."""

    text: str  # of the answer; "" where passages are shown
    places: tuple[tuple[str, int | None, str], ...]  # source, page, and quote or opening, of citations or passages
    is_answer: bool
    missing: str = ""  # why there is nothing to show


@dataclass(frozen=True, slots=True)
class Trial:
    """One question with two sides; `left` and `right` are the variants, which nobody sees before the end."""

    question: Question
    left: str
    right: str
    sides: tuple[Side, Side]

    @property
    def shown(self) -> str:
        """The digest of what both sides show, whichever is on the left."""
        return digest(sorted(digest(asdict(side)) for side in self.sides))


@dataclass(frozen=True, slots=True)
class Trials:
    """The trials of a pair of variants, in the order in which they are asked; `alike` questions show the same twice."""

    pair: tuple[str, str]
    trials: tuple[Trial, ...]
    alike: int


def blind_trials(tables: RunTables, pair: tuple[str, str], seed: int = 0) -> Trials:
    """Return the trials of a pair: what both show of every question, where it is not the same.

    Answers are compared where either variant was to answer, else the passages of the ranking. Order and sides depend on
    the seed and the ids alone, so that the same run asks in the same way again. Of several repeats the first is shown.
    """
    unread = tables.run.passages()
    first, second = ({t.question.question_id: t for t in tables.traces[v] if t.repeat == 0} for v in pair)
    found, alike = [], 0
    for name in sorted(first.keys() & second.keys()):
        traces = first[name], second[name]
        answers = any(trace.answer is not None for trace in traces)
        sides = [_answer(trace) if answers else _passages(trace, unread) for trace in traces]
        if sides[0] == sides[1]:
            alike += 1
            continue
        order = [0, 1]
        random.Random(f"{seed} side {name}").shuffle(order)  # noqa: S311 -- no secret, only an order
        left, right = order
        found.append(Trial(traces[0].question, pair[left], pair[right], (sides[left], sides[right])))
    random.Random(f"{seed} order").shuffle(found)  # noqa: S311
    return Trials(pair, tuple(found), alike)


def _answer(trace: Trace) -> Side:
    if trace.answer is None:
        failure = trace.failure
        return Side("", (), True, f"{failure.stage} failed" if failure else "no answer was asked for")
    cited = tuple((one.source, one.page, one.quote) for one in trace.answer.citations)
    return Side(trace.answer.text.strip(), cited, True)


def _passages(trace: Trace, unread: Mapping[str, str]) -> Side:
    texts = {**unread, **{passage.parent_id: passage.text for passage in trace.passages}}
    hits: Sequence[tuple[str, int | None, str]] = [
        (hit.source, hit.page, excerpt(texts.get(hit.parent_id, ""))) for hit in trace.ranked
    ]
    return Side("", tuple(hits), False, "" if hits else "nothing was found")
