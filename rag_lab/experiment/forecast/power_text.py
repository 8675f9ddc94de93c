"""What an experiment declares before it is run, and what it can and cannot show, as text."""

from collections.abc import Sequence
from itertools import groupby
from textwrap import fill

from rag_lab._kit.wording import counted, listing, plain
from rag_lab.comparison.tables.comparable import not_comparable_sentence, not_compared
from rag_lab.evaluation.cutoff_caveats import comparable
from rag_lab.evaluation.registry import ParsedName
from rag_lab.experiment.forecast.power_forecast import PlannedComparison, PowerForecast, measured_questions, n_units
from rag_lab.experiment.plan import Plan
from rag_lab.report.table import Table
from rag_lab.statistics.non_inferiority.planning import LEAST_QUESTIONS
from rag_lab.statistics.randomization import smallest_n
from rag_lab.statistics.verdict import ALPHA

_FEWEST = smallest_n(ALPHA)
_NAMED = 5  # pairs that are written out
_HEADER = ("metric", "comparison", "questions", "can show", "margin", "power", "takes")
_WIDTH = 110  # of lines of prose
_TENTH = 10


def not_compared_sentence(plan: Plan) -> str:
    """Say that half of the variants, or more, cannot be compared with the baseline in the primary metric; else ""."""
    primary, baseline = _decides(plan), plan.expansion.baseline.variant_id
    if primary is None:
        return ""
    configs = {variant.variant_id: variant.config for variant in plan.variants}
    return not_comparable_sentence(
        [not_compared(primary.name, configs, (one, baseline)) for one in configs if one != baseline]
    )


def declared_sentences(plan: Plan) -> list[str]:
    """Return what is primary, at which level, the margins, and one sentence for each thing that cannot be concluded."""
    primary = _decides(plan)
    if primary is None:
        return ["Nothing is primary: no metric says which variant is better, so that none will be called better."]
    if len(plan.variants) == 1:
        return [f"Primary: {primary.name}, of one variant; nothing is compared."]
    level = (
        "Strict: of 5% for all that is called a difference by chance, 4% are for what is primary, 1% for the rest."
        if plan.experiment.strict
        else "Each of the two has its own 5% for what is called a difference by chance."
    )
    sentences = [f"Primary: {primary.name}, {_family(plan, primary.name)}; all else is secondary. {level}"]
    if plan.margins:
        named = listing([f"{margin:g} in {metric}" for metric, margin in plan.margins.items()])
        sentences.append(f"Margin: {named}; what is not worse by more may be left out.")
    else:
        example = "0.05" if (primary.info.low, primary.info.high) == (0.0, 1.0) else "..."
        sentences.append(
            "No margin is declared, so that of no variant it can be said that it may be left out: give the largest "
            f"loss that you would bear, as in `margin: {{{primary.name}: {example}}}`."
        )
    if primary.info.scale.worst is None:
        sentences.append(
            f"{primary.name} has no worst value: what fails cannot be counted as one, so that where anything fails "
            "neither a difference can be called reliable nor a variant be left out."
        )
    if (n := n_units(plan, measured_questions(plan, primary))) < _FEWEST:
        what = counted(n, "question") if plan.experiment.clusters == "none" else f"{n} clusters and single questions"
        sentences.append(
            f"{primary.name} can be measured on {what} alone: with fewer than {_FEWEST} no difference can be told from "
            "chance."
        )
    return sentences


def _decides(plan: Plan) -> ParsedName | None:
    return next((metric for metric in plan.metrics if not metric.info.is_cost), None)


def _family(plan: Plan, metric: str) -> str:
    configs = {variant.variant_id: variant.config for variant in plan.variants}
    pairs = [(one, other) for one, other in plan.pairs if comparable(metric, configs[one], configs[other])]
    given, n = plan.experiment, counted(len(pairs), "comparison")
    if plan.rounds:
        return (
            "the winner of the race against the baseline, one comparison"
            if given.design == "racing"
            else ("what is chosen against the baseline, one comparison on questions that chose nothing")
        )
    if given.design == "grid" and len(given.factors) > 1:
        return "the main effects and interactions of the grid"
    if given.design == "fractional" and len(given.factors) > 1:
        return "the effects that the fraction can tell"
    if given.design != "list" or given.pairs == "baseline":
        return f"{n} with the baseline"
    if isinstance(given.pairs, tuple):
        named = [f"{variant} against {against}" for variant, against in pairs]
        more = [f"{len(named) - _NAMED} more"] if len(named) > _NAMED else []
        return f"{n}: {listing([*named[:_NAMED], *more])}"
    return f"{n}, every pair of variants"


def power_text(forecast: PowerForecast, command: str = "rag-lab plan EXPERIMENT.yaml") -> str:
    """Return the table and what follows from it, "" where nothing is compared; `command` is what would run a pilot."""
    notes = power_notes(forecast, command)
    return power_table(forecast).with_notes(notes) if forecast.rows else fill(" ".join(notes), _WIDTH)


