"""What a pipeline would do with questions, found out without doing it.

The stages are walked in their order. A result that is remembered is replayed, and what costs nothing is computed, so
the walk knows as much as the memory does. Where a result is not there, the fields it would set are open: they hold
stand-ins, the largest values that the configuration lets them have, and the key of the missing result stands for their
values. Two variants that wait for the same missing result therefore meet in one key, as they will in the memory, and it
is counted once.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab.config import PipelineConfig
from rag_lab.experiment.design import variant_label
from rag_lab.models.protocols import with_least_thinking
from rag_lab.models.remembered_vectors import RememberedEmbedder, RememberedScorer
from rag_lab.models.shared import spec_of
from rag_lab.models.truncation import estimated_tokens
from rag_lab.pipeline import Pipeline, Read
from rag_lab.records import Answer, Hit, Passage, Question, Remembered, Trace
from rag_lab.report.plan_tree import Branch
from rag_lab.stages.extract import Extract
from rag_lab.stages.rerank import UNITS, PairRerank
from rag_lab.stages.retrieval.retrieval_stages import CustomSearch
from rag_lab.stages.rewrite_and_hyde import GENERAL
from rag_lab.stages.run_stage import applied, decode_outcome, record_of, stage_key
from rag_lab.stages.stage import ChatStage, CheckedStage, CustomStage, Outcome, Stage

_SUMS = ("n", "remembered", "tokens_in", "tokens_out", "thinking_tokens", "embedded_tokens", "embedded_chars")
Step = tuple[str, str]  # a stage's name and the digest of what it does
WalkStep = tuple[str, Stage, list[int]]  # what the traces behind it depend on, and the places that pass it


@dataclass(frozen=True, slots=True)
class Work:
    """What one stage or metric has to do with one model: a row of a bill.

    `n` counts units: a `call` of a chat model, a `question` for a custom module or for a reader that quotes, a `pair`
    that a reranker scores, a `chunk` to embed, a `file` that a model reads or splits, a `score` for which somebody's
    metric asks a judge nobody knows how often. `at_most`: a part of it depends on results that are not there yet.
    `remembered` counts results that the memory holds. `thinking_tokens` are at most so many of `tokens_out`.
    `tokens_measured`: tokens are a mean of an earlier sweep; otherwise they are at most, by prompts and settings.
    `embedded_tokens` are at most what an embedding model reads that costs money, `embedded_chars` what any reads, at
    most `corpus_chars` where that is not 0; they are in no total. `cost_usd` is None where calls cost money and no
    table has a price, `minutes` where no sweep has measured such a call; both are 0 where nothing is called.
    """

    purpose: str
    model: str
    unit: str
    n: int = 0
    at_most: bool = False
    remembered: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    thinking_tokens: int = 0
    tokens_measured: bool = False
    cost_usd: float | None = 0.0
    minutes: float | None = 0.0
    embedded_tokens: int = 0
    embedded_chars: int = 0
    corpus_chars: int = 0

    @property
    def calls(self) -> int:
        """Calls of a chat model; 0 for what another kind of model does."""
        return self.n if self.unit == "call" else 0

    @property
    def chars_to_embed(self) -> int:
        """Characters that an embedding model reads; texts of a corpus that many questions quote are embedded once."""
        return min(self.embedded_chars, self.corpus_chars or self.embedded_chars)

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class PartialTrace:
    """A trace as far as it is known; `open` are the fields that wait for a result, each with that result's key."""

    trace: Trace
    open: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Tally:
    """The work of a whole plan: each result is counted once, whichever variants need it."""

    to_come: Counter[tuple[str, int]] = field(default_factory=Counter)  # variants, by a step of theirs and repeat
    walked: dict[tuple[str, int], list[PartialTrace]] = field(default_factory=dict)  # that are to come once more
    _seen: set[str] = field(default_factory=set)
    _work: dict[tuple[str, str, str], Work] = field(default_factory=dict)

    def is_new(self, key: str) -> bool:
        """Tell whether `key` is met for the first time, and note it."""
        new = key not in self._seen
        self._seen.add(key)
        return new

    def add(self, work: Work) -> None:
        """Put `work` to what is there of its purpose, model and unit."""
        place = (work.purpose, work.model, work.unit)
        if old := self._work.get(place):
            sums: dict[str, Any] = {name: getattr(old, name) + getattr(work, name) for name in _SUMS}
            sums |= {name: None for name in ("cost_usd", "minutes") if getattr(work, name) is None}
            at_most, corpus_chars = old.at_most or work.at_most, max(old.corpus_chars, work.corpus_chars)
            work = replace(old, at_most=at_most, corpus_chars=corpus_chars, **sums)
        self._work[place] = work

    @property
    def work(self) -> list[Work]:
        """All work, in the order in which it was first met."""
        return list(self._work.values())


