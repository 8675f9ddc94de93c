"""Which variant to use, in a sentence, and what it rests on: the first thing that anybody reads of a run.

With a margin it is the cheapest variant that is shown to be not worse than the best by more than the margin. Where none
is shown to be, and without a margin, a variant is recommended over the baseline where a primary finding makes it better
in the main metric, of several the one with the best mean; what takes many times the price is named with it and left to
a margin. Where none is better, with a margin, it is the cheapest that is not worse than the baseline. What looks better
and is no finding is called that. Else the baseline stays, since what adds nothing that can be seen need not be kept;
what would be cheaper is named with what it may cost. Where an experiment names its pairs, what they share stands for
the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab._kit.wording import counted, listing, p_text, plain, short_verdict, with_interval
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.caveats import FEW, measures_cutting
from rag_lab.comparison.findings.change_sentences import labels_wanted, nothing_by_labels
from rag_lab.comparison.findings.choices import (
    Choices,
    caveats,
    cost_sentence,
    gain_text,
    loss_sentences,
    margin_hint,
    margin_not_met,
    near_miss_sentence,
    open_gain_sentence,
    reference_name,
    savings,
)
from rag_lab.comparison.findings.evidence_sentences import answers_sentence, gain_sentences, largest_loss
from rag_lab.comparison.findings.statements import margin_sentence, module_rows, removed
from rag_lab.comparison.tables.bounds import BOUNDS, bound_arms
from rag_lab.comparison.tables.comparable import not_comparable_sentence
from rag_lab.comparison.tables.prices import index_sentences, surplus
from rag_lab.statistics.verdict import BELOW_NOISE, DEPENDS_ON_FAILURES

MOST_TIMES = 1000  # a larger ratio is that of a price that is nearly nothing


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do after a run.

    variant_id: the variant to use; None where the data do not say.
    headline: that in a sentence.
    answers: below it, what becomes of the answers; "" where none were asked for.
    first: the setting that loses most of the evidence; "" where none decides.
    labels: which labels are missing.
    margin_hint: how a margin would say more, of `reasons`; "" where it would not.
    reasons: what it costs, what the data rule out, and what to doubt; a sentence each.
    yaml: the whole configuration of the variant; "" where there is none.
    """

    variant_id: str | None
    headline: str
    answers: str
    first: str
    labels: tuple[str, ...]
    margin_hint: str
    reasons: tuple[str, ...]
    yaml: str

    @property
    def lines(self) -> tuple[str, ...]:
        """What stands below the headline, a sentence each."""
        return tuple(filter(None, (f"Answers: {self.answers}" if self.answers else "", self.first, *self.labels)))


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
        return _undecided(comparison, reason, gain_sentences(comparison)[1:])
    if (found := by_margin(choices)) is not None:
        variant, headline, rests_on = found
        return _made(choices, headline, variant, rests_on)
    if choices.better:
        return _use_better(choices)
    if levels := _of_better_levels(choices):
        return levels
    if choices.not_worse:
        return _use_instead(choices, choices.not_worse[0])
    return _looks_better(choices) if choices.promising else _keep_reference(choices)


def _undecided(comparison: Comparison, reason: str, told: Sequence[str] = (), hint: str = "") -> Recommendation:
    return _of(comparison, f"Undecided: {reason}", None, comparison.run.baseline, told, hint)


def _made(
    choices: Choices,
    headline: str,
    variant: str | None,
    told: Sequence[str],
    about: str | None = None,
    hint: str = "",
) -> Recommendation:
    """Return a recommendation: what `variant` lost stands with it; answers and evidence are those of `about`."""
    comparison, reference = choices.comparison, choices.reference or ""
    more = loss_sentences(comparison, variant, choices.metric) if variant is not None else []
    index = index_sentences(comparison, about or variant or reference, reference, reference_name(choices))
    return _of(comparison, headline, variant, about or variant or reference, told, hint, [*index, *more])


def _of(
    comparison: Comparison,
    headline: str,
    variant: str | None,
    about: str,
    told: Sequence[str],
    hint: str,
    costs: Sequence[str] = (),
) -> Recommendation:
    config = comparison.run.config(variant) if variant is not None else None
    rows = [comparison.difference(plan.variant_id, comparison.main_metric or "") for plan in comparison.variants[1:]]
    partly = not_comparable_sentence([str(row["verdict"]) if row else "" for row in rows])
    return Recommendation(
        variant,
        f"{partly} {headline}".strip(),
        answers_sentence(comparison, about),
        largest_loss(comparison, about),
        tuple(labels_wanted(comparison)),
        hint,
        (*measures_cutting(comparison), *told, *filter(None, [hint]), *costs, *caveats(comparison)),
        config.to_yaml() if config is not None else "",
    )


