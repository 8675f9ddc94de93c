"""What was not read, in sentences: of which variants, and which comparisons are of what was cut."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from rag_lab._kit.wording import listing, some_of
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.step_names import stage_name
from rag_lab.comparison.unread.unread_found import VariantUnread, is_unlike
from rag_lab.models.limits.unread import percent, short_name

_NAMED = 6  # pairs that are written out


def unread_told(comparison: Comparison) -> list[str]:
    """Return what is to be known before differences are believed: comparisons of cutting first, then what was cut."""
    found = comparison.unread
    told: dict[str, list[str]] = {}
    for variant, one in found.items():
        for sentence in _of(one):
            told.setdefault(sentence, []).append(comparison.codes[variant])
    everyone = len(comparison.variants)
    return [
        *measures_cutting(comparison),
        *(
            f"{'Under every variant' if len(codes) == everyone else f'{listing(codes)}'}: {sentence}"
            for sentence, codes in told.items()
        ),
    ]


def measures_cutting(comparison: Comparison) -> list[str]:
    """Say which differences are of what was cut as well, where chunks of two variants were not cut alike."""
    run = comparison.run
    pairs = [(plan.variant_id, run.baseline) for plan in comparison.variants if plan.variant_id != run.baseline]
    unlike = [
        pair for pair in dict.fromkeys([*run.pairs, *pairs]) if is_unlike(*(_share(comparison, one) for one in pair))
    ]
    if not unlike:
        return []
    named = [f"{_cut(comparison, one)} against {_cut(comparison, other)}" for one, other in unlike]
    return [
        f"Not a fair comparison: of {some_of(named, _NAMED)} of the chunks, the embedding model read the beginning "
        "alone, so that these differences are of what was cut as well as of what was changed; make chunks smaller, or "
        "take an embedding model that reads more."
    ]


def unlike_told(comparison: Comparison, variants: Sequence[str], against: Sequence[str]) -> str:
    """Return what stands beside the difference of variants whose chunks were not cut alike, on average, or ''."""
    ours, theirs = (mean(_share(comparison, each) for each in some) if some else 0.0 for some in (variants, against))
    if not is_unlike(ours, theirs):
        return ""
    return f"or what was cut: {percent(ours)} of its chunks were not read to their end, against {percent(theirs)}"


def _share(comparison: Comparison, variant: str) -> float:
    return comparison.unread[variant].share if variant in comparison.unread else 0.0


def _cut(comparison: Comparison, variant: str) -> str:
    return f"{comparison.codes[variant]} {percent(_share(comparison, variant))}"


def _of(one: VariantUnread) -> list[str]:
    told = []
    if one.share and one.corpus is not None:
        chunks, corpus = one.corpus.chunks, one.corpus
        given = percent(corpus.given_cut / corpus.given) if corpus.given else "none"
        told.append(
            f"{chunks.told('the chunks', corpus.model)}; what stands behind, {percent(chunks.share_unread)} of the "
            f"text, is not searched by meaning, and {given} of the passages at the ranks that a reader gets stand on "
            "such a chunk."
        )
    if one.corpus is not None and one.corpus.asked_cut:
        longer_by = one.corpus.asked_tokens / one.corpus.asked_cut
        told.append(
            f"what {one.corpus.asked_cut:,} of {one.corpus.asked:,} questions were searched by is longer than "
            f"{short_name(one.corpus.model)} reads, by {longer_by:,.0f} tokens on average."
        )
    told += [
        f"{stage_name(stage)}: its model did not read all that it was sent: {found.told('questions')}."
        for stage, found in one.stages.items()
    ]
    told += [
        f"{metric}: what was to be judged was not all read, {found.told('scores')}: these judge a part."
        for metric, found in one.metrics.items()
    ]
    return told