@dataclass(frozen=True, slots=True)
class VariantPath:
    """A variant with its stages in order, behind them ("", variant), and the work that no variant before it needs.

    Work is by stage; what belongs to none of them, as scoring, is under "". `settings` are the dotted keys that any
    variant changes.
    """

    variant: str
    settings: Mapping[str, Any]
    steps: Sequence[Step]
    work: Mapping[str, Sequence[Work]]


PlanTree = dict[str, VariantPath]  # by variant, in the order in which their work is counted


def branch_of(paths: Sequence[VariantPath], depth: int = 0, known: Collection[str] = (), stage: str = "") -> Branch:
    """Return the branch of variants that have done the same before place `depth` of their stages.

    `known` are the settings that branches above name.
    """
    first = paths[0]
    shared = {key: one for key, one in first.settings.items() if all(path.settings.get(key) == one for path in paths)}
    label = variant_label({key: value for key, value in shared.items() if key not in known})
    counts, at_most = Counter[str](), False
    while depth < len(first.steps) and len({path.steps[depth] for path in paths}) == 1:
        for work in (one for path in paths for one in path.work.get(path.steps[depth][0], ())):
            counts[work.unit] += work.n
            at_most = at_most or work.at_most
        depth += 1
    parts: dict[Step, list[VariantPath]] = {}
    for path in paths if len(paths) > 1 else ():  # the last step of each is its own
        parts.setdefault(path.steps[depth], []).append(path)
    branches = tuple(branch_of(part, depth, shared.keys(), step[0]) for step, part in parts.items())
    units = tuple((unit, n) for unit, n in counts.items() if n)
    return Branch(label if branches else first.variant, stage, len(paths), units, at_most, branches)


_HIT = Hit("?", "?", "?", None, 0, 0, 0.0)
_filler = "\ue000{}\ue001".format  # a text that counts as so many tokens, and is short however many they are
_FILLER = re.compile("\ue000([0-9]{1,9})\ue001")  # characters of no script: no text of a dataset looks so

_CHARS_A_TOKEN = 3  # of a context that is not there yet
_OWN = (CustomStage, CustomSearch, CheckedStage)  # what they cost nobody knows before, and they are not run to find out


def walk(
    pipeline: Pipeline, questions: Sequence[Question], answered: set[str], read: Read, *, scored: bool = True
) -> list[WalkStep]:
    """Return the stages that `pipeline.run` would pass, in order, each with what the traces behind it depend on.

    Where they are not `scored` by a judge, nobody reads them: the walk ends at the last stage that has work to count.
    """
    steps, key, found = list(pipeline.steps(questions, answered, read)), str(pipeline.index.path), list[WalkStep]()
    while steps and not scored and not no_work(steps[-1][0]):
        steps.pop()
    for stage, places in steps:
        key = digest([key, stage.name, stage.identity(), places])
        found.append((key, stage, places))
    return found


