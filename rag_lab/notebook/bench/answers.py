"""What settings made of a question, asked in a thread of their own, stage by stage, and what differs between them.

Answers are kept while the kernel lives. The first column is what the others are compared with. Knows no HTML.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import groupby
from threading import Lock, Thread
from typing import Any

from rag_lab._kit.wording import counted, letters
from rag_lab.comparison.passages import Piece, holds_evidence
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.evaluation.registry import parse_name
from rag_lab.experiment.forecast.cost_estimate import ASSUMED_S
from rag_lab.notebook.bench.toggles import Toggles
from rag_lab.pipeline import Pipeline
from rag_lab.records import Hit, Question, StageRecord, Trace
from rag_lab.redaction import redact_sentence
from rag_lab.stages.rerank import UNITS
from rag_lab.stages.run_stage import run_stage

_ONE_AT_A_TIME = Lock()  # two benches of a kernel share its models
_SEARCH_S = 0.5  # the first search of a kernel waits for the embedding model, the others do not


class Stopped(Exception):  # noqa: N818 - it is no error
    """Somebody asked for an end."""


class Job(Thread):
    """Work in its own thread: `work` calls `step` where it may end; `ended` is called at the end, in that thread."""

    def __init__(self, work: "Callable[[Job], None]", ended: "Callable[[Job], None]") -> None:
        super().__init__(name="bench", daemon=True)
        self.step_now, self.share = "", 0.0
        self.error: RagLabError | None = None
        self.is_running, self.is_stopped = True, False
        self.is_stopping = False  # an end was asked for; a call of a model that runs is waited for, and remembered
        self._work, self._ended = work, ended

    def step(self, name: str, share: float) -> None:
        """Enter a step, when this `share` of the work is done, from 0 to 1; raise `Stopped` if an end was asked for."""
        self.step_now, self.share = name, share
        if self.is_stopping:
            raise Stopped

    def run(self) -> None:
        """Do the work; whatever it raises ends it, and the bench goes on."""
        try:
            with _ONE_AT_A_TIME:
                self._work(self)
        except Stopped:
            self.is_stopped = True
        except RagLabError as error:
            self.error = error
        except Exception as error:  # of a library, or of a custom module
            self.error = RagLabError(f"{type(error).__name__}: {redact_sentence(' '.join(str(error).split()))[:400]}")
            self.error.__cause__ = error
        finally:
            self.is_running = False
            self._ended(self)


class Answers:
    """The settings that were asked last, and every trace that came to its end; all share open indexes."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._asked: Question | None = None
        self._settings: tuple[PipelineConfig, ...] = ()
        self._pipelines: dict[str, Pipeline] = {}  # by setting
        self._traces: dict[tuple[str, Question], Trace] = {}  # by setting and question
        self._live: dict[str, Trace] = {}  # what settings made that have not come to their end, or may do better
        self._steps: dict[str, str] = {}  # where these are, or were stopped
        self._problems: dict[str, RagLabError] = {}  # what kept these from going on

    def of(self, setting: PipelineConfig) -> Pipeline:
        """Return the pipeline of a setting."""
        if setting.identity not in self._pipelines:
            self._pipelines[setting.identity] = self.pipeline.set(setting.flat())
        return self._pipelines[setting.identity]

    def watched(self, pipeline: Pipeline) -> None:
        """Go on with another pipeline on the same documents, which reports what it embeds to another bench."""
        self.pipeline = pipeline
        self._pipelines.clear()

    def run(self, asked: Question, settings: Sequence[PipelineConfig], job: Job, changed: Callable[[], None]) -> None:
        """Answer by every setting, the newest (the last) first: the others are remembered mostly.

        What keeps one from going on keeps none of the others. `changed` is called after each step.
        """
        self._asked, self._settings = asked, tuple(settings)
        self._live, self._problems = {}, {}
        todo = [setting for setting in reversed(settings) if (setting.identity, asked) not in self._traces]
        self._steps = {setting.identity: "its first step" for setting in todo}  # of one whose turn has not come
        for n, setting in enumerate(todo):

            def enter(step: str, share: float, setting: PipelineConfig = setting, n: int = n) -> None:
                self._steps[setting.identity] = step
                job.step(f"{letters(settings.index(setting))}: {step}", (n + share) / len(todo))
                changed()

            try:  # as `Pipeline.run`: what was remembered is not computed again; the trace is kept after each stage
                pipeline = self.of(setting)
                enter("documents", 0.0)
                pipeline.prepare([asked])
                (located,), _ = pipeline.locate([asked])
                trace = Trace(located)
                stages = [stage for stage, _ in pipeline.steps([located])]
                for place, stage in enumerate(stages):
                    enter(stage.name, place / len(stages))
                    (trace,) = run_stage(stage, [trace], pipeline.memory, replayed=pipeline.parts.replayed)
                    self._live[setting.identity] = trace
                del self._steps[setting.identity]
                if not trace.curable:
                    self._traces[setting.identity, asked] = trace
            except RagLabError as error:
                self._problems[setting.identity] = error
        if settings[-1].identity in self._problems:
            raise self._problems[settings[-1].identity]

    def side_by_side(self, toggles: Toggles) -> "SideBySide | None":
        """Return the settings that were asked last, as far as they came; None before the first run."""
        if self._asked is None:
            return None
        columns = []
        for n, setting in enumerate(self._settings):
            name = setting.identity

            def text_of(hit: Hit, setting: PipelineConfig = setting) -> str:  # an index is opened where a text is shown
                return self.of(setting).index.text(hit)

            columns.append(
                Column(
                    letter=letters(n),
                    label=toggles.label(setting),
                    config=setting,
                    trace=self._traces.get((name, self._asked), self._live.get(name)),
                    text_of=text_of,
                    is_pinned=setting in toggles.pinned,
                    unfinished=self._steps.get(name, ""),
                    problem=str(self._problems.get(name, "")),
                )
            )
        return SideBySide(self._asked, tuple(columns))

    def seconds_a_question(self, settings: Sequence[PipelineConfig], metrics: Sequence[str]) -> float:
        """Return about how many seconds a comparison takes for each question, work that settings share counted once.

        What was replayed has the seconds of the first time, to the last digit, so equal records are one computation. A
        setting that has not been run is taken to be as slow as a packaged model on two cores.
        """

        def reads_answers(metric: str) -> bool:
            try:
                return parse_name(metric).info.reads_answers
            except ConfigError:  # which is said where it is asked for
                return True

        answers = not metrics or any(map(reads_answers, metrics))
        known, assumed_s = set(), 0.0
        for setting in settings:
            stages = next((trace.stages for (name, _), trace in self._traces.items() if name == setting.identity), ())
            for one in stages:
                is_search = one.stage.startswith("search_")
                known.add((one.stage, min(one.seconds, _SEARCH_S) if is_search else one.seconds))
            if not stages:
                query, pair_s = setting.query, ASSUMED_S.get(UNITS.get(setting.rerank.name, ""), 0)
                calls = query.understands + (query.hyde != "none") * query.hyde_n + (query.phrasings > 0)
                calls += answers and setting.answer.name == "llm"
                assumed_s += calls * ASSUMED_S["call"] + setting.rerank.input_limit * pair_s
        return assumed_s + sum(seconds for stage, seconds in known if answers or stage not in ("generate", "parse"))


