"""What stands behind a recommendation, a sentence each: its price, what the data rule out, and what to doubt."""

from __future__ import annotations

from dataclasses import replace

from rag_lab._kit.wording import DASH, counted, listing, number, plain, signed, with_interval
from rag_lab.comparison.advice.blind import unmoved
from rag_lab.comparison.advice.choices import Choices, Row
from rag_lab.comparison.advice.price import Price, took_told
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.verdict_sentences import against_named
from rag_lab.runs.margins import post_hoc_sentence

MOST_SAVINGS = 2  # cheaper variants that are told one by one


def reference_named(choices: Choices) -> str:
    """Name what variants are set against."""
    return against_named(choices.comparison, choices.reference or choices.comparison.run.baseline)


def gained(choices: Choices, variant: str) -> str:
    """Say what a variant that is reliably better gains: `it raises ndcg@5 by 0.1 [0.05 to 0.15] and costs 1.9 s …`."""
    row = choices.rows[variant]
    verb = "raises" if float(row["difference"]) > 0 else "lowers"
    ends = sorted(abs(float(row[end])) for end in ("low", "high"))
    size = f"{plain(abs(row['difference']))} [{plain(ends[0])} to {plain(ends[1])}]"
    metric = choices.comparison.directed(choices.metric)
    return f"it {verb} {metric} by {size} and {choices.surplus(variant).sentence}"


def margin_wanted(choices: Choices) -> list[str]:
    """Say how the report could tell what pays and what may be left out, where no margin was given and one could be."""
    comparison, metric = choices.comparison, choices.metric
    scale = comparison.scales.get(metric)
    if metric in comparison.run.margins or scale is None or scale.width is None:
        return []
    return [
        "A margin, the largest loss that you would accept, says what pays and what may be left out: `margin: "
        f"{{{metric}: …}}` in the experiment file before it runs, or then `rag-lab report RUN --margin {metric}=…`."
    ]


def margin_not_met(choices: Choices) -> list[str]:
    """Say that nothing was shown by the margin that was given, or nothing that would be recommended."""
    comparison, near = choices.comparison, choices.near_best
    margin = comparison.run.margins.get(choices.metric)
    if margin is None:
        return []
    near_best = f"shown to be not worse than the best by more than {margin:g}"
    if not near:
        return [f"No variant is {near_best}."]
    name = comparison.called(near[0])
    return [
        f"{name} is {near_best}, but costs more than {reference_named(choices)}, and no gain is shown that pays it."
    ]


def takes(comparison: Comparison, variant: str) -> str:
    """Say what a question takes under a variant, search and answer apart."""
    without_time = replace(comparison.prices.get(variant, Price()), seconds=None).told
    told = [one for one in (took_told(comparison, variant), without_time) if one and one != DASH]
    return f"It takes {listing(told) or DASH} a question."


def why_no_finding(choices: Choices) -> str:
    """Say of what looks better why it is no finding."""
    told = [
        f"{choices.comparison.called(variant)} {with_interval(row['difference'], row['low'], row['high'])}: "
        f"{row['doubt'] or 'found by a secondary comparison alone'}"
        for variant, row in choices.rows.items()
        if variant in choices.promising
    ]
    return f"Promising, but no finding: {'; '.join(told)}."


def left_open(choices: Choices) -> str:
    """Name the largest gain that an interval leaves open: any larger one is ruled out."""
    ends = {variant: choices.ends(row)[1] for variant, row in choices.rows.items()}
    variant = max(ends, key=lambda one: choices.sign * ends[one])
    if choices.sign * ends[variant] <= 0:
        return "No 95% interval leaves a gain open."
    return (
        f"The largest gain that a 95% interval leaves open is {signed(ends[variant])}, of "
        f"{choices.comparison.called(variant)}, which {choices.surplus(variant).sentence}."
    )


def savings(choices: Choices) -> list[str]:
    """Say what the variants would save that are not behind the baseline, and what each may cost."""
    told = [_saving(choices, variant, choices.rows[variant]) for variant in choices.savings[:MOST_SAVINGS]]
    more = len(choices.savings) - len(told)
    return [*told, f"{counted(more, 'more variant')} would save something."] if more > 0 else told


def _saving(choices: Choices, variant: str, row: Row) -> str:
    comparison, metric = choices.comparison, choices.metric
    may = f"by its 95% interval it changes {metric} by {signed(choices.ends(row)[0])} at worst"
    if int(row["ties"]) == int(row["n"]):
        fields = unmoved(comparison, variant, choices.reference or "", metric)
        blind = f"; but {metric} reads only the {fields}, which it does not change" if fields else ""
        may = f"it scores the same on every question{blind}"
    return f"{comparison.called(variant)} {choices.surplus(variant).sentence}: {may}."


def lost(comparison: Comparison, variant: str, metric: str) -> list[str]:
    """Say how many questions failed under a variant."""
    cell = comparison.cell(variant, metric) or {}
    if not number(cell.get("failed")):
        return []
    return [f"{int(cell['failed'])} of its {counted(int(cell['asked']), 'question')} failed and are not compared."]


def caveats(comparison: Comparison) -> list[str]:
    """Name modules whose effects reliably depend on each other, variants without scores, and what was declared late."""
    codes = [comparison.codes[variant] for variant in comparison.failed]
    absent = [f"Without scores, and so not compared: {listing(codes)}."] if codes else []
    late = post_hoc_sentence(comparison.run)
    return [*_interactions(comparison), *absent, *([late] if late else [])]


def _interactions(comparison: Comparison) -> list[str]:
    table = comparison.effects.table
    is_found = (table["kind"] == "interaction") & table["verdict"].isin(["better", "worse"])
    rows = table[is_found & (table["metric"] == comparison.main_metric)]
    pairs = list(dict.fromkeys(f"{row.factor} and {row.other}" for row in rows.itertuples()))
    if not pairs:
        return []
    return [f"What each does depends on the other, which averages hide: {'; '.join(pairs)} (reliable interaction)."]
