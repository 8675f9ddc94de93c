"""Which variant to use, in a sentence, and what it rests on: the first thing that anybody reads of a run.

With a margin it is the cheapest variant that is shown to be not worse than the best by more than the margin. Where none
is shown to be, and without a margin, a variant is recommended over the baseline where it is reliably better in the main
metric, of several the one with the best mean; where none is better, with a margin, the cheapest that is not worse than
the baseline. Else the baseline stays, since what adds nothing that can be seen need not be kept; what would be cheaper
is named with what it may cost. Where an experiment names its pairs, what they share stands for the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_lab._kit.numbers import plain, with_interval
from rag_lab._kit.wording import counted, listing, short_verdict
from rag_lab.comparison.advice.by_margin import by_margin
from rag_lab.comparison.advice.choices import Choices
from rag_lab.comparison.advice.gained import gained
from rag_lab.comparison.advice.module_rows import ModuleRow, module_rows
from rag_lab.comparison.advice.price import surplus
from rag_lab.comparison.advice.reasons import (
    caveats,
    left_open,
    lost,
    margin_not_met,
    margin_wanted,
    promising,
    reference_named,
    savings,
    takes,
)
from rag_lab.comparison.advice.statements import margin_sentence, removed
from rag_lab.comparison.bounds.bound_arms import BOUNDS, bound_arms
from rag_lab.comparison.changes.change_sentences import nothing_by_labels
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.unread.unread_sentences import measures_cutting
from rag_lab.comparison.verdict_caveats import FEW
from rag_lab.statistics.effects.factors import factor_values


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do after a run.

    variant_id: the variant to use; None where the data do not say.
    headline: that in a sentence.
    reasons: what it costs, what the data rule out, and what to doubt; a sentence each.
    yaml: the whole configuration of the variant; "" where there is none.
    """

    variant_id: str | None
    headline: str
    reasons: tuple[str, ...]
    yaml: str


def recommendation(comparison: Comparison) -> Recommendation:
    """Return what the run recommends; it never raises, and says why where it cannot tell."""
    metric = comparison.main_metric
    if reason := nothing_by_labels(comparison):
        return _undecided(comparison, reason, [one.sentence for one in comparison.preferences])
    if metric is None:
        return _undecided(comparison, "no quality metric was asked for, so nothing can be said about quality.")
    if labels := bound_arms(comparison).get(comparison.run.baseline):
        return _undecided(comparison, f"the baseline is a bound, which reads {BOUNDS[labels]}, so nothing can be kept.")
    choices = Choices(comparison, metric)
    if reason := _nothing_compared(comparison, metric, choices):
        return _undecided(comparison, reason)
    if (found := by_margin(choices)) is not None:
        return _use(choices, found.variant_id, found.headline, found.rests_on)
    if choices.better:
        return _use_better(choices)
    return _of_better_levels(choices) or _keep_reference(choices)


def _undecided(comparison: Comparison, reason: str, told: Sequence[str] = ()) -> Recommendation:
    reasons = (*measures_cutting(comparison), *told, *caveats(comparison))
    return Recommendation(None, f"Undecided: {reason}", reasons, "")


def _use(choices: Choices, variant: str, headline: str, told: Sequence[str]) -> Recommendation:
    comparison = choices.comparison
    config = comparison.run.config(variant)
    told = (*measures_cutting(comparison), *told)
    reasons = (*told, *lost(comparison, variant, choices.metric), *caveats(comparison))
    return Recommendation(variant, headline, reasons, config.to_yaml() if config is not None else "")


def _nothing_compared(comparison: Comparison, metric: str, choices: Choices) -> str:
    """Return why no variant can be set against the baseline, or ""."""
    cells = {plan.variant_id: comparison.cell(plan.variant_id, metric) for plan in comparison.variants}
    scored = {variant: cell for variant, cell in cells.items() if cell and cell["scored"]}
    if not scored:
        return f"no variant has a score in {metric}."
    if comparison.run.baseline not in scored:
        return f"the baseline has no score in {metric}, so there is nothing to compare with."
    if len(scored) == 1:
        cell = scored[comparison.run.baseline]
        which = "there is one variant" if len(cells) == 1 else "only the baseline has scores"
        over = counted(int(cell["scored"]), "question")
        return f"{which}, so there is nothing to compare; its mean in {metric} is {plain(cell['mean'])} over {over}."
    if choices.reference is None:
        return "the pairs that were asked about are each a question of their own, and are told below."
    if not choices.rows:
        against = choices.reference
        found = [row for variant in cells if (row := comparison.pair(variant, against, metric))]
        if not found:
            return f"no variant is compared with {reference_named(choices)} in {metric}."
        why = short_verdict(str(max(found, key=lambda row: int(row["n"]))["verdict"]))
        return f"no difference in {metric} can be told: {why}."
    return ""


