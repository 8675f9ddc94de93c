"""What was not read, in sentences: of which variants, and which comparisons are of what was cut."""

from __future__ import annotations

from collections.abc import Mapping

from rag_lab._kit.wording import listing, some_of
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.unread.unread_found import VariantUnread, is_unlike
from rag_lab.models.limits.unread import NOTICED, percent, short_name
from rag_lab.stages.steps import stage_name

_NAMED = 6  # pairs that are written out


def unread_told(comparison: Comparison) -> list[str]:
    """Return what models did not read, of which variants."""
    found = comparison.unread
    told: dict[str, list[str]] = {}
    for variant, one in found.items():
        for sentence in _of(one):
            told.setdefault(sentence, []).append(comparison.codes[variant])
    everyone = len(comparison.variants)
    return [
        f"{'Under every variant' if len(codes) == everyone else f'{listing(codes)}'}: {sentence}"
        for sentence, codes in told.items()
    ]


def measures_cutting(comparison: Comparison) -> list[str]:
    """Say which variants are at a disadvantage, as less of their text was read, where that may decide a verdict.

    What is better in spite of it stays better.
    """
    run, share = comparison.run, {name: one.share for name, one in comparison.unread.items()}
    pairs = [(plan.variant_id, run.baseline) for plan in comparison.variants if plan.variant_id != run.baseline]
    unlike = [pair for pair in dict.fromkeys([*run.pairs, *pairs]) if is_unlike(*(share.get(one) for one in pair))]
    behind = {
        max(pair, key=lambda one: share[one] or 0.0): min(pair, key=lambda one: share[one] or 0.0)
        for pair in unlike
        if not _is_better_anyway(comparison, pair, share)
    }
    if not behind:
        return []
    involved = dict.fromkeys([*behind, *behind.values()])
    told = [f"{percent(share[one] or 0.0)} of the text under {comparison.codes[one]}" for one in involved]
    codes = listing([comparison.codes[one] for one in behind])
    return [
        f"{codes} {'is' if len(behind) == 1 else 'are'} at a disadvantage: the embedding model does not read "
        f"{some_of(told, _NAMED)}, and no search finds that part by meaning; make chunks smaller, or take an embedding "
        "model that reads more."
    ]


def _is_better_anyway(comparison: Comparison, pair: tuple[str, str], share: Mapping[str, float | None]) -> bool:
    """Tell whether the variant of a pair of which less was read is found to be the better one."""
    row = comparison.pair(*pair, comparison.main_metric or "")
    wanted = "better" if (share[pair[0]] or 0.0) > (share[pair[1]] or 0.0) else "worse"
    return row is not None and row["verdict"] == wanted


def _of(one: VariantUnread) -> list[str]:
    told = []
    if one.corpus is not None and one.corpus.chunks.share_unread >= NOTICED:
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
