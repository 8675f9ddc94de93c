"""What cut-offs do to a comparison: rankings that are shorter than a metric looks, and passages of different size.

Where all variants rank equally few hits they are compared, since all are cut alike. Where one ranks fewer than another,
the metric sees more of the other, and the two are not compared in it. Where passages differ in size, at the same rank
one variant has read more than another, and may have found more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab._kit.wording import counted, listing, some_of
from rag_lab.config import PipelineConfig
from rag_lab.evaluation.registry import cutoff, text_budget
from rag_lab.evaluation.retrieval import CHARACTERS_A_TOKEN
from rag_lab.records import Question, Trace

EQUAL_TEXT = "retrieval.evidence_recall@800tokens"
_COUNTED_IN_WORDS = "sentences"  # the splitter whose children have no size in characters
_FEW = 0.05  # of a variant's rankings; fewer that end early are not worth a sentence
NOT_COMPARED = "not compared: "
_ADVICE = "fewer tokens, or a larger rerank.final_k, compare them by equal text"


@dataclass(frozen=True, slots=True)
class Shallow:
    """A metric that looks at more ranks than the rankings of some variants can hold.

    `variants` are by the depth and the setting that decides it, shallowest first; `alike` where the metric sees as many
    ranks of all variants.
    """

    metric: str
    cutoff: int
    variants: Mapping[tuple[int, str], tuple[str, ...]]
    alike: bool

    @property
    def mark(self) -> str:
        """A few words for the metric's row."""
        depths = sorted({depth for depth, _ in self.variants})
        held = str(depths[0]) if len(depths) == 1 else f"{depths[0]} to {depths[-1]}"
        return f"{'rankings' if self.alike else 'some rankings'} hold {held}"

    def __str__(self) -> str:
        return self.sentence([self.metric])

    def sentence(self, metrics: Sequence[str]) -> str:
        """Return the sentence, of all metrics of which it is true."""
        settings = list(self.variants.items())
        held = [
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
            f"{look.format(listing(metrics))} at {self.cutoff} ranks, but a ranking holds at most {'; '.join(held)}: "
            f"what would stand below counts as not found{then}"
        )


def shallow(metrics: Iterable[str], configs: Mapping[str, PipelineConfig]) -> dict[str, Shallow]:
    """Return the caveat of each metric with a cut-off that the ranking of a variant cannot fill."""
    depths = {name: ranking_depth(config) for name, config in configs.items()}
    found = {}
    for metric in metrics:
        k = cutoff(metric) or 0
        short = sorted({depth for depth in depths.values() if depth[0] < k})
        if short:
            variants = {one: tuple(name for name, depth in depths.items() if depth == one) for one in short}
            found[metric] = Shallow(metric, k, variants, len({min(k, depth) for depth, _ in depths.values()}) == 1)
    return found


def shallow_sentences(found: Iterable[Shallow]) -> list[str]:
    """Return a sentence for all metrics that have the same caveat."""
    alike: dict[str, list[Shallow]] = {}
    for one in found:
        alike.setdefault(one.sentence([""]), []).append(one)
    return [some[0].sentence([one.metric for one in some]) for some in alike.values()]


def ranks_seen(metric: str, config: PipelineConfig) -> int | None:
    """Return how many ranks of a pipeline a metric can look at; None for one without a cut-off."""
    k = cutoff(metric)
    return None if k is None else min(k, ranking_depth(config)[0])


def ranking_depth(config: PipelineConfig) -> tuple[int, str]:
    """Return how many hits the final ranking of a question holds at most, and the setting that decides it."""
    retrieval, rerank = config.retrieval, config.rerank
    found, setting = retrieval.base_k, "retrieval.base_k"
    if config.query.hyde != "none":
        found, setting = found + retrieval.hyde_k, f"{setting} + retrieval.hyde_k"
    return min((2 * rerank.final_k, "2 x rerank.final_k"), (rerank.input_limit, "rerank.input_limit"), (found, setting))


@dataclass(frozen=True, slots=True)
class Unit:
    """What one hit of a ranking is, in words; `characters` about as many as it has, None where files decide that."""

    name: str
    characters: int | None = None