def dry_traces(
    pipeline: Pipeline, questions: Sequence[Question], repeat: int, steps: Sequence[WalkStep], tally: Tally
) -> list[PartialTrace]:
    """Return the traces of a walk, as far as they are known, and put the work to be done in `tally`."""
    traces = [PartialTrace(Trace(question, repeat)) for question in questions]
    ahead = _Walk(pipeline, tally)
    for digested, stage, places in steps:
        key = (digested, repeat)
        if key in tally.walked:
            traces = tally.walked[key]
        else:
            passed, traces = ahead.pass_through(stage, [traces[place] for place in places]), [*traces]
            for place, each in zip(places, passed, strict=True):
                traces[place] = each
            tally.walked[key] = traces
        tally.to_come[key] -= 1
        if tally.to_come[key] <= 0:
            del tally.walked[key]
    return traces


@dataclass(frozen=True)
class _Walk:
    pipeline: Pipeline
    tally: Tally

    def pass_through(self, stage: Stage, traces: Sequence[PartialTrace]) -> list[PartialTrace]:
        """Return the traces after `stage`, which becomes work where its result is not known; failed ones pass it by."""
        identity, keys = digest(stage.identity()), list[str | None]()
        for place, each in enumerate(traces):
            key = None
            if each.trace.failure is None and (waits := _waits_for(stage, each)):  # equal exactly where those are
                key = digest([stage_key(stage, identity, each.trace, without=waits), waits])
            elif each.trace.failure is None:  # computed here and now where it costs nothing: its place is key enough
                key = stage_key(stage, identity, each.trace) if stage.costly else str(place)
            keys.append(key)
        wanted = {key: each for key, each in zip(keys, traces, strict=True) if key is not None}
        closed = {key: each for key, each in wanted.items() if not _waits_for(stage, each)}
        if not stage.costly and not isinstance(stage, _OWN):  # what costs nothing is computed
            outcomes = stage.run([each.trace for each in closed.values()]) if closed else []
            known = dict(zip(closed, outcomes, strict=True))
        else:
            texts = self.pipeline.memory.recall(closed) if self.pipeline.memory else {}
            known = {key: decode_outcome(text) for key, text in texts.items()}
        if nothing := no_work(stage):
            for key, each in wanted.items():
                if self.tally.is_new(key):
                    work = replace(nothing, remembered=1) if key in known else self._work(stage, nothing, each)
                    self.tally.add(work)
        after = []
        for place_key, each in zip(keys, traces, strict=True):
            if place_key is None:
                after.append(each)
            elif place_key in known:
                left = {name: waits for name, waits in each.open.items() if name not in stage.writes}
                record = record_of(stage, known[place_key], remembered=True)
                after.append(PartialTrace(applied(each.trace, known[place_key], record), left))
            else:
                outcome = Outcome(stand_ins(each.trace, stage.writes, self.pipeline.config))
                guessed = applied(each.trace, outcome, record_of(stage, outcome, remembered=False))
                after.append(PartialTrace(guessed, {**each.open, **dict.fromkeys(stage.writes, place_key)}))
        return after

    def _work(self, stage: Stage, nothing: Work, each: PartialTrace) -> Work:
        waits = _waits_for(stage, each)
        nothing = replace(nothing, at_most=bool(waits) or getattr(stage, "at_most", False))
        if isinstance(stage, _OWN):
            return replace(nothing, n=1, cost_usd=None, minutes=None)
        if isinstance(stage, PairRerank):  # its pairs without a score, as far as is known
            if not waits and self.pipeline.index.is_built and isinstance(stage.scorer, RememberedScorer):
                return replace(nothing, n=sum(map(self.tally.is_new, stage.scorer.unknown(stage.pairs([each.trace])))))
            chunks = [hit.chunk_id for hit in each.trace.candidates]
            same = digest([dict(stage.scorer.identity()), stage.passage, each.trace.search_query, chunks, waits])
            return replace(nothing, n=len(chunks) if self.tally.is_new(same) else 0)
        if isinstance(stage, Extract):
            return replace(self._quoting(stage, nothing, each), n=1)
        if not isinstance(stage, ChatStage):
            return nothing
        requests = stage.requests([each.trace])
        thinking = [with_least_thinking(stage.model, request) for request in requests]
        return replace(
            nothing,
            n=len(requests),
            tokens_in=sum(counted_tokens(message.content) for request in requests for message in request.messages),
            tokens_out=sum(request.most_tokens_out for request in thinking),
            thinking_tokens=sum(request.thinking_tokens for request in thinking),
        )

    def _quoting(self, stage: Extract, nothing: Work, each: PartialTrace) -> Work:
        """Return what is embedded to quote: what is new of a known context, else of one as long as may be."""
        passages = each.trace.passages
        if "passages" not in each.open and isinstance(stage.embedder, RememberedEmbedder):
            known = stage.embedder.known_documents(stage.quoted(passages))
            new = [text for key, text in known.items() if self.tally.is_new(key) and text is not None]
            # at most, as runs of sentences that cannot win are not embedded
            return replace(nothing, embedded_chars=sum(map(len, new)), at_most=bool(new))
        n_chars = _CHARS_A_TOKEN * sum(counted_tokens(passage.text) for passage in passages)
        runs = stage.longest * (stage.longest + 1) // 2  # of 1 to `longest` units: most that a character stands in
        return replace(nothing, embedded_chars=n_chars * runs, corpus_chars=self._corpus_chars * runs)

    @cached_property
    def _corpus_chars(self) -> int:
        places = self.pipeline.index.chunks.places() if self.pipeline.index.is_built else ()
        return sum(end - start for _, _, start, end in places)


