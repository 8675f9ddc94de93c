"""What qualifies a verdict: missing scores, too few questions, text that models did not read."""

from collections.abc import Mapping
from typing import Any

from rag_lab._kit.wording import counted, listing, some_of
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.tables.reliability import VariantTruncation, is_unlike
from rag_lab.models.truncation import NOTICED, percent, short_name
from rag_lab.stages.steps import stage_name

FEW = 20  # questions: fewer show only very large differences
_ENDED = {"failed": "failed", "stopped": "was stopped by a limit"}
_NAMED = 6  # pairs that are written out
SHARE = 0.5  # of the questions that the main metric has under the variant where it has most


def caveats(comparison: Comparison, metric: str, *, is_compared: bool) -> list[str]:
    """Return a sentence for each thing that limits what is said of `metric`."""
    told = [
        f"{comparison.called(variant)} {_ENDED[comparison.state(variant)]} and is not compared."
        for variant in comparison.failed
    ]
    baseline = comparison.run.baseline
    if baseline not in comparison.failed and not is_compared:
        told.append("No other variant has scores, so there is nothing to compare the baseline with.")
    if baseline in comparison.failed:
        told.append("Without scores of the baseline no variant can be compared.")
    missing = []
    for plan in comparison.variants:
        row = comparison.cell(plan.variant_id, metric) or {"failed": 0}
        if int(row["failed"]):
            code, scored = comparison.codes[plan.variant_id], int(row["scored"])
            missing.append(f"{code} {scored} of {scored + int(row['failed'])}")
    if missing:
        told.append(f"Some questions could not be scored in {metric}: {listing(missing)}.")
    if comparison.effects.confounded:
        told.append(comparison.effects.confounded)
    answers = {(one.metric, one.unsigned, one.questions): answer for one, answer in comparison.answers.items()}
    tested = [one for one in answers.values() if one.p_value is not None]
    if unable := [one for one in tested if one.p_corrected is None]:
        was, do = ("was", "does") if len(unable) == 1 else ("were", "do")
        told.append(
            f"{len(unable)} of {counted(len(tested), 'comparison')} {was} too small to test (at the level of 0.05 six "
            f"questions or clusters have to differ) and {do} not count in the correction."
        )
    scored_in = {name: comparison.cell(baseline, name) for name in comparison.quality_metrics}
    if few := [f"{name} ({cell['scored']})" for name, cell in scored_in.items() if cell and cell["scored"] < FEW]:
        told.append(f"Metrics with fewer than {FEW} questions, in which hardly anything can be told: {listing(few)}.")
    return told


def families_sentence(comparison: Comparison) -> str:
    """Say which comparisons are primary and secondary, how many of each are tested, and at what level."""
    sizes = {one.family.name: one.family for one in comparison.answers.values() if one.p_value is not None}
    if not sizes:
        return ""
    primary, secondary = (sizes[name].n_tests if name in sizes else 0 for name in ("primary", "secondary"))
    what = "main effects and interactions" if comparison.effects.is_grid else "the pairs that the experiment is about"
    what = "the effects that the fraction can tell" if comparison.effects.confounded else what
    levels = (
        "in strict mode the primary family has 4% and the secondary 1%"
        if comparison.run.strict
        else "each family has its own 5%"
    )
    return (
        f"Primary: {counted(primary, 'comparison')} in {comparison.main_metric} ({what}), declared before the run; "
        f"secondary: {counted(secondary, 'other comparison')} that can be significant; {levels}."
    )


def truncation_sentences(comparison: Comparison) -> list[str]:
    """Return what models did not read, of which variants."""
    told: dict[str, list[str]] = {}
    for variant, one in comparison.truncation.items():
        for sentence in _truncation_of(one):
            told.setdefault(sentence, []).append(comparison.codes[variant])
    everyone = len(comparison.variants)
    return [
        f"{'Under every variant' if len(codes) == everyone else listing(codes)}: {sentence}"
        for sentence, codes in told.items()
    ]


def measures_cutting(comparison: Comparison) -> list[str]:
    """Say which variants are at a disadvantage, as less of their text was read, where that may decide a verdict.

    What is better in spite of it stays better.
    """
    run, share = comparison.run, {name: one.share for name, one in comparison.truncation.items()}
    pairs = [(plan.variant_id, run.baseline) for plan in comparison.variants if plan.variant_id != run.baseline]
    behind = {}
    for pair in dict.fromkeys([*run.pairs, *pairs]):
        if is_unlike(*(share.get(one) for one in pair)):
            less_read, more_read = sorted(pair, key=lambda one: -(share[one] or 0.0))
            row = comparison.pair(*pair, comparison.main_metric or "")
            if row is None or row["verdict"] != ("better" if less_read == pair[0] else "worse"):
                behind[less_read] = more_read
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


def _truncation_of(one: VariantTruncation) -> list[str]:
    told = []
    if one.corpus is not None and one.corpus.chunks.share_truncated >= NOTICED:
        chunks, corpus = one.corpus.chunks, one.corpus
        given = percent(corpus.given_cut / corpus.given) if corpus.given else "none"
        told.append(
            f"{chunks.text('the chunks', corpus.model)}; {percent(chunks.share_truncated)} of the text is "
            f"invisible to dense search, and {given} of the passages that readers get are of such a chunk."
        )
    if one.corpus is not None and one.corpus.asked_cut:
        longer_by = one.corpus.asked_tokens / one.corpus.asked_cut
        told.append(
            f"{one.corpus.asked_cut:,} of {one.corpus.asked:,} search queries are longer than "
            f"{short_name(one.corpus.model)} reads, by {longer_by:,.0f} tokens on average."
        )
    told += [
        f"{stage_name(stage)}: its model did not read all of its input: {found.text('questions')}."
        for stage, found in one.stages.items()
    ]
    told += [
        f"{metric}: the model did not read all of its input: {found.text('scores')}, which judge a part."
        for metric, found in one.metrics.items()
    ]
    return told


def sparse_metrics(comparison: Comparison) -> dict[str, str]:
    """Return the quality metrics with scores on less than half as many questions as the main metric, and why.

    The reason reads on after the name of the metric: `5 of 117 questions: no answer was asked for (112)`.
    """
    cells: dict[str, dict[Any, Any]] = {}
    for row in comparison.summary.to_dict("records"):
        if row["metric"] not in cells or row["scored"] > cells[row["metric"]]["scored"]:
            cells[row["metric"]] = row
    most = cells.get(comparison.main_metric or "", {"scored": 0})["scored"]
    found = {metric: cells[metric] for metric in comparison.quality_metrics if metric in cells}
    gaps, run, whys = comparison.gaps, comparison.run, {}
    for metric, cell in found.items():
        if cell["scored"] < SHARE * most:
            ours = gaps[(gaps["variant_id"] == cell["variant_id"]) & (gaps["metric"] == metric)]
            reasons = [f"{reason} ({count})" for reason, count in zip(ours["reason"], ours["count"], strict=True)]
            if 0 < len(run.answered) < len(run.questions):
                reasons.append(f"{len(run.answered)} are answered, as `limits.answers` says")
            why = f": {'; '.join(reasons)}" if reasons else ""
            whys[metric] = f"{cell['scored']} of {cell['asked']} questions{why}"
    return whys


def sparse_metric_sentences(apart: Mapping[str, str]) -> list[str]:
    """Return a sentence for each reason, with the metrics that share it."""
    by_reason: dict[str, list[str]] = {}
    for metric, why in apart.items():
        by_reason.setdefault(why, []).append(metric)
    return [f"{', '.join(metrics)}: {why}." for why, metrics in by_reason.items()]
