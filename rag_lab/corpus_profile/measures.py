"""What is measured of a corpus: lengths against what models read, files that say nearly the same, tables.

Of two files each is the set of its runs of five words, thinned by their digests to a sample that is the same for the
same text; they are as alike as their samples: shared runs of all runs (Broder 1997, "On the resemblance and containment
of documents").
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations

from rag_lab.config import PipelineConfig
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.corpus.spans import row_spans
from rag_lab.errors import ModelError
from rag_lab.models.shared import embedder
from rag_lab.models.truncation import ReadsTexts, estimated_tokens

_SAMPLE = 4000  # texts that are counted, evenly spread
_WORD = re.compile(r"\w+")
_RUN = 5  # words
_RUNS = 256  # runs of a file, those of the smallest digests
_LEAST = 0.5
_MOST_FILES = 30  # that share a run; what stands in more is a letterhead
_LEAST_ROWS = 3
_COLUMNS = re.compile(r"(?<=[^\s.):•–-])  +(?=\S)")  # the gap between two cells; after `2.` it is a list's


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
        longer = f"{self.over:.{0 if self.over >= 0.01 else 1}%} are longer and are cut"
        return f"{spread}; {self.reader} reads {self.limit:,}: {longer if self.over else 'all are read whole'}"


def lengths_of_chunks(index: CorpusIndex, config: PipelineConfig) -> Iterator[Length]:
    """Yield the lengths of pages, of chunks as the embedding model counts them, and of parents as a reader does."""
    yield _length("pages", "characters", [len(page.text) for page in index.chunks.documents()], None, "")
    children = [child.text for child in index.chunks.children()]
    sample = children[:: max(1, len(children) // _SAMPLE)]
    model = config.models.embedding
    try:
        reads: object = embedder(model)
    except ModelError:
        reads = None
    if isinstance(reads, ReadsTexts) and reads.most_tokens:
        yield _length("chunks", "word pieces", reads.text_tokens(sample, "document"), reads.most_tokens, model)
    else:
        yield _length("chunks", "characters", list(map(len, children)), None, "")
    share = config.answer.context_tokens // config.rerank.final_k
    parents = index.chunks.parents()
    counts = [estimated_tokens(parent.text) for parent in parents[:: max(1, len(parents) // _SAMPLE)]]
    what = f"each of {config.rerank.final_k} passages in {config.answer.context_tokens:,} tokens of context"
    yield _length("passages", "tokens at most", counts, share, what)


def _length(what: str, unit: str, values: Sequence[int], limit: int | None, reader: str) -> Length:
    ranked = sorted(values) or [0]
    over = 0.0 if limit is None else sum(value > limit for value in ranked) / len(ranked)
    at = [ranked[min(len(ranked) - 1, int(share * len(ranked)))] for share in (0.5, 0.9)]
    return Length(what, unit, len(values), at[0], at[1], ranked[-1], limit, reader, over)


@dataclass(frozen=True, slots=True)
class SimilarFiles:
    """Two files by their sources, and how alike they are: 1 is the same words in the same order."""

    first: str
    second: str
    similarity: float

    def __str__(self) -> str:
        return f"{self.first} and {self.second} ({self.similarity:.0%} alike)"


def similar_files(texts: Mapping[str, str]) -> list[SimilarFiles]:
    """Return the pairs of files, by source, of which half the runs of words or more are the same; most alike first."""
    samples = {source: _sample(text) for source, text in texts.items()}
    holders: dict[bytes, list[str]] = defaultdict(list)
    for source, sample in sorted(samples.items()):
        for run in sample:
            holders[run].append(source)
    shared = Counter(pair for files in holders.values() if len(files) <= _MOST_FILES for pair in combinations(files, 2))
    pairs = (SimilarFiles(*pair, _resemblance(samples[pair[0]], samples[pair[1]])) for pair in shared)
    return sorted((p for p in pairs if p.similarity >= _LEAST), key=lambda p: (-p.similarity, p.first, p.second))


def _sample(text: str) -> frozenset[bytes]:
    words = _WORD.findall(text.casefold())
    runs = {" ".join(words[start : start + _RUN]) for start in range(max(1, len(words) - _RUN + 1))} if words else set()
    return frozenset(_smallest(blake2b(run.encode(), digest_size=8).digest() for run in runs))


def _smallest(digests: Iterable[bytes]) -> list[bytes]:
    return sorted(set(digests))[:_RUNS]


def _resemblance(first: frozenset[bytes], second: frozenset[bytes]) -> float:
    """Return the share of shared runs among the smallest of both together, which estimates that among all."""
    both = _smallest([*first, *second])
    return sum(run in first and run in second for run in both) / len(both)


def holds_table(text: str) -> bool:
    """Tell whether three lines that follow each other are rows of a table."""
    if len(row_spans(text)) >= _LEAST_ROWS:
        return True
    following = 0
    for line in text.split("\n"):
        following = following + 1 if _COLUMNS.search(line.strip()) else 0
        if following >= _LEAST_ROWS:
            return True
    return False
