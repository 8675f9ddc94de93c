"""How much of a score is noise, as the report says it."""

from __future__ import annotations

from rag_lab.comparison.run_tables import RunTables
from rag_lab.statistics.noise_components import noise_sentence

NOT_MEASURED = (
    "The noise was not measured, since every question was asked once: how much the same run would differ from itself "
    "is not known; `repeats: 2` or more in the experiment file measures it."
)


def noise_sentences(tables: RunTables) -> list[str]:
    """Return a sentence a metric, or one that the noise was not measured."""
    told = [noise_sentence(found, metric) for metric, found in tables.noise.items()]
    return told or [NOT_MEASURED]
