"""What a variant records of the chunks that its embedding model did not read to their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from rag_lab.corpus.index.vectors import TruncatedChildren
from rag_lab.models.truncation import Truncation
from rag_lab.records import Trace
from rag_lab.runs.run_folder import RunFolder

SEARCHES = {"search_dense": "dense", "retrieve_hyde": "hyde"}  # stages that embed, with the hits of each


@dataclass(frozen=True, slots=True)
class TruncationRecord:
    """The chunks of an index, and what of them stands behind the passages that readers were given.

    model: the embedding model, as the configuration names it.
    chunks: how long all of them are for it.
    given: passages at the ranks that a reader gets, over all questions.
    given_cut: of these, found by a chunk, or known by one, that was not embedded to its end.
    asked: questions of which something was embedded to search by it.
    asked_cut: of these, whose text was longer than the model reads.
    asked_tokens: of the texts of those, that were not read.
    """

    model: str
    chunks: Truncation
    given: int
    given_cut: int
    asked: int
    asked_cut: int
    asked_tokens: int

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
        cut = [tokens for tokens in asked if tokens]
        return cls(model, found.total, len(given), given_cut, len(asked), len(cut), sum(cut))


def truncation_record(run: RunFolder, variant_id: str) -> TruncationRecord | None:
    """Return what a variant recorded; None where no search asked an embedding model, or nobody knows what it reads.

    Raises:
        DamagedFile: if its record is none.
    """
    read = TypeAdapter(TruncationRecord).validate_python
    return run.recorded(variant_id, "unread", read, "what it says was not read names no chunks")