def _use_better(choices: Choices) -> Recommendation:
    comparison, (best, *others) = choices.comparison, choices.better
    does = f"{gained(choices, best)} and {choices.surplus(best).sentence}"
    told = (
        [f"Reliably better than {reference_named(choices)} as well: {_also(choices, best, others)}."] if others else []
    )
    told += [*margin_not_met(choices), *margin_wanted(choices)]
    return _use(choices, best, f"Use {comparison.called(best)}: {does}.", told)


def _also(choices: Choices, best: str, others: Sequence[str]) -> str:
    """Name what is better too, with what it saves against the best."""
    prices = choices.comparison.prices
    told = []
    for variant in others:
        less = surplus(prices, variant, best)
        saves = f", which saves {less.told} against it" if less.is_saving else ""
        told.append(f"{choices.comparison.called(variant)}{saves}")
    return "; ".join(told)


def _of_better_levels(choices: Choices) -> Recommendation | None:
    """Recommend, in a grid, the variant with the levels that are reliably better over all settings of the others."""
    comparison = choices.comparison
    levels: dict[str, ModuleRow] = {}
    for row in module_rows(comparison):
        is_bound = row.factor == "answer.context" and row.level in BOUNDS
        if row.factor and row.word == "better" and not row.is_lesser and not is_bound:
            levels.setdefault(row.factor, row)
    values = factor_values({plan.variant_id: plan.changes for plan in comparison.variants}, comparison.baseline_values)
    wanted = values[comparison.run.baseline] | {factor: row.level for factor, row in levels.items()}
    for variant, found in values.items():
        if levels and found == wanted:
            seen = [f"{row.name} {with_interval(row.effect, row.low, row.high)}" for row in levels.values()]
            does = f"over all settings of the other modules, {listing(seen)} in {comparison.directed(choices.metric)}"
            headline = f"Use {comparison.called(variant)}: {does}; it {choices.surplus(variant).sentence}."
            return _use(choices, variant, headline, ["Set against the baseline alone, it is not reliably better."])
    return None


def _keep_reference(choices: Choices) -> Recommendation:
    comparison, rows, reference = choices.comparison, choices.rows, choices.reference or choices.comparison.run.baseline
    metric = comparison.directed(choices.metric)
    if choices.not_worse:
        return _use_instead(choices, choices.not_worse[0])
    if all(int(row["ties"]) == int(row["n"]) for row in rows.values()):
        missed = max(float(row["high"]) for row in rows.values())
        could = f"; they could have missed a difference of up to {plain(missed)}" if missed else ""
        same = f"every question scores the same in {metric} under all variants, so the price decides{could}."
        return _undecided(comparison, same, [*savings(choices), *margin_wanted(choices)])
    n = max(int(row["n"]) for row in rows.values())
    told = [left_open(choices), *promising(choices), *savings(choices), *margin_not_met(choices)]
    if n < FEW and not any(row["verdict"] in ("better", "worse") for row in rows.values()):
        few = f"with {counted(n, 'question')} only very large differences in {metric} can be told."
        return _undecided(comparison, few, told)
    none = "the one change is not" if len(rows) == 1 else f"none of the {len(rows)} changes is"
    headline = f"Use {reference_named(choices)}: {none} reliably better in {metric}{_gains_little(choices)}."
    return _use(choices, reference, headline, [takes(comparison, reference), *told, *margin_wanted(choices)])


def _gains_little(choices: Choices) -> str:
    """Name the additions that are shown to gain no more than the margin."""
    if choices.comparison.effects.is_grid:
        return _levels_gain_little(choices)
    answers = choices.comparison.not_worse
    found = {one: answers.get((choices.metric, one, choices.reference or "")) for one in choices.rows}
    shown = {one: by for one, by in found.items() if by and by.is_found and by.is_addition}
    useless = [choices.comparison.called(one) for one in shown if choices.rows[one]["verdict"] != "worse"]
    if not useless:
        return ""
    margin = next(iter(shown.values())).margin
    they = "it" if len(useless) == 1 else "they"
    return f", and {listing(useless)} may be left out: {they} would not gain more than {margin:g}"


def _levels_gain_little(choices: Choices) -> str:
    """Name the levels of a grid that are shown to gain, over all settings of the others, no more than the margin."""
    rows = [row for row in module_rows(choices.comparison) if row.factor and row.word == "not better"]
    if not rows:
        return ""
    margin, they = choices.comparison.run.margins[choices.metric], "it" if len(rows) == 1 else "they"
    names = listing([row.name for row in rows])
    return f", and {names} may be left out: over all settings of the others {they} would not gain more than {margin:g}"


def _use_instead(choices: Choices, variant: str) -> Recommendation:
    """Recommend what is not worse than the reference by the margin, though not shown so against every other variant."""
    comparison, against = choices.comparison, choices.reference or ""
    found = comparison.not_worse[(choices.metric, variant, against)]
    gone = removed(comparison, variant, against)
    headline = (
        f"Use {margin_sentence(comparison.called(variant), reference_named(choices), choices.metric, found, gone)}"
    )
    return _use(choices, variant, headline, margin_not_met(choices))
