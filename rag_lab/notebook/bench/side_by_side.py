"""One question under several settings: what differs between them, and what that moved. Knows no HTML.

The first column is what the others are compared with.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import groupby
from typing import Any

from rag_lab._kit.wording import counted
from rag_lab.comparison.questions.passages import holds_evidence
from rag_lab.config import PipelineConfig
from rag_lab.records import Hit, Question, StageRecord, Trace

_WORD = re.compile(r"\s*\S+\s*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; `marked` is what is to be seen in it."""

    text: str
    marked: bool = False


def compared(before: str, after: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return both texts in pieces, of which the words are marked that the other text does not have in that order."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    before_words, after_words = ([word.strip() for word in words] for words in (old, new))
    gone, fresh = [True] * len(old), [True] * len(new)
    for start, other, size in SequenceMatcher(None, before_words, after_words, autojunk=False).get_matching_blocks():
        gone[start : start + size] = [False] * size
        fresh[other : other + size] = [False] * size
    return _pieces(old, gone), _pieces(new, fresh)


def _pieces(words: list[str], marked: list[bool]) -> tuple[Piece, ...]:
    pieces = []
    for is_marked, group in groupby(zip(words, marked, strict=True), key=lambda pair: pair[1]):
        text = "".join(word for word, _ in group)
        end = len(text.rstrip()) if is_marked else len(text)  # the last white space is never marked
        pieces += [Piece(part, part_is) for part, part_is in ((text[:end], is_marked), (text[end:], False)) if part]
    return tuple(pieces)


@dataclass(frozen=True)
class Column:
    """One setting and what it made of the question; `unfinished` is the step that it is at, where it has not ended."""

    letter: str
    label: str
    config: PipelineConfig
    trace: Trace | None
    text_of: Callable[[Hit], str]
    is_pinned: bool = False
    unfinished: str = ""
    problem: str = ""  # why it could not go on

    @property
    def answer(self) -> str:
        """The text of the answer; '' where there is none."""
        return self.trace.answer.text if self.trace and self.trace.answer else ""

    @property
    def records(self) -> tuple[StageRecord, ...]:
        """What each stage did and cost."""
        return self.trace.stages if self.trace else ()

    @property
    def seconds(self) -> float:
        """What all stages took when they were first computed."""
        return sum(record.seconds for record in self.records)

    @property
    def tokens(self) -> int:
        """What all stages read and wrote."""
        return sum(record.tokens_in + record.tokens_out for record in self.records)

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The rank of every ranked passage, from 1."""
        return {hit.parent_id: rank for rank, hit in enumerate(self.trace.ranked, 1)} if self.trace else {}

    @cached_property
    def read(self) -> frozenset[str]:
        """The passages that the reader was given."""
        return frozenset(passage.parent_id for passage in self.trace.passages) if self.trace else frozenset()

    @cached_property
    def evidence_at(self) -> int | None:
        """The rank of the first passage that holds evidence; None where none does."""
        if self.trace is None:
            return None
        return next((n for n, hit in enumerate(self.trace.ranked, 1) if holds_evidence(hit, self.trace.question)), None)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands in one column. `candidate` is its rank before the reranker, where the ranking left it out.

    `moved` counts the ranks that it rose against the first column; None where one of both does not rank it.
    """

    rank: int | None
    candidate: int | None = None
    is_read: bool = False
    moved: int | None = None
    is_new: bool = False
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One passage with its text, and its place in each column."""

    hit: Hit
    text: str
    holds_evidence: bool
    places: tuple[Place, ...]


@dataclass(frozen=True)
class SideBySide:
    """The columns of one question."""

    asked: Question
    columns: tuple[Column, ...]

    @property
    def differences(self) -> dict[str, tuple[Any, ...]]:
        """The keys in which the settings differ, with the value of each column."""
        values = [column.config.flat() for column in self.columns]
        rows = {key: tuple(one[key] for one in values) for key in values[0]}
        return {key: row for key, row in rows.items() if any(value != row[0] for value in row)}

    @property
    def question(self) -> Question:
        """The question, with its evidence located where some column has come that far."""
        return next((column.trace.question for column in self.columns if column.trace), self.asked)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The passages: in the order of the last column, then what it does not rank in that of the others.

        Evidence that was a candidate and is not ranked is among them.
        """
        found: dict[str, tuple[Hit, Column]] = {}
        for column in reversed(self.columns):
            if (trace := column.trace) is None:
                continue
            left_out = [hit for hit in trace.candidates if hit.parent_id not in column.ranks]
            for hit in (*trace.ranked, *(one for one in left_out if holds_evidence(one, trace.question))):
                found.setdefault(hit.parent_id, (hit, column))
        first = self.columns[0]
        return tuple(
            Row(
                hit,
                owner.text_of(hit),
                holds_evidence(hit, self.question),
                tuple(_place(hit, column, None if column is first else first) for column in self.columns),
            )
            for hit, owner in found.values()
        )

    def answers(self) -> list[tuple[Piece, ...]]:
        """Return the answers in pieces: marked is what the first has not, and in the first of two what is gone."""
        first, *others = (column.answer for column in self.columns)
        pieces = [compared(first, other)[1] for other in others]
        before = compared(first, others[0])[0] if len(others) == 1 and others[0] else (Piece(first),)
        return [before, *pieces] if first else [(Piece(column.answer),) for column in self.columns]

    @property
    def searched(self) -> dict[str, tuple[str, ...]]:
        """What became of the question before it was searched, where a stage made something of it."""
        traces = [column.trace for column in self.columns]
        texts: dict[str, tuple[str, ...]] = {
            "Class": tuple(trace.query_class or "" if trace else "" for trace in traces),
            "Searched": tuple(
                trace.search_query or "" if trace and trace.search_query != trace.question.text else ""
                for trace in traces
            ),
            "Searched, too": tuple("\n".join(trace.phrasings) if trace else "" for trace in traces),
            "HyDE text": tuple("\n\n".join(trace.hypotheticals) if trace else "" for trace in traces),
        }
        return {name: row for name, row in texts.items() if any(row)}

    @property
    def costs(self) -> dict[str, tuple[StageRecord | None, ...]]:
        """What each stage cost in each column, in the order of the stages; None where it did not run."""
        names = dict.fromkeys(record.stage for column in self.columns for record in column.records)
        by_stage = [{record.stage: record for record in column.records} for column in self.columns]
        return {name: tuple(records.get(name) for records in by_stage) for name in names}

    @property
    def sentences(self) -> list[str]:
        """What moved, for each column after the first."""
        return [sentence for column in self.columns[1:] for sentence in _moved(self.columns[0], column)]


def _place(hit: Hit, column: Column, first: Column | None) -> Place:
    rank = column.ranks.get(hit.parent_id)
    candidates = column.trace.candidates if column.trace else ()
    candidate = next((n for n, one in enumerate(candidates, 1) if one.parent_id == hit.parent_id), None)
    before = first.ranks.get(hit.parent_id) if first else None
    is_known = first is not None and first.trace is not None and column.trace is not None
    return Place(
        rank=rank,
        candidate=candidate if rank is None else None,
        is_read=hit.parent_id in column.read,
        moved=before - rank if before is not None and rank is not None else None,
        is_new=is_known and rank is not None and before is None,
        is_gone=is_known and rank is None and before is not None,
    )


def _moved(first: Column, column: Column) -> list[str]:
    """Return where the evidence went, what is read that was not, and whether the answer is the same."""
    if first.trace is None or column.trace is None or column.unfinished or first.unfinished:
        return []
    now, before = column.evidence_at, first.evidence_at
    sentences = []
    if column.trace.question.evidence and now == before:
        state = f"stands at rank {now}" if now else "is not ranked"
        sentences.append(f"The evidence {state} in both {first.letter} and {column.letter}.")
    elif column.trace.question.evidence:
        here, there = (f"at rank {rank}" if rank else "nowhere" for rank in (now, before))
        verb = "rises" if before is None or (now is not None and now < before) else "falls"
        sentences.append(f"The evidence {verb}: {column.letter} has it {here}, {first.letter} {there}.")
    if column.read and first.read:
        n, new = len(column.read), len(column.read - first.read)
        some = "the same" if len(first.read) == n else f"{n} of the"
        sentences.append(
            f"{new} of the {n} passages that {column.letter} reads are not read by {first.letter}."
            if new
            else f"{column.letter} reads {some} {counted(len(first.read), 'passage')} that {first.letter} reads."
        )
    if first.answer == column.answer != "":
        sentences.append(f"{column.letter} answers word for word as {first.letter}.")
    return sentences