def unequal_text(
    metrics: Iterable[str],
    configs: Mapping[str, PipelineConfig],
    traces: Mapping[str, Sequence[Trace]] | None = None,
    questions: Iterable[Question] = (),
) -> list[str]:
    """Return the caveats of comparing rankings whose hits are texts of different size, a sentence each.

    Which rankings hold too little text for a metric is counted in `traces`, by the names of `configs`, or estimated
    without them. Where the labels of `questions` name no words, a rank is a file or a page, whatever its text.
    """
    names = list(metrics)
    labels = [item for question in questions for item in question.evidence]
    are_words = not labels or any(item.quote is not None for item in labels)
    ranked = [name for name in names if cutoff(name) is not None]
    by_text = [name for name in names if text_budget(name) is not None]
    short = ((_too_little(name, configs) if traces is None else _ended_early(name, traces)) for name in by_text)
    found = [sentence for sentence in short if sentence]
    variants_of: dict[Unit, list[str]] = {}
    for variant, config in configs.items():
        variants_of.setdefault(unit_of(config), []).append(variant)
    if not (ranked and are_words and len(variants_of) > 1):
        return found
    units = "; ".join(f"{unit.name} in {some_of(variants, 3)}" for unit, variants in variants_of.items())
    fair = f"{listing(by_text)} {'compares' if len(by_text) == 1 else 'compare'}" if by_text else ""
    unequal = (
        f"At the same rank the variants read different amounts of text ({units}), so {some_of(ranked, 3)} "
        f"{'compares' if len(ranked) == 1 else 'compare'} them by unequal text; "
        f"{fair or f'{EQUAL_TEXT}, added to `metrics`, compares'} them by equal text."
    )
    return [unequal, *found]


def unit_of(config: PipelineConfig) -> Unit:
    """Return what one hit of the final ranking is under a configuration."""
    corpus, level = config.corpus, config.retrieval.level
    if level == "document":
        return Unit("whole documents")
    child = Unit(f"children of {corpus.chunk_size:,} characters", corpus.chunk_size)
    if corpus.splitter == _COUNTED_IN_WORDS:
        child = Unit(f"children of {corpus.chunk_words:,} words")
    if level == "child" or corpus.parents == "none":
        return child
    if corpus.parents == "neighbours":
        n = 2 * corpus.neighbours + 1
        return Unit(f"{n} neighbouring {child.name}", None if child.characters is None else n * child.characters)
    if corpus.parents == "fixed":
        return Unit(f"parents of {corpus.parent_size:,} characters", corpus.parent_size)
    return Unit(f"{corpus.parents}s")


def _too_little(metric: str, configs: Mapping[str, PipelineConfig]) -> str:
    """Return that some rankings hold less text than the metric reads; "" where none is known to."""
    wanted = text_budget(metric) or 0
    held: dict[tuple[int, int, str], list[str]] = {}
    for variant, config in configs.items():
        unit, (depth, _) = unit_of(config), ranking_depth(config)
        n_tokens = None if unit.characters is None else depth * unit.characters // CHARACTERS_A_TOKEN
        if n_tokens is not None and n_tokens < wanted:
            held.setdefault((n_tokens, depth, unit.name), []).append(variant)
    texts = "; ".join(
        f"about {counted(n_tokens, 'token')} ({depth} {name}) in {some_of(variants, 3)}"
        for (n_tokens, depth, name), variants in sorted(held.items())
    )
    return texts and f"Metric {metric} reads {wanted:,} tokens, but a ranking holds only {texts}: {_ADVICE}."


def _ended_early(metric: str, traces: Mapping[str, Sequence[Trace]]) -> str:
    """Return which variants' rankings held less text than the metric reads, and how many; "" where few did."""
    wanted = (text_budget(metric) or 0) * CHARACTERS_A_TOKEN
    short = []
    for variant, asked in traces.items():
        sizes = [sum(hit.end - hit.start for hit in trace.ranked) for trace in asked if trace.ranked]
        n_short = sum(size < wanted for size in sizes)
        if n_short > _FEW * len(sizes):
            short.append(f"{n_short:,} of {len(sizes):,} rankings of {variant}")
    if not short:
        return ""
    n_tokens = wanted // CHARACTERS_A_TOKEN
    return f"Metric {metric} reads {n_tokens:,} tokens, but {some_of(short, 5)} hold less: {_ADVICE}."


def not_compared(metric: str, configs: Mapping[Any, PipelineConfig], variants: Iterable[Any]) -> str:
    """Return why variants are not compared in a metric, or "": one whose pipeline is not known is compared."""
    seen = {ranks_seen(metric, configs[variant]) for variant in variants if variant in configs}
    depths = sorted(depth for depth in seen if depth is not None)
    if len(depths) < 2:
        return ""
    return f"{NOT_COMPARED}{metric} sees {depths[0]} ranks of one and {depths[-1]} of the other"


def not_comparable_sentence(verdicts: Sequence[str]) -> str:
    """Say first that half of the variants, or more, are not compared with the baseline; "" where fewer are.

    `verdicts`: of each other variant, what `not_compared` or `withheld` returns, or anything else that is said of it.
    """
    reasons = [one.removeprefix(NOT_COMPARED) for one in verdicts if one.startswith(NOT_COMPARED)]
    if not reasons or 2 * len(reasons) <= len(verdicts):
        return ""
    return f"{len(reasons)} of {len(verdicts) + 1} variants cannot be compared with the baseline: {reasons[0]}."
