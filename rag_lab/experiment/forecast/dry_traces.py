"""What a pipeline would do with questions, found out without doing it.

The stages are walked in their order. A result that is remembered is replayed, and what costs nothing is computed, so
the walk knows as much as the memory does. Where a result is not there, the fields it would set are open: they hold
stand-ins, the largest values that the configuration lets them have, and the key of the missing result stands for their
values. Two variants that wait for the same missing result therefore meet in one key, as they will in the memory, and it
is counted once.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab.config import PipelineConfig
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.experiment.forecast.work import Tally, Work
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import with_least_thinking
from rag_lab.models.remembered_vectors import RememberedEmbedder, RememberedScorer
from rag_lab.models.shared import spec_of
from rag_lab.models.truncation import estimated_tokens
from rag_lab.pipeline import Pipeline, Read
from rag_lab.records import Answer, Hit, Passage, Question, Remembered, Trace
from rag_lab.stages.answer.extract import Extract
from rag_lab.stages.parts import CheckedStage, CustomStage
from rag_lab.stages.query.prompts import GENERAL
from rag_lab.stages.rerank import PairRerank
from rag_lab.stages.retrieval.retrieval_stages import CustomSearch
from rag_lab.stages.run_stage import apply_outcome, decode_outcome, stage_key
from rag_lab.stages.stage import ChatStage, Outcome, Stage

_HIT = Hit("?", "?", "?", None, 0, 0, 0.0)


_FILLER = re.compile("\ue000([0-9]{1,9})\ue001")  # characters of no script: no text of a dataset looks so

_CHARS_A_TOKEN = 3  # of a context that is not there yet
_OWN = (CustomStage, CustomSearch, CheckedStage)  # what they cost nobody knows before, and they are not run to find out


@dataclass(frozen=True, slots=True)
class PartialTrace:
    """A trace as far as it is known; `open` are the fields that wait for a result, each with that result's key."""

    trace: Trace
    open: Mapping[str, str] = field(default_factory=dict)


def dry_traces(
    pipeline: Pipeline,
    questions: Sequence[Question],
    repeat: int,
    answered: set[str],
    read: Read,
    tally: Tally,
    *,
    scored: bool = True,
) -> list[PartialTrace]:
    """Return the traces that `pipeline.run` would, as far as they are known, and put the work to be done in `tally`.

    Where they are not `scored` by a judge, nobody reads them: the walk ends at the last stage that has work to count.
    """
    traces = [PartialTrace(Trace(question, repeat)) for question in questions]
    walk = _Walk(pipeline.config, pipeline.memory, tally, pipeline.index)
    steps = list(pipeline.steps(questions, answered, read))
    while steps and not scored and not counts(steps[-1][0]):
        steps.pop()
    for stage, places in steps:
        passed = walk.pass_through(stage, [traces[place] for place in places])
        for place, each in zip(places, passed, strict=True):
            traces[place] = each
    return traces


@dataclass(frozen=True)
class _Walk:
    config: PipelineConfig
    memory: Memory | None
    tally: Tally
    index: CorpusIndex

    def pass_through(self, stage: Stage, traces: Sequence[PartialTrace]) -> list[PartialTrace]:
        """Return the traces after `stage`, which becomes work where its result is not known; failed ones pass it by."""
        identity = digest(stage.identity())
        keys = [None if each.trace.failure else _key(stage, identity, place, each) for place, each in enumerate(traces)]
        wanted = {key: each for key, each in zip(keys, traces, strict=True) if key is not None}
        known = self._known(stage, {key: each for key, each in wanted.items() if not _waits_for(stage, each)})
        if nothing := _nothing(stage):
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
                after.append(PartialTrace(apply_outcome(stage, each.trace, known[place_key], remembered=True), left))
            else:
                guessed = apply_outcome(
                    stage, each.trace, Outcome(stand_ins(each.trace, stage.writes, self.config)), remembered=False
                )
                after.append(PartialTrace(guessed, {**each.open, **dict.fromkeys(stage.writes, place_key)}))
        return after

    def _known(self, stage: Stage, closed: Mapping[str, PartialTrace]) -> dict[str, Outcome]:
        """Return the results that are remembered, or cost nothing to compute."""
        if stage.costly or isinstance(stage, _OWN):
            texts = self.memory.recall(closed) if self.memory else {}
            return {key: decode_outcome(text) for key, text in texts.items()}
        results = stage.run([each.trace for each in closed.values()]) if closed else []
        return dict(zip(closed, results, strict=True))

    def _work(self, stage: Stage, nothing: Work, each: PartialTrace) -> Work:
        waits = _waits_for(stage, each)
        nothing = replace(nothing, at_most=bool(waits))
        if isinstance(stage, _OWN):
            return replace(nothing, n=1, cost_usd=None, minutes=None)
        if isinstance(stage, PairRerank):  # its pairs without a score, as far as is known
            if not waits and self.index.is_built and isinstance(stage.scorer, RememberedScorer):
                new = [self.tally.is_new(key) for key in stage.scorer.unknown(stage.pairs([each.trace]))]
                return replace(nothing, n=sum(new))
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
        """Return what is embedded to quote: what is new of a known context, else of one as long as may be.

        All contexts together hold no more than the corpus, and each of its texts is embedded once.
        """
        passages = each.trace.passages
        if "passages" not in each.open and isinstance(stage.embedder, RememberedEmbedder):
            known = stage.embedder.known_documents(stage.quoted(passages))
            new = [text for key, text in known.items() if self.tally.is_new(key) and text is not None]
            return replace(nothing, embedded_chars=sum(map(len, new)))
        n_chars = _CHARS_A_TOKEN * sum(counted_tokens(passage.text) for passage in passages)
        return replace(
            nothing,
            embedded_chars=stage.most_quoted(n_chars),
            corpus_chars=stage.most_quoted(self._corpus_chars) if self.index.is_built else 0,
        )

    @cached_property
    def _corpus_chars(self) -> int:
        return sum(end - start for _, _, start, end in self.index.chunks.spans.values())


def counts(stage: Stage) -> bool:
    """Tell whether a stage may have work that is counted: no search of ours has."""
    return _nothing(stage) is not None


def _nothing(stage: Stage) -> Work | None:
    """Return no work, to be added to; None for a stage of ours that asks no model, or embeds a question alone."""
    if isinstance(stage, _OWN):
        return Work(stage.name, stage.code.what, "question")
    if isinstance(stage, ChatStage):
        return Work(stage.name, spec_of(stage.model), "call")
    if isinstance(stage, Extract):
        return Work(stage.name, spec_of(stage.embedder), "question")
    return Work(stage.name, spec_of(stage.scorer), "pair") if isinstance(stage, PairRerank) else None


def _waits_for(stage: Stage, each: PartialTrace) -> dict[str, str]:
    """Return the fields among those that the stage reads that are open, with the keys that stand for them."""
    return {path: each.open[path] for path in stage.reads if path in each.open}


def _key(stage: Stage, identity: str, place: int, each: PartialTrace) -> str:
    """Return the result's key; where it waits for others, one that is equal exactly where those are.

    What costs nothing and waits for nothing is computed here and now, so its place is key enough.
    """
    waits = _waits_for(stage, each)
    if waits:
        return digest([stage_key(stage, identity, each.trace, without=waits), waits])
    return stage_key(stage, identity, each.trace) if stage.costly else str(place)


def _filler(n_tokens: int) -> str:
    """Return a text that counts as this many tokens, and is short however many they are."""
    return f"\ue000{n_tokens}\ue001"


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
    }
    return {name: largest[name] for name in fields if name in largest}
