"""Which variant to use, in a sentence, and what the data rule out: the first thing that anybody reads of a run.

A variant is recommended over the baseline where it is reliably better in the main metric. Of several, it is the
cheapest that the 95% interval of its difference from the best of them does not put behind it, or at one price the one
that changes less. Where none is, the baseline stays, since what adds nothing that can be seen need not be kept; what
would be cheaper is named with what it may cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_lab._kit.numbers import plain, with_interval
from rag_lab._kit.wording import counted, listing, short_verdict
from rag_lab.comparison.advice.choices import Choices, Row
from rag_lab.comparison.advice.module_rows import ModuleRow, module_rows
from rag_lab.comparison.advice.price import surplus
from rag_lab.comparison.advice.reasons import caveats, left_open, lost, promising, savings, seen, takes
from rag_lab.comparison.changes.change_sentences import nothing_by_labels
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.verdict_sentences import FEW, named
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
    choices = Choices(comparison, metric)
    if reason := _nothing_compared(comparison, metric, choices):
        return _undecided(comparison, reason)
    if choices.better:
        return _use_better(choices)
    return _of_better_levels(choices) or _keep_baseline(choices)


def _undecided(comparison: Comparison, reason: str, told: Sequence[str] = ()) -> Recommendation:
    return Recommendation(None, f"Undecided: {reason}", (*told, *caveats(comparison)), "")


def _use(choices: Choices, variant: str, headline: str, told: Sequence[str]) -> Recommendation:
    comparison = choices.comparison
    config = comparison.run.config(variant)
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
    if not choices.rows:
        found = [row for variant in cells if (row := comparison.difference(variant, metric))]
        if not found:
            return f"{metric} sees another number of ranks of every variant than of the baseline, so none is compared."
        why = short_verdict(str(max(found, key=lambda row: int(row["n"]))["verdict"]))
        return f"no difference in {metric} can be told: {why}."
    return ""


def _use_better(choices: Choices) -> Recommendation:
    comparison, (best, *others) = choices.comparison, choices.better
    cheaper = choices.instead(best, others) if others else None
    chosen = str(cheaper["variant_id"]) if cheaper else best
    row = choices.rows[chosen]
    verb = "raises" if float(row["difference"]) > 0 else "lowers"
    by = f"{plain(abs(row['difference']))} [{_interval(row)}]"
    does = f"it {verb} {comparison.directed(choices.metric)} by {by} and {choices.surplus(chosen).sentence}"
    told = [_against_best(choices, best, cheaper)] if cheaper else []
    rest = [comparison.codes[variant] for variant in others if variant != chosen]
    if rest:
        told.append(f"Reliably better than the baseline as well: {listing(rest)}.")
    return _use(choices, chosen, f"Use {named(comparison, chosen)}: {does}.", told)


def _interval(row: Row) -> str:
    """Write the interval of the size of a difference."""
    ends = sorted(abs(float(row[end])) for end in ("low", "high"))
    return f"{plain(ends[0])} to {plain(ends[1])}"


def _against_best(choices: Choices, best: str, row: Row) -> str:
    comparison, chosen = choices.comparison, str(row["variant_id"])
    worst = choices.ends(row)[0]
    gives = f"gives up at most {plain(abs(worst))}" if worst * choices.sign < 0 else "gives up nothing"
    price = surplus(comparison.prices, best, chosen)
    costs = "at about the same price" if price.is_same else f"and {price.sentence} more"
    return (
        f"{named(comparison, best)} has the best mean {costs}; against it {comparison.codes[chosen]} "
        f"{'changes less and ' if price.is_same else ''}{gives} (95% interval of the difference: {seen(row)})."
    )


def _of_better_levels(choices: Choices) -> Recommendation | None:
    """Recommend, in a grid, the variant with the levels that are reliably better over all settings of the others."""
    comparison = choices.comparison
    levels: dict[str, ModuleRow] = {}
    for row in module_rows(comparison):
        if row.factor and row.word == "better":
            levels.setdefault(row.factor, row)
    values = factor_values({plan.variant_id: plan.changes for plan in comparison.variants}, comparison.baseline_values)
    wanted = values[comparison.run.baseline] | {factor: row.level for factor, row in levels.items()}
    for variant, found in values.items():
        if levels and found == wanted:
            seen = [f"{row.name} {with_interval(row.effect, row.low, row.high)}" for row in levels.values()]
            does = f"over all settings of the other modules, {listing(seen)} in {comparison.directed(choices.metric)}"
            headline = f"Use {named(comparison, variant)}: {does}; it {choices.surplus(variant).sentence}."
            return _use(choices, variant, headline, ["Set against the baseline alone, it is not reliably better."])
    return None


def _keep_baseline(choices: Choices) -> Recommendation:
    comparison, rows = choices.comparison, choices.rows
    metric = comparison.directed(choices.metric)
    if all(int(row["ties"]) == int(row["n"]) for row in rows.values()):
        same = f"every question scores the same in {metric} under all variants, so the price decides."
        return _undecided(comparison, same, savings(choices))
    n = max(int(row["n"]) for row in rows.values())
    told = [left_open(choices), *promising(choices), *savings(choices)]
    if n < FEW and not any(comparison.reliable(variant, choices.metric) for variant in rows):
        few = f"with {counted(n, 'question')} only very large differences in {metric} can be told."
        return _undecided(comparison, few, told)
    none = "the one change is not" if len(rows) == 1 else f"none of the {len(rows)} changes is"
    base = comparison.run.baseline
    headline = f"Use the baseline: {none} reliably better in {metric}."
    return _use(choices, base, headline, [takes(comparison), *told])