_WORD = re.compile(r"\s*\S+\s*")


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
        trace = self.trace
        ranked = enumerate(trace.ranked, 1) if trace else ()
        return next((n for n, hit in ranked if trace and holds_evidence(hit, trace.question)), None)


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
        """The passages: in the order of the last column, then what it does not rank in that of the others."""
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
        """Of each column but the first: where the evidence went, what is read that was not, if it answers alike."""
        first, sentences = self.columns[0], list[str]()
        for column in self.columns[1:]:
            if first.trace is None or column.trace is None or column.unfinished or first.unfinished:
                continue
            now, before = column.evidence_at, first.evidence_at
            if column.trace.question.evidence and now == before:
                state = f"stands at rank {now}" if now else "is not ranked"
                sentences.append(f"The evidence {state} in both {first.letter} and {column.letter}.")
            elif column.trace.question.evidence:
                here, there = (f"at rank {rank}" if rank else "nowhere" for rank in (now, before))
                verb = "rises" if before is None or (now is not None and now < before) else "falls"
                sentences.append(f"The evidence {verb}: {column.letter} has it {here}, {first.letter} {there}.")
            if column.read and first.read:
                n, new, passages = len(column.read), len(column.read - first.read), counted(len(first.read), "passage")
                some = "the same" if len(first.read) == n else f"{n} of the"
                sentences.append(
                    f"{new} of the {n} passages that {column.letter} reads are not read by {first.letter}."
                    if new
                    else f"{column.letter} reads {some} {passages} that {first.letter} reads."
                )
            if first.answer == column.answer != "":
                sentences.append(f"{column.letter} answers word for word as {first.letter}.")
        return sentences


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
