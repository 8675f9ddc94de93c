"""Which variant to use, in a sentence, and what it rests on: the first thing that anybody reads of a run.

With a margin it is the cheapest variant that is shown to be not worse than the best by more than the margin. Where none
is shown to be, and without a margin, a variant is recommended over the baseline where a primary finding makes it better
in the main metric, of several the one with the best mean; what takes many times the price is named with it and left to
a margin. Where none is better, with a margin, it is the cheapest that is not worse than the baseline. What looks better
and is no finding is called that. Else the baseline stays, since what adds nothing that can be seen need not be kept;
what would be cheaper is named with what it may cost. Where an experiment names its pairs, what they share stands for
the baseline.
"""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_lab._kit.wording import DASH, counted, listing, number, p_text, plain, short_verdict, signed, with_interval
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings import SAYS
from rag_lab.comparison.findings.trace_findings import answers_sentence, gain_sentences, labels_wanted, largest_loss
from rag_lab.comparison.findings.verdict import FEW, measures_cutting
from rag_lab.comparison.findings.verdict_sentences import Choices, Verdict, choices_of, margin_sentence, module_rows
from rag_lab.comparison.tables.bounds import BOUNDS, bound_arms
from rag_lab.comparison.tables.costs import Price, index_sentences, latency_text, surplus
from rag_lab.evaluation.cutoff_caveats import not_comparable_sentence
from rag_lab.runs.human_input import post_hoc_sentence
from rag_lab.statistics.verdict import BELOW_NOISE, DEPENDS_ON_FAILURES, resolution

MOST = 20_000  # questions: beyond that nobody has them
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


def recommendation(comparison: Comparison) -> Recommendation:
    """Return what the run recommends; it never raises, and says why where it cannot tell."""
    metric, bounds, undecided = comparison.main_metric, bound_arms(comparison), "Undecided: "
    if comparison.is_unlabelled and not comparison.is_measured:
        reason = "no question has a label, so it can be said what each variant changes, and not which is better."
        return _advice(comparison, undecided + reason, [one.sentence for one in comparison.preferences])
    if metric is None:
        return _advice(comparison, f"{undecided}no quality metric was asked for, so nothing can be said about quality.")
    if labels := bounds.get(comparison.run.baseline):
        reason = f"the baseline is a bound, which reads {BOUNDS[labels]}, so nothing can be kept."
        return _advice(comparison, undecided + reason)
    choices = choices_of(comparison, metric)
    if reason := _nothing_compared(choices):
        return _advice(comparison, undecided + reason, gain_sentences(comparison)[1:])
    if (near_best := _near_best(choices)) is not None:
        return near_best
    if choices.better:
        best, *others = sorted(choices.better, key=lambda one: choices.dear(one) > 0)
        told = []
        for variant in others:
            less = surplus(comparison.prices, variant, best)
            saves = f", which saves {less.text} against it" if less.is_saving else ""
            dear = ", at many times the price" if choices.dear(variant) else ""
            told.append(f"{comparison.called(variant)}{saves}{dear}")
        as_well = [f"Reliably better than {choices.name} as well: {'; '.join(told)}."] if told else []
        return _if_worth_it(
            choices, best, choices.gain_text(best), [*as_well, *choices.margin_not_met()], choices.margin_hint
        )
    if levels := _of_better_levels(choices):
        return levels
    not_worse = [
        variant
        for variant, one in choices.rows.items()
        if (by := one.by_margin) and by.is_found and not by.is_addition and by.price.is_saving
    ]
    if not_worse:  # than the reference, though not shown so against every other variant
        one = choices.rows[choices.cheapest_first(not_worse)[0]]
        headline = f"Use {margin_sentence(one)}"
        return _advice(comparison, headline, choices.margin_not_met(), choices=choices, variant=one.variant_id)
    return _looks_better(choices) if choices.promising else _keep_reference(choices)


