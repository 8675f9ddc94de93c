"""What qualifies a verdict: variants and questions without scores, metrics and comparisons that can show nothing."""

from __future__ import annotations

from rag_lab._kit.wording import counted, listing
from rag_lab.comparison.comparison import Comparison

FEW = 20  # questions: fewer show only very large differences
_ENDED = {"failed": "failed", "stopped": "was stopped by a limit"}


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
    missing = [text for plan in comparison.variants if (text := _coverage(comparison, plan.variant_id, metric))]
    if missing:
        told.append(f"Some questions could not be scored in {metric}: {listing(missing)}.")
    return [*told, *_confounded(comparison), *_unable(comparison), *_thin(comparison)]


def _confounded(comparison: Comparison) -> list[str]:
    """Return what the effects of a fraction are confounded with."""
    return [comparison.effects.confounded] if comparison.effects.confounded else []


def families_told(comparison: Comparison) -> str:
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


def _unable(comparison: Comparison) -> list[str]:
    """Name once how many comparisons cannot be significant; they count in no correction."""
    answers = {(one.metric, one.unsigned, one.questions): answer for one, answer in comparison.answers.items()}
    tested = [one for one in answers.values() if one.p_value is not None]
    unable = [one for one in tested if one.p_corrected is None]
    if not unable:
        return []
    is_are = "cannot be significant and is" if len(unable) == 1 else "cannot be significant and are"
    return [
        f"{len(unable)} of {counted(len(tested), 'comparison')} {is_are} not counted in the correction: too few "
        "questions or clusters differ for any test (fewer than six at the level of 0.05)."
    ]


def _thin(comparison: Comparison) -> list[str]:
    """Name the metrics that stand on so few questions that hardly a difference could be told."""
    scored = {metric: comparison.cell(comparison.run.baseline, metric) for metric in comparison.quality_metrics}
    few = [f"{metric} ({cell['scored']})" for metric, cell in scored.items() if cell and cell["scored"] < FEW]
    return (
        [f"Metrics with fewer than {FEW} questions, in which hardly anything can be told: {listing(few)}."]
        if few
        else []
    )


def _coverage(comparison: Comparison, variant: str, metric: str) -> str:
    row = comparison.cell(variant, metric)
    if row is None or not int(row["failed"]):
        return ""
    return f"{comparison.codes[variant]} {int(row['scored'])} of {int(row['scored']) + int(row['failed'])}"