def _nothing_compared(comparison: Comparison, metric: str, choices: Choices) -> str:
    """Return why no variant can be set against the baseline, or ""."""
    cells = {plan.variant_id: comparison.cell(plan.variant_id, metric) for plan in comparison.variants}
    bounds = bound_arms(comparison)
    scored = {variant: cell for variant, cell in cells.items() if cell and cell["scored"] and variant not in bounds}
    if not scored:
        return f"no variant has a score in {metric}."
    if comparison.run.baseline not in scored:
        return f"the baseline has no score in {metric}, so there is nothing to compare with."
    if len(scored) == 1:
        cell = scored[comparison.run.baseline]
        if bounds and set(cells) <= {*scored, *bounds}:
            return "the other variants are bounds, which show how far answers can get and are no choice."
        which = "there is one variant" if len(cells) == 1 else "only the baseline has scores"
        over = counted(int(cell["scored"]), "question")
        return f"{which}, so there is nothing to compare; its mean in {metric} is {plain(cell['mean'])} over {over}."
    if choices.reference is None:
        return "the pairs that were asked about are each a question of their own, and are told below."
    if not choices.rows:
        against = choices.reference
        found = [row for variant in cells if (row := comparison.pair(variant, against, metric))]
        if not found:
            return f"no variant is compared with {reference_name(choices)} in {metric}."
        why = short_verdict(str(max(found, key=lambda row: int(row["n"]))["verdict"]))
        return f"no difference in {metric} can be told: {why}."
    return ""


def _use_better(choices: Choices) -> Recommendation:
    best, *others = sorted(choices.better, key=choices.is_dear)
    told = margin_not_met(choices)
    if others:
        told = [f"Reliably better than {reference_name(choices)} as well: {_also(choices, best, others)}.", *told]
    return _if_worth_it(choices, best, gain_text(choices, best), told, margin_hint(choices))


def _if_worth_it(choices: Choices, variant: str, does: str, told: Sequence[str], hint: str = "") -> Recommendation:
    """Recommend what is better, unless it takes many times the price: whether that pays only a margin can say."""
    name, times = choices.comparison.called(variant), choices.times(variant)
    if not choices.is_dear(variant):
        return _made(choices, f"Use {name}: {does}.", variant, told, hint=hint)
    many = f"{times:.0f}" if times < MOST_TIMES else "many"
    return _made(choices, f"{name} is better, at {many} times the price: {does}.", None, told, variant, hint)


def _also(choices: Choices, best: str, others: Sequence[str]) -> str:
    """Name what is better too, with what it saves against the best."""
    prices = choices.comparison.prices
    told = []
    for variant in others:
        less = surplus(prices, variant, best)
        saves = f", which saves {less.text} against it" if less.is_saving else ""
        dear = ", at many times the price" if choices.is_dear(variant) else ""
        told.append(f"{choices.comparison.called(variant)}{saves}{dear}")
    return "; ".join(told)


def _of_better_levels(choices: Choices) -> Recommendation | None:
    """Recommend, in a grid, the variant with the levels that are reliably better over all settings of the others."""
    comparison, better = choices.comparison, choices.better_levels
    wanted = choices.levels[comparison.run.baseline] | {factor: row.level for factor, row in better.items()}
    for variant, found in choices.levels.items():
        row = choices.rows.get(variant)
        if better and found == wanted and row and choices.sign * float(row["difference"]) > 0:
            seen = [f"{row.name} {with_interval(row.effect, row.low, row.high)}" for row in better.values()]
            does = f"over all settings of the other modules, {listing(seen)} in {comparison.directed(choices.metric)}"
            does = f"{does}; it {choices.surplus(variant).sentence}"
            return _if_worth_it(choices, variant, does, ["Set against the baseline alone, it is not reliably better."])
    return None


def _looks_better(choices: Choices) -> Recommendation:
    """Say what would be better if more questions showed the same, and why it is no finding."""
    first, comparison = choices.promising[0], choices.comparison
    row = choices.rows[first]
    why = f"; {counted(int(row['n']), 'question')} are too few"
    if any(doubt in row["doubt"] for doubt in (DEPENDS_ON_FAILURES, BELOW_NOISE)):
        why = f", but {row['doubt']}"
    score = f"{row['wins']} won, {row['losses']} lost"
    headline = f"{comparison.called(first)} looks better in {comparison.directed(choices.metric)} ({score}){why}."
    told = [near_miss_sentence(choices), f"Until more is known, {reference_name(choices)} stays.", *savings(choices)]
    return _made(choices, headline, None, [*told, *margin_not_met(choices)], first, margin_hint(choices))


