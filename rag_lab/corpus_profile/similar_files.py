"""Files that say nearly the same: revisions of a document, drafts and copies in another format.

Each file is the set of its runs of five words, thinned by their digests to a sample that is the same for the same
text. Two files are as alike as their samples: shared runs of all runs (Broder 1997, "On the resemblance and containment
of documents").
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations

_WORD = re.compile(r"\w+")
_RUN = 5  # words
_SAMPLE = 256  # runs of a file, those of the smallest digests
_LEAST = 0.5
_MOST_FILES = 30  # that share a run; what stands in more is a letterhead


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
    return sorted(set(digests))[:_SAMPLE]


def _resemblance(first: frozenset[bytes], second: frozenset[bytes]) -> float:
    """Return the share of shared runs among the smallest of both together, which estimates that among all."""
    both = _smallest([*first, *second])
    return sum(run in first and run in second for run in both) / len(both)
