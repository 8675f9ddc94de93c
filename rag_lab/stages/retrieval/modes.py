"""What `retrieval.mode` may say: a search, searches joined by `+`, or a name for some that are combined."""

from __future__ import annotations

from rag_lab.errors import unknown_name
from rag_lab.stages.retrieval.retrieval_kinds import SEARCHES

RRF = "rrf"  # combines by reciprocal ranks
_SEVERAL: dict[str, tuple[str, ...]] = {
    "hybrid": ("dense", "bm25"),
    "multi": ("dense", "bm25", "tfidf"),
    RRF: ("dense", "bm25"),
}


class Modes:
    """The modes, as a field of a configuration knows them."""

    def names(self) -> list[str]:
        """Return what can be named without a colon."""
        return [*SEARCHES.names(), *_SEVERAL]

    def check(self, mode: str) -> str:
        """Return `mode` if it can be one.

        Raises:
            ValueError: if it can not, as a validator of pydantic says it.
        """
        for part in mode.split("+"):
            name = part.partition("?")[0]
            if ":" not in name and name not in _SEVERAL and name not in SEARCHES.names():
                sentence = unknown_name("search", name, self.names())
                raise ValueError(f"{sentence} One of your own is named module:Class.")
            if name not in _SEVERAL:
                SEARCHES.check(part)
        return mode

    def problem(self, mode: str) -> str:
        """Return why a search that `mode` names cannot be used here, or ''; see `Kind.problem`."""
        return " ".join(filter(None, map(SEARCHES.problem, searches_of(mode))))


def searches_of(mode: str) -> tuple[str, ...]:
    """Return the searches that a mode makes, each once: `hybrid+my_search:Splade` makes three."""
    return tuple(dict.fromkeys(name for part in mode.split("+") for name in _SEVERAL.get(part, (part,))))


def combines_ranks(mode: str) -> bool:
    """Tell whether a mode combines by reciprocal ranks, whatever `retrieval.normalization` says."""
    return RRF in mode.split("+")