def _advice(
    comparison: Comparison,
    headline: str,
    told: Sequence[str] = (),
    *,
    choices: Choices | None = None,
    variant: str | None = None,
    about: str | None = None,
    hint: str = "",
) -> Recommendation:
    """Return a recommendation with what the index takes and what failed; answers and evidence are those of `about`."""
    metric, config = comparison.main_metric or "", comparison.run.config(variant) if variant is not None else None
    shown, extra = about or variant or (choices and choices.reference) or comparison.run.baseline, []
    if choices is not None:
        extra += index_sentences(comparison, shown, choices.reference or "", choices.name)
        cell = comparison.cell(variant or "", metric) or {}
        if number(cell.get("failed")):
            asked = counted(int(cell["asked"]), "question")
            extra.append(f"{int(cell['failed'])} of its {asked} failed and are not compared.")
    table = comparison.effects.table
    is_found = (table["kind"] == "interaction") & table["verdict"].isin(["better", "worse"])
    pairs = table[is_found & (table["metric"] == metric)]
    if names := list(dict.fromkeys(f"{row.factor} and {row.other}" for row in pairs.itertuples())):
        hidden = "; ".join(names)
        extra.append(f"What each does depends on the other, which averages hide: {hidden} (reliable interaction).")
    if comparison.failed:
        codes = listing([comparison.codes[failed] for failed in comparison.failed])
        extra.append(f"Without scores, and so not compared: {codes}.")
    rows = [comparison.difference(plan.variant_id, metric) for plan in comparison.variants[1:]]
    partly = not_comparable_sentence([str(row["verdict"]) if row else "" for row in rows])
    reasons = (*measures_cutting(comparison), *told, hint, *extra, post_hoc_sentence(comparison.run))
    return Recommendation(
        variant,
        f"{partly} {headline}".strip(),
        answers_sentence(comparison, shown),
        largest_loss(comparison, shown),
        tuple(labels_wanted(comparison)),
        hint,
        tuple(reason for reason in reasons if reason),
        config.to_yaml() if config is not None else "",
    )


def _nothing_compared(choices: Choices) -> str:
    """Return why no variant can be set against the baseline, or ""."""
    comparison, metric, bounds = choices.comparison, choices.metric, bound_arms(choices.comparison)
    cells = {plan.variant_id: comparison.cell(plan.variant_id, metric) for plan in comparison.variants}
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
    if choices.rows:
        return ""
    found = [row for variant in cells if (row := comparison.pair(variant, choices.reference, metric))]
    if not found:
        return f"no variant is compared with {choices.name} in {metric}."
    why = short_verdict(str(max(found, key=lambda row: int(row["n"]))["verdict"]))
    return f"no difference in {metric} can be told: {why}."


def _if_worth_it(choices: Choices, variant: str, does: str, told: Sequence[str], hint: str = "") -> Recommendation:
    """Recommend what is better, unless it takes many times the price: whether that pays only a margin can say."""
    comparison, name, times = choices.comparison, choices.comparison.called(variant), choices.dear(variant)
    if not times:
        return _advice(comparison, f"Use {name}: {does}.", told, choices=choices, variant=variant, hint=hint)
    many = f"{times:.0f}" if times < MOST_TIMES else "many"
    headline = f"{name} is better, at {many} times the price: {does}."
    return _advice(comparison, headline, told, choices=choices, about=variant, hint=hint)


def _of_better_levels(choices: Choices) -> Recommendation | None:
    """Recommend, in a grid, the variant with the levels that are reliably better over all settings of the others."""
    comparison, better = choices.comparison, choices.better_levels
    wanted = choices.levels[comparison.run.baseline] | {factor: row.level for factor, row in better.items()}
    variant = next((one for one, levels in choices.levels.items() if levels == wanted and one in choices.rows), None)
    if not better or variant is None or comparison.sign(choices.metric) * (choices.rows[variant].effect or 0.0) <= 0:
        return None
    seen = [f"{row.name} {with_interval(row.effect, row.low, row.high)}" for row in better.values()]
    does = f"over all settings of the other modules, {listing(seen)} in {comparison.directed(choices.metric)}"
    does = f"{does}; it {choices.surplus(variant).sentence}"
    return _if_worth_it(choices, variant, does, ["Set against the baseline alone, it is not reliably better."])


