"""The names that a configuration may choose from. This file imports nothing, so that configurations stay light."""

from __future__ import annotations

from typing import Literal

Mode = Literal["dense", "bm25", "tfidf", "hybrid", "multi", "rrf"]
Normalization = Literal["none", "min_max", "z_score", "rank", "reciprocal_rank"]
Cut = Literal["none", "knee"]
Diversity = Literal["none", "mmr"]

# The searches that each mode makes; those of a mode with several are combined.
SEARCHES: dict[Mode, tuple[str, ...]] = {
    "dense": ("dense",),
    "bm25": ("bm25",),
    "tfidf": ("tfidf",),
    "hybrid": ("dense", "bm25"),
    "multi": ("dense", "bm25", "tfidf"),
    "rrf": ("dense", "bm25"),
}
RRF_CONSTANT = 60  # Cormack, Clarke and Büttcher 2009, section 2