def no_work(stage: Stage) -> Work | None:
    """Return no work, to be added to; None for a stage of ours that asks no model, or embeds a question alone."""
    if isinstance(stage, _OWN):
        return Work(stage.name, stage.code.what, "question")
    if isinstance(stage, ChatStage):
        return Work(stage.name, spec_of(stage.model), "call")
    if isinstance(stage, Extract):
        return Work(stage.name, spec_of(stage.embedder), "question")
    return Work(stage.name, spec_of(stage.scorer), UNITS[stage.step]) if isinstance(stage, PairRerank) else None


def _waits_for(stage: Stage, each: PartialTrace) -> dict[str, str]:
    """Return the fields among those that the stage reads that are open, with the keys that stand for them."""
    return {path: each.open[path] for path in stage.reads if path in each.open}


def counted_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text in which stand-ins may stand."""
    return estimated_tokens(_FILLER.sub("x", text)) + sum(int(n) - 1 for n in _FILLER.findall(text))


def stand_ins(trace: Trace, fields: Collection[str], config: PipelineConfig) -> dict[str, Any]:
    """Return what stands for these fields of `trace`; one that nothing is asked by keeps its value."""
    query, answer, history, text = config.query, config.answer, trace.question.history, trace.question.text
    n_passages, conversation = config.rerank.final_k, config.conversation
    passage = Passage(0, "?", "?", None, 0, 0, _filler(answer.context_tokens // n_passages))
    # Passages are many, and made only for who asks for them: this is the inner loop of a dry run.
    numbers = range(1, n_passages + 1) if "passages" in fields and answer.context != "none" else ()
    largest = {
        "remembered": Remembered(  # the longest summary, with the most turns that can stand after it
            len(history), history[-conversation.summary_every :], _filler(conversation.summary_tokens)
        ),
        "proposed_query": text,
        "search_query": text,
        "hyde_route": GENERAL,
        "hypothetical": _filler(query.hyde_max_tokens),
        "other_hypotheticals": (_filler(query.hyde_max_tokens),) * (query.hyde_n - 1),
        "phrasings": (text,) * query.phrasings,
        "base_hits": (_HIT,) * config.retrieval.base_k,
        "hits.hyde": (_HIT,) * config.retrieval.hyde_k,
        "candidates": (_HIT,) * config.rerank.input_limit,
        "ranked": (_HIT,) * (2 * config.rerank.final_k),
        "passages": tuple(replace(passage, number=number) for number in numbers),
        "raw_text": _filler(answer.max_tokens),
        "answer": Answer(_filler(answer.max_tokens)),
        "visits": (),
    }
    return {name: largest[name] for name in fields if name in largest}
