"""Variants whose passages differ in size: at the same rank one has read more than another, and may have found more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rag_lab._kit.wording import counted, listing, some_of
from rag_lab.config import PipelineConfig
from rag_lab.corpus.config import CorpusConfig
from rag_lab.evaluation.measures.equal_text import CHARACTERS_A_TOKEN
from rag_lab.evaluation.registry import cutoff, text_budget
from rag_lab.evaluation.shallow import ranking_depth
from rag_lab.records import Question, Trace

EQUAL_TEXT = "retrieval.evidence_recall@800tokens"
_COUNTED_IN_WORDS = "sentences"  # the splitter whose children have no size in characters
_FEW = 0.05  # of a variant's rankings; fewer that end early are not worth a sentence
_ADVICE = "fewer tokens, or a larger rerank.final_k, compare them by equal text"


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
    """Return what is to be said of comparing rankings whose hits are texts of different size, a sentence each.

    Args:
        metrics: names, as `evaluate` takes them; those that nobody knows are passed over.
        configs: the pipelines, by what a reader calls them.
        traces: what they did, by the same names, where that is known: then it is counted which rankings hold too
            little text for a metric, and else estimated.
        questions: what is asked: where their labels name no words, a rank is a file or a page, whatever its text.
    """
    names = list(metrics)
    labels = [item for question in questions for item in question.evidence]
    are_words = not labels or any(item.quote is not None for item in labels)
    ranked = [name for name in names if cutoff(name) is not None]
    by_text = [name for name in names if text_budget(name) is not None]
    told = ((_too_little(name, configs) if traces is None else _ended_early(name, traces)) for name in by_text)
    found = [sentence for sentence in told if sentence]
    variants_of: dict[Unit, list[str]] = {}
    for variant, config in configs.items():
        variants_of.setdefault(unit_of(config), []).append(variant)
    is_unequal = ranked and are_words and len(variants_of) > 1
    return [_unequal(ranked, by_text, variants_of), *found] if is_unequal else found


def unit_of(config: PipelineConfig) -> Unit:
    """Return what one hit of the final ranking is under a configuration."""
    corpus, level = config.corpus, config.retrieval.level
    if level == "document":
        return Unit("whole documents")
    if level == "child" or corpus.parents == "none":
        return _children(corpus)
    if corpus.parents == "neighbours":
        n, child = 2 * corpus.neighbours + 1, _children(corpus)
        return Unit(f"{n} neighbouring {child.name}", None if child.characters is None else n * child.characters)
    if corpus.parents == "fixed":
        return Unit(f"parents of {corpus.parent_size:,} characters", corpus.parent_size)
    return Unit(f"{corpus.parents}s")


def _children(corpus: CorpusConfig) -> Unit:
    if corpus.splitter == _COUNTED_IN_WORDS:
        return Unit(f"children of {corpus.chunk_words:,} words")
    return Unit(f"children of {corpus.chunk_size:,} characters", corpus.chunk_size)


def _unequal(ranked: list[str], by_text: list[str], variants_of: Mapping[Unit, list[str]]) -> str:
    told = "; ".join(f"{unit.name} in {some_of(variants, 3)}" for unit, variants in variants_of.items())
    compare = "compares" if len(ranked) == 1 else "compare"
    return (
        f"At the same rank the variants read different amounts of text ({told}), so {some_of(ranked, 3)} {compare} "
        f"them by unequal text; {_fair(by_text)}."
    )


def _fair(by_text: list[str]) -> str:
    if not by_text:
        return f"{EQUAL_TEXT}, added to `metrics`, compares them by equal text"
    compare = "compares" if len(by_text) == 1 else "compare"
    return f"{listing(by_text)} {compare} them by equal text"


def _too_little(metric: str, configs: Mapping[str, PipelineConfig]) -> str:
    """Return that some rankings hold less text than the metric reads; "" where none is known to."""
    wanted = text_budget(metric) or 0
    held: dict[tuple[int, int, str], list[str]] = {}
    for variant, config in configs.items():
        unit, (depth, _) = unit_of(config), ranking_depth(config)
        n_tokens = None if unit.characters is None else depth * unit.characters // CHARACTERS_A_TOKEN
        if n_tokens is not None and n_tokens < wanted:
            held.setdefault((n_tokens, depth, unit.name), []).append(variant)
    told = "; ".join(
        f"about {counted(n_tokens, 'token')} ({depth} {name}) in {some_of(variants, 3)}"
        for (n_tokens, depth, name), variants in sorted(held.items())
    )
    return told and f"Metric {metric} reads {wanted:,} tokens, but a ranking holds only {told}: {_ADVICE}."


def _ended_early(metric: str, traces: Mapping[str, Sequence[Trace]]) -> str:
    """Return which variants' rankings held less text than the metric reads, and how many; "" where few did."""
    wanted = (text_budget(metric) or 0) * CHARACTERS_A_TOKEN
    told = []
    for variant, asked in traces.items():
        sizes = [sum(hit.end - hit.start for hit in trace.ranked) for trace in asked if trace.ranked]
        n_short = sum(size < wanted for size in sizes)
        if n_short > _FEW * len(sizes):
            told.append(f"{n_short:,} of {len(sizes):,} rankings of {variant}")
    return (
        f"Metric {metric} reads {wanted // CHARACTERS_A_TOKEN:,} tokens, but {some_of(told, 5)} hold less: {_ADVICE}."
        if told
        else ""
    )
