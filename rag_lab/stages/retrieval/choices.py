"""The names that a configuration may choose from. This file imports nothing, so that configurations stay light."""

from __future__ import annotations

from typing import Literal

Normalization = Literal["none", "min_max", "z_score", "rank", "reciprocal_rank"]
Cut = Literal["none", "knee"]
Diversity = Literal["none", "mmr"]
Merging = Literal["rrf", "base_first"]

RRF_CONSTANT = 60  # Cormack, Clarke and Büttcher 2009, section 2
