"""The conclusions of a run in plain words, the first thing a reviewer reads: what differs, why, and what to doubt."""

from __future__ import annotations

from rag_lab.report.comparison import Comparison
from rag_lab.report.noise import NOT_MEASURED, noise_sentences
from rag_lab.report.routing_text import conclusion
from rag_lab.report.verdict import verdict


def conclusions(comparison: Comparison) -> list[str]:
    """Return the verdict on the variants, reliable effects of a grid, whether routing pays, and the doubts."""
    metric = comparison.main_metric
    if metric is None or comparison.scores.empty:
        return verdict(comparison)
    return [
        *verdict(comparison),
        *comparison.effects.reliable_sentences(metric),
        *(conclusion(study) for study in comparison.routing),
        *(note.sentence for note in comparison.judges),
        noise_sentences(comparison)[0] if comparison.noise else NOT_MEASURED,
    ]
