"""Cut-offs that are deeper than the rankings they look at: `retrieval.recall@100` over ten hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rag_lab._kit.wording import listing
from rag_lab.config import PipelineConfig
from rag_lab.evaluation.registry import cutoff


@dataclass(frozen=True, slots=True)
class Shallow:
    """A metric that looks at more ranks than the rankings of some variants can hold.

    variants: by the depth and the setting that decides it, shallowest first.
    everywhere: whether these are all variants, and one depth.
    """

    metric: str
    cutoff: int
    variants: Mapping[tuple[int, str], tuple[str, ...]]
    everywhere: bool

    @property
    def mark(self) -> str:
        """A few words to stand beside the metric."""
        depths = sorted({depth for depth, _ in self.variants})
        held = str(depths[0]) if len(depths) == 1 else f"{depths[0]} to {depths[-1]}"
        return f"{'rankings' if self.everywhere else 'some rankings'} hold {held}"

    def __str__(self) -> str:
        told = [
            f"{depth} ({setting})" + ("" if self.everywhere else f" in {listing(names)}")
            for (depth, setting), names in self.variants.items()
        ]
        return (
            f"Metric {self.metric} looks at {self.cutoff} ranks, but a ranking holds at most {'; '.join(told)}: what "
            "would stand below counts as not found."
        )


def shallow(metrics: Iterable[str], configs: Mapping[str, PipelineConfig]) -> dict[str, Shallow]:
    """Return what is to be said of each metric with a cut-off that the ranking of a variant cannot fill.

    Args:
        metrics: names, as `evaluate` takes them; those that nobody knows are passed over.
        configs: the pipelines, by what a reader calls them.
    """
    depths = {name: ranking_depth(config) for name, config in configs.items()}
    found = {}
    for metric in metrics:
        k = cutoff(metric) or 0
        short = sorted({depth for depth in depths.values() if depth[0] < k})
        if short:
            variants = {one: tuple(name for name, depth in depths.items() if depth == one) for one in short}
            found[metric] = Shallow(metric, k, variants, set(depths.values()) == set(short) and len(short) == 1)
    return found


def ranking_depth(config: PipelineConfig) -> tuple[int, str]:
    """Return how many hits the final ranking of a question holds at most, and the setting that decides it."""
    retrieval, rerank = config.retrieval, config.rerank
    found, setting = retrieval.base_k, "retrieval.base_k"
    if config.query.hyde != "none":
        found, setting = found + retrieval.hyde_k, f"{setting} + retrieval.hyde_k"
    return min((2 * rerank.final_k, "2 x rerank.final_k"), (rerank.input_limit, "rerank.input_limit"), (found, setting))