def _looks_better(choices: Choices) -> Recommendation:
    """Say what would be better if more questions showed the same, and why it is no finding."""
    one, promising = choices.rows[choices.promising[0]], []
    why = f"; {counted(one.n, 'question')} are too few"
    if any(doubt in one.row["doubt"] for doubt in (DEPENDS_ON_FAILURES, BELOW_NOISE)):
        why = f", but {one.row['doubt']}"
    score = f"{one.row['wins']} won, {one.row['losses']} lost"
    headline = f"{one.called} looks better in {choices.comparison.directed(choices.metric)} ({score}){why}."
    for variant, other in choices.rows.items():
        if variant in choices.promising:
            no_finding = other.row["doubt"] or "found by a secondary comparison alone"
            promising.append(f"{other.called} {with_interval(other.effect, other.low, other.high)}: {no_finding}")
    told = [
        f"Promising, but no finding: {'; '.join(promising)}.",
        f"Until more is known, {choices.name} stays.",
        *choices.savings(),
        *choices.margin_not_met(),
    ]
    hint = choices.margin_hint
    return _advice(choices.comparison, headline, told, choices=choices, about=one.variant_id, hint=hint)


def _keep_reference(choices: Choices) -> Recommendation:
    comparison, rows, reference = choices.comparison, choices.rows, choices.reference or choices.comparison.run.baseline
    metric, hint = comparison.directed(choices.metric), choices.margin_hint
    if all(one.is_equal for one in rows.values()):
        missed = max(one.high or 0.0 for one in rows.values())
        could = f"; they could have missed a difference of up to {plain(missed)}" if missed else ""
        same = f"every question scores the same in {metric} under all variants, so the price decides{could}."
        return _advice(comparison, f"Undecided: {same}", choices.savings(), hint=hint)
    n, sign = max(one.n for one in rows.values()), comparison.sign(choices.metric)
    ends = {variant: choices.ends(one)[1] for variant, one in rows.items()}
    widest = max(ends, key=lambda one: sign * ends[one])
    gain = "No 95% interval leaves a gain open."
    if sign * ends[widest] > 0:
        name, does = comparison.called(widest), choices.surplus(widest).sentence
        gain = SAYS["largest_gain"].format(gain=signed(ends[widest]), name=name, does=does)
    told = [gain, *choices.savings(), *choices.margin_not_met()]
    verdicts = {one.row["verdict"] for one in rows.values()}
    if n < FEW and not verdicts & {"better", "worse"}:
        few = f"with {counted(n, 'question')} only very large differences in {metric} can be told."
        return _advice(comparison, f"Undecided: {few}", told)
    # The additions, or levels of a grid, that are shown to gain no more than the margin.
    over, left_out = "", ""
    names = [one.called for one in rows.values() if one.gains_little]
    if comparison.effects.is_grid:
        over = "over all settings of the others "
        names = [row.name for row in module_rows(comparison) if row.factor and row.word == "not better"]
    if names:
        margin, they = comparison.run.margins[choices.metric], "it" if len(names) == 1 else "they"
        left_out = f", and {listing(names)} may be left out: {over}{they} would not gain more than {margin:g}"
    none = "the one change is not" if len(rows) == 1 else f"none of the {len(rows)} changes is"
    enough = " by enough" if "better" in verdicts else ""
    headline = f"Use {choices.name}: {none} reliably better{enough} in {metric}{left_out}."
    without_time = replace(comparison.prices.get(reference, Price()), seconds=None).text
    takes = [one for one in (latency_text(comparison, reference), without_time) if one and one != DASH]
    told = [f"It takes {listing(takes) if takes else DASH} a question.", *told]
    return _advice(comparison, headline, told, choices=choices, variant=reference, hint=hint)


