"""How long pages and chunks are, and how much of them the configured models read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_lab.config import PipelineConfig
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.errors import ModelError
from rag_lab.models.limits.read_limit import ReadsTexts
from rag_lab.models.shared import embedder
from rag_lab.models.token_estimate import estimated_tokens

_SAMPLE = 4000  # texts that are counted, evenly spread


@dataclass(frozen=True, slots=True)
class Length:
    """The lengths of some texts, and how many are longer than what reads them takes of one."""

    what: str  # pages, chunks, passages
    unit: str
    n: int
    median: int
    most: int  # nine of ten are at most as long
    longest: int
    limit: int | None  # of what reads them; None where nothing does, or it does not say
    reader: str
    over: float  # the share that is longer

    def __str__(self) -> str:
        spread = f"{self.n:,}, median {self.median:,} {self.unit}, 90% up to {self.most:,}, longest {self.longest:,}"
        if self.limit is None:
            return spread
        cut = (
            "all are read whole"
            if not self.over
            else f"{self.over:.{0 if self.over >= 0.01 else 1}%} are longer and are cut"
        )
        return f"{spread}; {self.reader} reads {self.limit:,}: {cut}"


def lengths_of_chunks(index: CorpusIndex, config: PipelineConfig) -> Iterator[Length]:
    """Yield the lengths of pages, of chunks as the embedding model counts them, and of parents as a reader does."""
    yield _length("pages", "characters", [len(page.text) for page in index.documents()], None, "")
    children = [child.text for child in index.children()]
    sample = children[:: max(1, len(children) // _SAMPLE)]
    model = config.models.embedding
    reads = _reader(model)
    if reads is not None and reads.most_tokens:
        yield _length("chunks", "word pieces", reads.text_tokens(sample, "document"), reads.most_tokens, model)
    else:
        yield _length("chunks", "characters", list(map(len, children)), None, "")
    share = config.answer.context_tokens // config.rerank.final_k
    parents = index.parents()
    counts = [estimated_tokens(parent.text) for parent in parents[:: max(1, len(parents) // _SAMPLE)]]
    what = f"each of {config.rerank.final_k} passages in {config.answer.context_tokens:,} tokens of context"
    yield _length("passages", "tokens at most", counts, share, what)


def _reader(model: str) -> ReadsTexts | None:
    """Return the embedding model of this name where it can say how much it reads."""
    try:
        found = embedder(model)
        return found if isinstance(found, ReadsTexts) else None
    except ModelError:
        return None


def _length(what: str, unit: str, values: Sequence[int], limit: int | None, reader: str) -> Length:
    ranked = sorted(values) or [0]
    over = 0.0 if limit is None else sum(value > limit for value in ranked) / len(ranked)
    at = [ranked[min(len(ranked) - 1, int(share * len(ranked)))] for share in (0.5, 0.9)]
    return Length(what, unit, len(values), at[0], at[1], ranked[-1], limit, reader, over)
