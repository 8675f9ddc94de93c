"""Rows of length one, so that a dot product is the cosine."""

from __future__ import annotations

import numpy as np

from rag_lab.models.protocols import Vectors


def unit_vectors(rows: Vectors) -> Vectors:
    """Return the (n, dim) rows scaled to length one; a row of zeros stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled
