"""Cut-offs that are deeper than the rankings they look at: `retrieval.recall@100` over ten hits.

Where all variants rank equally few hits they are compared, since all are cut alike. Where one ranks fewer than another,
the metric sees more of the other, and the two are not compared in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rag_lab._kit.wording import listing
from rag_lab.config import PipelineConfig
from rag_lab.evaluation.registry import cutoff


@dataclass(frozen=True, slots=True)
class Shallow:
    """A metric that looks at more ranks than the rankings of some variants can hold.

    variants: by the depth and the setting that decides it, shallowest first.
    alike: whether the metric sees as many ranks of all variants.
    """

    metric: str
    cutoff: int
    variants: Mapping[tuple[int, str], tuple[str, ...]]
    alike: bool

    @property
    def mark(self) -> str:
        """A few words to stand beside the metric."""
        depths = sorted({depth for depth, _ in self.variants})
        held = str(depths[0]) if len(depths) == 1 else f"{depths[0]} to {depths[-1]}"
        return f"{'rankings' if self.alike else 'some rankings'} hold {held}"

    def __str__(self) -> str:
        return self.told([self.metric])

    def told(self, metrics: Sequence[str]) -> str:
        """Return the sentence, of all metrics of which it is true."""
        settings = list(self.variants.items())
        told = [
            f"{depth} ({setting})" + ("" if self.alike and len(settings) == 1 else f" in {listing(names)}")
            for (depth, setting), names in settings
        ]
        then = (
            ", in all variants alike, so that they are compared."
            if self.alike
            else ". Variants of which it sees different numbers of ranks are not compared in it."
        )
        look = "Metric {} looks" if len(metrics) == 1 else "Metrics {} look"
        return (
            f"{look.format(listing(metrics))} at {self.cutoff} ranks, but a ranking holds at most {'; '.join(told)}: "
            f"what would stand below counts as not found{then}"
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
            found[metric] = Shallow(metric, k, variants, len({min(k, depth) for depth, _ in depths.values()}) == 1)
    return found


def shallow_told(found: Iterable[Shallow]) -> list[str]:
    """Return a sentence for each metric, metrics of which the same is to be said in one."""
    alike: dict[str, list[Shallow]] = {}
    for one in found:
        alike.setdefault(one.told([""]), []).append(one)
    return [some[0].told([one.metric for one in some]) for some in alike.values()]


def ranks_seen(metric: str, config: PipelineConfig) -> int | None:
    """Return how many ranks of a pipeline a metric can look at; None for one without a cut-off."""
    k = cutoff(metric)
    return None if k is None else min(k, ranking_depth(config)[0])


def comparable(metric: str, one: PipelineConfig, other: PipelineConfig) -> bool:
    """Tell whether a metric can see as many ranks of one pipeline as of the other, so that they can be compared."""
    return ranks_seen(metric, one) == ranks_seen(metric, other)


def ranking_depth(config: PipelineConfig) -> tuple[int, str]:
    """Return how many hits the final ranking of a question holds at most, and the setting that decides it."""
    retrieval, rerank = config.retrieval, config.rerank
    found, setting = retrieval.base_k, "retrieval.base_k"
    if config.query.hyde != "none":
        found, setting = found + retrieval.hyde_k, f"{setting} + retrieval.hyde_k"
    return min((2 * rerank.final_k, "2 x rerank.final_k"), (rerank.input_limit, "rerank.input_limit"), (found, setting))