def _near_best(choices: Choices) -> Recommendation | None:
    """Return what the margin of the main metric recommends: the cheapest variant that is shown to be near the best.

    None without a margin, or where no variant is shown to be. What costs more than the reference and is not reliably
    better is not recommended by its margin alone.
    """
    comparison, shown = choices.comparison, choices.near_best
    if not shown or (choices.surplus(shown[0]).is_costing and shown[0] not in choices.better):
        return None
    chosen, metric = shown[0], comparison.directed(choices.metric)
    rows = comparison.not_worse_than_best.to_dict("records")
    row = next(row for row in rows if row["variant_id"] == chosen)
    order = comparison.ranking["variant_id"]
    best = str(order[~order.isin([*bound_arms(comparison)])].iloc[0])
    gains = f"{choices.gain_text(chosen)}; " if chosen in choices.better else ""
    if chosen == best:
        why = gains or f"it has the best mean in {metric}, and "
        why += f"no cheaper variant is shown to be within {row['margin']:g} of it"
    else:
        why = f"{gains}it is not worse than the best variant by more than {row['margin']:g}"
        why += f"{'' if gains else f' in {metric}'}; no cheaper one is shown to be so"
    failed, least = int(row["n_failed"]), comparison.called(str(row["against"]))
    failures = f", {failed} of them failed and counted against it" if failed else ""
    others = f"each of the {len(rows) - 1} other variants, least clearly {least}" if len(rows) > 2 else least
    n, p_value = f"{counted(int(row['n']), 'question')}{failures}", p_text(row["p_corrected"])
    told = [SAYS["margin_holds"].format(others=others, margin=row["margin"], p_value=p_value, n=n)]
    against = {best: f"{comparison.called(best)}, which has the best mean,"}
    if chosen not in choices.better:  # else the headline says what it takes more than the reference
        against[comparison.run.baseline] = "the baseline"
    for other, name in against.items():
        if other != chosen:
            told.append(f"Against {name} it {surplus(comparison.prices, chosen, other).sentence}.")
    name = "the baseline" if chosen == comparison.run.baseline else comparison.called(chosen)
    return _advice(comparison, f"Use {name}: {why}.", told, choices=choices, variant=chosen)


def next_command(comparison: Comparison) -> str:
    """Return the one command that would settle the comparison which is nearest to being settled, with its price.

    A sentence; where the dataset is too small it says how many questions are missing; "" where nothing can be settled.

    The difference that was seen, and a margin where there is one, say how many questions that takes (power 0.8).
    """
    run = comparison.run
    open_ones = [(n, one) for one in module_rows(comparison) if one.variant_id and (n := _needed(comparison, one))]
    if not open_ones or comparison.race or comparison.clusters is not None:
        return ""
    needed, one = min(open_ones, key=lambda pair: pair[0])
    asked, more = len(run.questions), math.ceil(needed * len(run.questions) / one.n) - len(run.questions)
    unasked = sum(n for reason, n in run.left_out.items() if reason.startswith("beyond limits.questions"))
    if more <= 0 or needed > MOST:
        return ""
    if more > unasked:
        of = {"n": asked + more, "dataset": run.dataset, "has": asked + unasked, "more": more - unasked}
        return SAYS["write_more"].format(name=one.called, **of)
    names = [name for name in (one.variant_id, one.against_id) if name != run.baseline]
    path = run.file or f"results/{run.name}/experiment.yaml"
    command = [
        "rag-lab",
        "sweep",
        path,
        *(part for name in names for part in ("--only", name)),
        "--questions",
        f"+{more}",
    ]
    prices = [comparison.prices[name] for name in {one.variant_id, one.against_id} if name in comparison.prices]
    seconds, usd = (math.fsum(getattr(price, name) or 0.0 for price in prices) * more for name in ("seconds", "usd"))
    cost = listing([f"about {max(1, round(seconds / 60)):,} minutes", *([f"${usd:,.2f}"] if usd else [])])
    return f"To settle {one.called}, with {counted(more, 'more question')}: `{shlex.join(command)}` ({cost})."


def _needed(comparison: Comparison, one: Verdict) -> float | None:
    """Return how many questions with a score would settle a comparison that is open."""
    if one.word != "cannot tell" or not one.n or one.effect is None:
        return None
    resolved = resolution(one.effect, number(one.row["smallest_difference"]))
    by_margin = comparison.questions_for_margin.get((one.metric, one.variant_id, one.against_id))
    found = [one.n / resolved if resolved else None, float(by_margin) if by_margin else None]
    return min((n for n in found if n is not None), default=None)