def _keep_reference(choices: Choices) -> Recommendation:
    comparison, rows, reference = choices.comparison, choices.rows, choices.reference or choices.comparison.run.baseline
    metric = comparison.directed(choices.metric)
    if all(int(row["ties"]) == int(row["n"]) for row in rows.values()):
        missed = max(float(row["high"]) for row in rows.values())
        could = f"; they could have missed a difference of up to {plain(missed)}" if missed else ""
        same = f"every question scores the same in {metric} under all variants, so the price decides{could}."
        return _undecided(comparison, same, savings(choices), margin_hint(choices))
    n = max(int(row["n"]) for row in rows.values())
    told = [open_gain_sentence(choices), *savings(choices), *margin_not_met(choices)]
    verdicts = {row["verdict"] for row in rows.values()}
    if n < FEW and not verdicts & {"better", "worse"}:
        few = f"with {counted(n, 'question')} only very large differences in {metric} can be told."
        return _undecided(comparison, few, told)
    none = "the one change is not" if len(rows) == 1 else f"none of the {len(rows)} changes is"
    enough = " by enough" if "better" in verdicts else ""
    headline = f"Use {reference_name(choices)}: {none} reliably better{enough} in {metric}{_gains_little(choices)}."
    told = [cost_sentence(comparison, reference), *told]
    return _made(choices, headline, reference, told, hint=margin_hint(choices))


def _gains_little(choices: Choices) -> str:
    """Name the additions, or levels of a grid, that are shown to gain no more than the margin."""
    over, comparison = "", choices.comparison
    if comparison.effects.is_grid:
        over = "over all settings of the others "
        names = [row.name for row in module_rows(comparison) if row.factor and row.word == "not better"]
    else:
        may_go = [one for one, row in choices.rows.items() if choices.may_go(one) and row["verdict"] != "worse"]
        names = [comparison.called(one) for one in may_go]
    if not names:
        return ""
    margin, they = comparison.run.margins[choices.metric], "it" if len(names) == 1 else "they"
    return f", and {listing(names)} may be left out: {over}{they} would not gain more than {margin:g}"


def _use_instead(choices: Choices, variant: str) -> Recommendation:
    """Recommend what is not worse than the reference by the margin, though not shown so against every other variant."""
    comparison, against = choices.comparison, choices.reference or ""
    found = comparison.not_worse[(choices.metric, variant, against)]
    gone = removed(comparison, variant, against)
    headline = (
        f"Use {margin_sentence(comparison.called(variant), reference_name(choices), choices.metric, found, gone)}"
    )
    return _made(choices, headline, variant, margin_not_met(choices))


def by_margin(choices: Choices) -> tuple[str, str, list[str]] | None:
    """Return what the margin of the main metric recommends: the variant, what to do in a sentence, what that rests on.

    None without a margin, or where no variant is shown to be near the best by it. What costs more than the reference
    and is not reliably better is not recommended by its margin alone.
    """
    comparison, shown = choices.comparison, choices.near_best
    if not shown or (choices.surplus(shown[0]).is_costing and shown[0] not in choices.better):
        return None
    chosen, rows = shown[0], comparison.not_worse_than_best.to_dict("records")
    row = next(row for row in rows if row["variant_id"] == chosen)
    name = "the baseline" if chosen == comparison.run.baseline else comparison.called(chosen)
    headline = f"Use {name}: {_why(choices, chosen, row['margin'])}."
    return chosen, headline, [_proof(choices, row, len(rows)), *_saved(choices, chosen)]


def _why(choices: Choices, chosen: str, margin: float) -> str:
    """Say what the variant gains, where it is reliably better than the reference, and that it is good enough."""
    metric = choices.comparison.directed(choices.metric)
    gains = f"{gain_text(choices, chosen)}; " if chosen in choices.better else ""
    if chosen == choices.best:
        start = gains or f"it has the best mean in {metric}, and "
        return f"{start}no cheaper variant is shown to be within {margin:g} of it"
    where = "" if gains else f" in {metric}"
    near = f"it is not worse than the best variant by more than {margin:g}{where}"
    return f"{gains}{near}; no cheaper one is shown to be so"


def _proof(choices: Choices, row: Mapping[Any, Any], n_candidates: int) -> str:
    failed = int(row["n_failed"])
    lost = f", {failed} of them failed and counted against it" if failed else ""
    least = choices.comparison.called(str(row["against"]))
    others = f"each of the {n_candidates - 1} other variants, least clearly {least}" if n_candidates > 2 else least
    return (
        f"The margin holds against {others} (margin {row['margin']:g}; one-sided corrected p "
        f"{p_text(row['p_corrected'])}; {counted(int(row['n']), 'question')}{lost})."
    )


def _saved(choices: Choices, chosen: str) -> list[str]:
    """Say what the variant takes beside the one with the best mean, and beside the baseline, where that is not said."""
    comparison, best = choices.comparison, choices.best
    others = {best: f"{comparison.called(best)}, which has the best mean,"}
    if chosen not in choices.better:
        others[comparison.run.baseline] = "the baseline"
    return [
        f"Against {name} it {surplus(comparison.prices, chosen, other).sentence}."
        for other, name in others.items()
        if other != chosen
    ]
