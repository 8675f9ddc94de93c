"""What a sweep leaves out: questions not asked, combinations that are the same pipeline, text that no model read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_lab._kit.wording import counted
from rag_lab.data.sampling import stratified
from rag_lab.models.truncation import Truncation
from rag_lab.records import Question, Trace

if TYPE_CHECKING:
    from rag_lab.models.truncation import TruncatedChildren

MOST = 4  # combinations of one reason that are named
SEARCHES = {"search_dense": "dense", "retrieve_hyde": "hyde"}  # stages that embed, with the hits of each


def left_out(
    questions: Sequence[Question], asked: Collection[str], answered: Collection[str], limit: int | None, seed: int
) -> dict[str, int]:
    """Return how many questions are not asked, by reason; `limit` is of those asked, `seed` that of their sample."""
    drawn = stratified(questions, len(questions), seed)
    n_seen = len(drawn)
    if limit is not None and len(asked) == limit:
        n_seen = 1 + max(place for place, name in enumerate(drawn) if name in asked)
    measured = {question.question_id for question in questions if question.answerable} | set(answered)
    missing = [name for name in drawn[:n_seen] if name not in asked]
    n_unmeasured = sum(name not in measured for name in missing)
    unlike = f"as only {len(answered):,} are answered (limits.answers) and" if answered else "as none is answered and"
    reasons = {
        f"to which the documents hold no answer, {unlike} retrieval cannot be measured on them": n_unmeasured,
        "that are not among those named": len(missing) - n_unmeasured,
        f"beyond limits.questions, which takes {limit} by class and by whether there is an answer": len(drawn) - n_seen,
    }
    return {reason: n for reason, n in reasons.items() if n}


def asked_sentence(n_asked: int, missing: Mapping[str, int]) -> str:
    """Say how many questions are asked and, by reason, how many are not; `missing` is what `left_out` returns."""
    if not missing:
        return f"{counted(n_asked, 'question')} {'is' if n_asked == 1 else 'are'} asked."
    reasons = "; ".join(f"{n:,} {reason}" for reason, n in missing.items())
    return f"{n_asked:,} of {n_asked + sum(missing.values()):,} questions are asked. Left out: {reasons}."


@dataclass(frozen=True, slots=True)
class SamePipeline:
    """A combination that is not run: it is the same pipeline as the variant `run_as`, by construction if `why` says."""

    label: str
    changes: dict[str, Any]  # the dotted keys in which its settings differ from the baseline's
    run_as: str
    why: str = ""

    def __str__(self) -> str:
        if not self.why:
            return f"{self.label} is the same pipeline as {self.run_as} and is run once."
        return f"{self.label} is the same pipeline as {self.run_as} by construction and is run once: {self.why}."


def same_pipeline_sentences(same: Iterable[SamePipeline]) -> list[str]:
    """Return a sentence for each combination, and one for all that are the same pipelines for one reason."""
    by_reason: dict[str, list[SamePipeline]] = {}
    for one in same:
        by_reason.setdefault(one.why or str(one), []).append(one)
    sentences = []
    for found in by_reason.values():
        named = [f"{one.label} as {one.run_as}" for one in found[:MOST]]
        named += [f"and {len(found) - MOST:,} more"] if len(found) > MOST else []
        sentences.append(
            str(found[0])
            if len(found) == 1
            else f"{len(found):,} combinations are the same pipelines as others by construction and are run once, "
            f"since {found[0].why}: {'; '.join(named)}."
        )
    return sentences


@dataclass(frozen=True, slots=True)
class TruncationRecord:
    """The chunks of an index, and what of them stands behind the passages that readers were given."""

    model: str  # for embedding, as the configuration names it
    chunks: Truncation  # how long all of them are for it
    given: int  # passages at the ranks that a reader gets, over all questions
    given_cut: int  # of these, found by a chunk, or known by one, that was not embedded to its end
    asked: int  # questions of which something was embedded to search by it
    asked_cut: int  # of these, whose text was longer than the model reads
    asked_tokens: int  # of the texts of those, that were not read

    @classmethod
    def of(cls, model: str, found: TruncatedChildren, traces: Sequence[Trace], final_k: int) -> TruncationRecord:
        """Return what to record of traces that rest on these chunks; a reader gets the first `final_k` ranks."""
        given = [hit.chunk_id for trace in traces for hit in trace.ranked[:final_k]]
        given_cut = sum(chunk_id in found.longer for chunk_id in given)
        asked = []
        for trace in traces:
            if searched := [one for one in trace.stages if one.stage in SEARCHES]:
                chunks = (sum(found.of_hits(trace.hits.get(SEARCHES[one.stage], ()))) for one in searched)
                asked.append(sum(max(0, one.truncated_tokens - n) for one, n in zip(searched, chunks, strict=True)))
        truncated = [tokens for tokens in asked if tokens]
        return cls(model, found.total, len(given), given_cut, len(asked), len(truncated), sum(truncated))


# What a variant's record says of it; nothing where no search asked an embedding model, or its window is not known.
TRUNCATION = "unread", TruncationRecord, "what it says was not read names no chunks"
# Which evidence, by its place from 0, no passage of an index holds.
NOT_INDEXED = "not_indexed", dict[str, list[int]], "what it says is not indexed names no evidence"
