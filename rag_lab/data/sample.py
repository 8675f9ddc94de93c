"""Samples of questions, stratified or by lot, that grow without changing what they held.

Seats are dealt by the quota method of Balinski and Young (1975), "The Quota Method of Apportionment": like the method
of the largest remainder it keeps every stratum within one question of its proportional share, but unlike that method it
never takes a question back when the sample grows.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from rag_lab.records import Question

_Stratum = tuple[str, bool]


def stratified(questions: Sequence[Question], n: int, seed: int) -> list[str]:
    """Return the ids of `n` questions (all where there are fewer), spread over class and answerability in proportion.

    The sample of n is the beginning of the sample of n + 1 with the same seed, and does not depend on the order of
    `questions`. Ids must be unique.
    """
    strata: dict[_Stratum, list[str]] = defaultdict(list)
    for question in questions:
        strata[question.query_class or "", question.answerable].append(question.question_id)
    waiting = {key: sorted(strata[key], key=lambda name: _lot(name, seed), reverse=True) for key in sorted(strata)}
    sizes = {key: len(ids) for key, ids in waiting.items()}
    seats = dict.fromkeys(waiting, 0)
    sample = []
    for house in range(1, min(n, len(questions)) + 1):
        chosen = _next(sizes, seats, house)
        seats[chosen] += 1
        sample.append(waiting[chosen].pop())
    return sample


def shuffled(questions: Sequence[Question], seed: int) -> list[str]:
    """Return all ids in an order by lot, which depends on each id and the seed alone."""
    return sorted((question.question_id for question in questions), key=lambda name: _lot(name, seed))


def _next(sizes: dict[_Stratum, int], seats: dict[_Stratum, int], house: int) -> _Stratum:
    """Return the stratum that gets the next seat: the neediest of those below their upper quota."""
    total = sum(sizes.values())
    below = [key for key in sizes if seats[key] * total < house * sizes[key]]
    return max(below, key=lambda key: Fraction(sizes[key], seats[key] + 1))


def _lot(question_id: str, seed: int) -> tuple[bytes, str]:
    """Return a question's place in the draw, which depends on its id and the seed alone."""
    return hashlib.sha256(f"{seed}:{question_id}".encode()).digest(), question_id
