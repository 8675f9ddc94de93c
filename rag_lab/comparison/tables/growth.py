"""How pipelines fare as documents that answer nothing join the corpus, and what the larger index takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab._kit.wording import counted, plain, with_interval
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics.effects import level_text
from rag_lab.statistics.families import Hypothesis, answers


@dataclass(frozen=True)
class Growth:
    """The pipelines of a run that searched corpora of several sizes, in the main metric.

    sizes: numbers of distractors, rising.
    curves: of each pipeline, by the levels of the other factors, its variants by size; each has at least two.
    sentences: which pipeline is best at either end, and how far the two lie apart.
    """

    metric: str
    sizes: tuple[int, ...]
    curves: Mapping[str, Mapping[int, str]]
    sentences: tuple[str, ...]


def growth_found(tables: RunTables) -> Growth | None:
    """Return how pipelines fare as the corpus grows; None where no pipeline was scored at two sizes."""
    metric, curves = tables.main_metric or "", dict[str, dict[int, str]]()
    keys = [key for key in tables.changed_keys if key not in ("corpus.distractors", "corpus.distractors_from")]
    for plan in tables.variants:
        config, cell = tables.pipelines.get(plan.variant_id), tables.cell(plan.variant_id, metric)
        if config is not None and cell and cell["scored"]:
            values = {**config.flat(), **plan.changes}  # objects in place of modules are in the changes alone
            name = ", ".join(f"{key}={level_text(values[key])}" for key in keys if key in values) or "The pipeline"
            curves.setdefault(name, {}).setdefault(config.corpus.distractors, plan.variant_id)
    curves = {name: dict(sorted(found.items())) for name, found in curves.items() if len(found) > 1}
    if not curves:
        return None
    sizes = tuple(sorted({size for found in curves.values() for size in found}))
    return Growth(metric, sizes, curves, tuple(_sentences(tables, metric, sizes, curves)))


def _sentences(
    tables: RunTables, metric: str, sizes: Sequence[int], curves: Mapping[str, Mapping[int, str]]
) -> list[str]:
    """Say which pipeline is best with the fewest and with the most distractors, of those that were scored with both."""
    ends = {name: (found[sizes[0]], found[sizes[-1]]) for name, found in curves.items() if {*sizes} <= {*found}}
    if not ends:
        return []
    few, many = f"{sizes[0]:,}", f"{sizes[-1]:,} distractors"
    cells = {name: tuple(_mean(tables, variant, metric) for variant in pair) for name, pair in ends.items()}
    first = max(cells, key=lambda name: tables.sign(metric) * cells[name][0])
    last = max(cells, key=lambda name: tables.sign(metric) * cells[name][1])
    falls = f"from {plain(cells[first][0])} to {plain(cells[first][1])}"
    if len(cells) == 1:
        return [f"{metric} of {first} goes {falls}, from {few} to {many}."]
    if first == last:
        return [f"{first} is the best in {metric} with {few} and with {many}: it goes {falls}."]
    pair = Hypothesis.of_pair(metric, ends[last][1], ends[first][1])
    found = answers(tables.quality_scores, [pair], tables.options)[pair].difference
    return [
        f"The best pipeline in {metric} changes as the corpus grows: {first} with {few}, {last} with {many}. There the "
        f"two differ by {with_interval(found.mean, found.low, found.high)} ({counted(found.n, 'question')}); "
        f"{first} goes {falls}."
    ]


def _mean(tables: RunTables, variant: str, metric: str) -> float:
    cell: Any = tables.cell(variant, metric)
    return float(cell["mean"])