def power_notes(forecast: PowerForecast, command: str = "rag-lab plan EXPERIMENT.yaml") -> list[str]:
    """Return what the columns mean and what follows, or what to do where nothing is known of the spread."""
    if not forecast.rows:
        why = f" ({forecast.source})" if forecast.source else ""
        what_to_do = (
            f"What it can show is not known before the variants have been seen on {LEAST_QUESTIONS} questions{why}: "
            f"`{command} --pilot {LEAST_QUESTIONS}` asks them, and --from takes an earlier run."
        )
        return [what_to_do] if forecast.compares else []
    legend = "can show: the smallest true difference that is found with a power of 0.8."
    if any(row.power is not None for row in forecast.rows):
        legend += (
            ' power: the chance of "not worse by more than the margin" if nothing differs; takes: the questions that '
            "give it 0.8."
        )
    notes, by_reason, others = [legend, *_fewer(forecast)], dict[tuple[str, str], list[str]](), dict[str, list[str]]()
    for metric, of_metric in groupby(forecast.rows, key=lambda row: row.metric):
        rows = list(of_metric)
        if rows[0].is_primary or rows[0].margin is not None:
            for row in rows:
                if row.reason:
                    by_reason.setdefault((metric, row.reason), []).append(row.comparison)
        elif all(row.reason for row in rows):  # of the other metrics that by which the pilot has too little of them
            others.setdefault(rows[0].reason, []).append(metric)
    for (metric, why), names in by_reason.items():
        notes.append(f"Not plannable in {metric}: {listing(names)}, as {why}.")
    notes += [f"Not plannable: {listing(metrics)}, as {why}." for why, metrics in others.items()]
    if forecast.lacks and all(row.margin is None for row in forecast.rows):
        metric, tenth = forecast.rows[0].metric, plain(forecast.lacks / _TENTH)
        notes.append(
            f"A margin is the largest loss of {metric} that you would accept for the seconds and tokens that a module "
            f"costs. The baseline lacks {plain(forecast.lacks)} to the best value: a tenth of that is `margin: "
            f"{{{metric}: {tenth}}}`. Choose it before the run."
        )
    return notes


def power_table(forecast: PowerForecast) -> Table:
    """Return a row each comparison of a metric that is primary or has a margin, and one for each other metric."""
    cells: list[tuple[str, ...]] = []
    for metric, of_metric in groupby(forecast.rows, key=lambda row: row.metric):
        several = list(of_metric)
        if not several[0].is_primary and several[0].margin is None:
            cells.append((metric, f"all {len(several)}", f"{several[0].n:,}", _smallest(several), "-", "-", "-"))
            continue
        for row in several:
            margin, power, takes = "-" if row.margin is None else f"{row.margin:g}", "-", "-"
            if row.reason:
                power = takes = "?"
            elif row.power is not None:
                power = f"{row.power:.2f}"
                takes = "> 20,000" if row.questions is None else f"{_two_digits(row.questions):,}"
            cells.append((metric, row.comparison, f"{row.n:,}", _smallest([row]), margin, power, takes))
    return Table(f"What it can show, by the spread seen in {forecast.source}", _HEADER, tuple(cells), 2)


def _smallest(rows: Sequence[PlannedComparison]) -> str:
    known = [row for row in rows if not row.reason]
    found = sorted({plain(row.smallest) for row in known if row.smallest is not None})
    if not found:
        return "nothing" if known else "?"
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _fewer(forecast: PowerForecast) -> list[str]:
    """Say what naming fewer variants or metrics would buy."""
    sentences = []
    for metric, of_metric in groupby(forecast.rows, key=lambda row: row.metric):
        known = [row for row in of_metric if row.questions and row.in_half and row.alone]
        needs = [(row.questions or 0, row.in_half or 0, row.alone or 0) for row in known]
        if len(known) > 1:
            all_, half, alone = (_two_digits(max(n)) for n in zip(*needs, strict=True))
            sentences.append(
                f"All {len(known)} comparisons of {metric} take {all_:,} questions for the margin, "
                f"{-(-len(known) // 2)} of them {half:,}, one alone {alone:,}: name fewer variants, or ask more."
            )
    if forecast.fewer_variants:
        half_off, one_off = forecast.fewer_variants
        sentences.append(
            f"With half of the comparisons the smallest difference is {half_off:.0%} smaller, with one alone "
            f"{one_off:.0%}."
        )
    if forecast.fewer_metrics:
        sentences.append(
            f"In one of the other metrics, named without the rest of them, it is {forecast.fewer_metrics:.0%} smaller."
        )
    return sentences


def _two_digits(number: int) -> int:
    """Round up to two significant digits: a pilot knows no better."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
