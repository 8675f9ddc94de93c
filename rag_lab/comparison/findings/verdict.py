"""What the data say, in plain words: the first thing a reviewer reads. The pairs that the run is about come first."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from rag_lab._kit.wording import counted, listing, number, p_text, plain, signed, signed_interval, with_interval
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.caveats import caveats
from rag_lab.comparison.findings.statements import margin_sentence, removed, removed_level, statement
from rag_lab.comparison.tables.comparable import is_blind
from rag_lab.comparison.tables.prices import index_sentences, latency_text

FULLY_TOLD = 3  # findings with a sentence of their own
Pair = tuple[str, str]  # a variant, and what it is compared with


def verdict(comparison: Comparison) -> list[str]:
    """Return the sentences of the verdict on the main metric, the most important first."""
    metric = comparison.main_metric
    if metric is None:
        return ["No quality metric was asked for, so nothing can be said about quality."]
    if comparison.scores.empty:
        return ["No variant has scores: the reasons stand beside the variants."]
    compared = [pair for pair in asked_pairs(comparison) if comparison.pair(*pair, metric)]
    found = [pair for pair in compared if _sign(comparison, pair, metric)]
    equal = [pair for pair in compared if _all_ties(comparison.pair(*pair, metric) or {})]
    bounded = [pair for pair in compared if pair not in found and _is_bounded(comparison, pair, metric)]
    unsettled = [pair for pair in compared if pair not in found and pair not in equal]
    doubted = [pair for pair in unsettled if (comparison.pair(*pair, metric) or {})["doubt"]]
    withheld = [pair for pair in unsettled if not (comparison.pair(*pair, metric) or {})["n"]]
    left = [pair for pair in unsettled if pair not in doubted and pair not in bounded and pair not in withheld]
    return [
        *_by_margin(comparison, bounded, metric),
        *_findings(comparison, _in_order(comparison, found), metric),
        *([_no_finding(comparison, doubted, metric)] if doubted else []),
        *([_cannot_tell(comparison, left, metric)] if left else []),
        *([_equal(comparison, equal, metric)] if equal else []),
        *([_withheld(comparison, withheld, metric)] if withheld else []),
        *_needed(comparison, metric),
        *_untested(comparison, compared, metric),
        *_other_metrics(comparison),
        *caveats(comparison, metric, is_compared=bool(compared)),
    ]


def asked_pairs(comparison: Comparison) -> list[Pair]:
    """Return the pairs that the run is about: of a grid, of which effects are, every variant and the baseline."""
    run = comparison.run
    if comparison.effects.is_grid:
        return [(plan.variant_id, run.baseline) for plan in comparison.variants[1:]]
    return list(run.pairs)


def against_name(comparison: Comparison, against: str) -> str:
    """Return what a pair is compared with, for a sentence."""
    return "the baseline" if against == comparison.run.baseline else comparison.called(against)


def _called(comparison: Comparison, pair: Pair) -> str:
    """Name a pair where several stand in a list."""
    other = "" if pair[1] == comparison.run.baseline else f" against {comparison.codes[pair[1]]}"
    return comparison.called(pair[0]) + other


def _sign(comparison: Comparison, pair: Pair, metric: str) -> int:
    row = comparison.pair(*pair, metric)
    return {"better": 1, "worse": -1}.get(str(row["verdict"]), 0) if row else 0


def _is_bounded(comparison: Comparison, pair: Pair, metric: str) -> bool:
    found = comparison.not_worse.get((metric, *pair))
    return found is not None and found.is_found


def _in_order(comparison: Comparison, pairs: Sequence[Pair]) -> list[Pair]:
    """Return pairs in the order of their variants' means, failures counted as the worst."""
    place = {variant: index for index, variant in enumerate(comparison.ranking["variant_id"])}
    return sorted(pairs, key=lambda pair: place.get(pair[0], len(place)))


def _by_margin(comparison: Comparison, pairs: Sequence[Pair], metric: str) -> list[str]:
    """Say what may be left out, what saves something first."""
    if not pairs:
        return []
    answers = {pair: comparison.not_worse[(metric, *pair)] for pair in pairs}
    ordered = sorted(pairs, key=lambda pair: not answers[pair].price.is_saving)
    sentences = [
        margin_sentence(
            comparison.called(pair[0]),
            against_name(comparison, pair[1]),
            metric,
            answers[pair],
            removed(comparison, *pair),
        )
        for pair in ordered[:FULLY_TOLD]
    ]
    rest = {
        sign: [_called(comparison, pair) for pair in ordered[FULLY_TOLD:] if answers[pair].is_addition is sign]
        for sign in (False, True)
    }
    margin = f"by more than {comparison.run.margins[metric]:g} in {metric} as well"
    told = {False: "Not worse", True: "Dearer and not better"}
    return [*sentences, *(f"{told[sign]} {margin}: {listing(names)}." for sign, names in rest.items() if names)]


def _findings(comparison: Comparison, pairs: Sequence[Pair], metric: str) -> list[str]:
    sentences = [_finding(comparison, pair, metric) for pair in pairs[:FULLY_TOLD]]
    if len(pairs) <= FULLY_TOLD:
        return sentences
    rows = {pair: comparison.pair(*pair, metric) or {} for pair in pairs[FULLY_TOLD:]}
    told = [f"{_called(comparison, pair)} {_seen(row)}{_but(comparison, pair, metric)}" for pair, row in rows.items()]
    from_baseline = all(pair[1] == comparison.run.baseline for pair in rows)
    what = "Reliably different from the baseline" if from_baseline else "Reliably different"
    return [*sentences, f"{what} in {comparison.directed(metric)} as well: {'; '.join(told)}."]


def _finding(comparison: Comparison, pair: Pair, metric: str) -> str:
    row = comparison.pair(*pair, metric) or {}
    more, is_better = float(row["difference"]) > 0, _sign(comparison, pair, metric) > 0
    verb, size = "raises" if more else "lowers", plain(abs(float(row["difference"])))
    judged = "" if more == is_better else f", which is {row['verdict']},"
    between, n, p = signed_interval(row["low"], row["high"]), int(row["n"]), p_text(row["p_corrected"])
    wins, ties, losses = int(row["wins"]), int(row["ties"]), int(row["losses"])
    return (
        f"{comparison.called(pair[0])} {verb} {metric} by {size}{judged}{_but(comparison, pair, metric)} against "
        f"{against_name(comparison, pair[1])} (95% interval of the difference {between}; {n} questions; corrected p "
        f"{p}): {wins} questions better, {ties} equal, {losses} worse.{_price(comparison, pair)}"
    )


def _but(comparison: Comparison, pair: Pair, metric: str) -> str:
    """Say that a difference, though a finding, is smaller than the margin; "" where that is not known."""
    row = comparison.pair(*pair, metric) or {}
    found = comparison.not_worse.get((metric, *pair))
    said = statement(str(row["verdict"]), found)[1]
    return f", {said}," if said else ""


def _equal(comparison: Comparison, pairs: Sequence[Pair], metric: str) -> str:
    asked = len(comparison.questions)
    rows = {pair: comparison.pair(*pair, metric) or {} for pair in pairs}
    names = [
        f"{_called(comparison, pair)} ({row['n']} of {counted(asked, 'question')}"
        f"{', the metric is blind to it' if is_blind(comparison, *pair, metric) else ''})"
        for pair, row in rows.items()
    ]
    missed = [float(row["high"]) for row in rows.values() if number(row["high"])]
    could = f"; they could have missed one of up to {plain(max(missed))} on average" if missed else ""
    of_what = " from the baseline" if all(pair[1] == comparison.run.baseline for pair in pairs) else ""
    return f"No difference{of_what} on any question compared, in {metric}: {listing(names)}{could}."


def _all_ties(row: dict[str, Any]) -> bool:
    return 0 < int(row["n"]) == int(row["ties"])


def _price(comparison: Comparison, pair: Pair) -> str:
    mine, other = (latency_text(comparison, variant) for variant in pair)
    name = "the baseline" if pair[1] == comparison.run.baseline else comparison.codes[pair[1]]
    is_told = mine and other and mine != other
    told = [f"A question takes {mine}, with {name} {other} (medians)."] if is_told else []
    return "".join(f" {one}" for one in (*told, *index_sentences(comparison, *pair, name)))


def _cannot_tell(comparison: Comparison, pairs: Sequence[Pair], metric: str) -> str:
    rows = {pair: comparison.pair(*pair, metric) or {} for pair in pairs}
    names = [f"{_called(comparison, pair)} {_seen(row)}" for pair, row in rows.items()]
    shown = [float(value) for row in rows.values() if (value := number(row["smallest_difference"])) is not None]
    n = max(int(row["n"]) for row in rows.values())
    could = f" {n} questions could have shown a difference of about {plain(median(shown))}." if shown else ""
    margin = comparison.run.margins.get(metric)
    more = "" if margin is None else f", nor whether it stays below the margin of {margin:g}"
    return f"The data cannot tell from chance, in {metric}{more}: {'; '.join(names)}.{could}"


def _no_finding(comparison: Comparison, pairs: Sequence[Pair], metric: str) -> str:
    """Name the differences that are not called one although their interval or their test alone looks so, and why."""
    rows = {pair: comparison.pair(*pair, metric) or {} for pair in pairs}
    names = [f"{_called(comparison, pair)} {_seen(row)} ({row['doubt']})" for pair, row in rows.items()]
    return f"Looks like a difference in {metric}, but is no finding: {'; '.join(names)}."


def _withheld(comparison: Comparison, pairs: Sequence[Pair], metric: str) -> str:
    rows = {pair: comparison.pair(*pair, metric) or {} for pair in pairs}
    told = [f"{_called(comparison, pair)} ({row['verdict']})" for pair, row in rows.items()]
    return f"Nothing can be told in {metric} of {'; '.join(told)}."


def _needed(comparison: Comparison, metric: str) -> list[str]:
    """Say how many questions would show what the margin does not show yet."""
    names = {(metric, *pair): _code(comparison, pair) for pair in comparison.run.pairs}
    more = {key: n for key, n in comparison.questions_for_margin.items() if n is None or n > len(comparison.questions)}
    needed = {names.get(key, f"{key[1]}={key[2]}"): n for key, n in more.items()}
    units, margin = "questions" if comparison.clusters is None else "clusters", comparison.run.margins.get(metric)
    told = [f"with {f'about {n:,}' if n else 'more than 20,000'} {units} {name}" for name, n in needed.items()]
    if margin is None or not told:
        return []
    start = listing(told)
    return [
        f"{start[:1].upper()}{start[1:]} would be shown to stay within the margin of {margin:g} in {metric} (power "
        "0.8, if in truth nothing differs)."
    ]


def main_effects_by_margin(comparison: Comparison, metric: str) -> list[str]:
    """Say of the main effects of a grid what may be left out."""
    rows = comparison.effects.table
    mains = rows[(rows["metric"] == metric) & (rows["kind"] == "main")].to_dict("records")
    told = []
    for row in mains:
        found = comparison.not_worse.get((metric, str(row["factor"]), str(row["level"])))
        if found is None or not found.is_found or row["verdict"] in ("better", "worse"):
            continue
        name, against = f"{row['factor']}={row['level']}", f"{row['factor']}={row['first']}"
        gone = removed_level(str(row["factor"]), str(row["level"]), str(row["first"]))
        told.append(margin_sentence(f"Averaged over the other modules, {name}", against, metric, found, gone))
    return told


def _untested(comparison: Comparison, pairs: Sequence[Pair], metric: str) -> list[str]:
    """Say why a margin could not be tested."""
    found = [comparison.not_worse.get((metric, *pair)) for pair in pairs]
    reasons = dict.fromkeys(one.reason for one in found if one is not None and one.reason)
    return [f"What may be left out in {metric} cannot be tested: {reason}." for reason in reasons]


def _seen(row: dict[str, Any]) -> str:
    if number(row["low"]) is None or number(row["high"]) is None:
        return f"({row['verdict']})"
    return with_interval(row["difference"], row["low"], row["high"])


def _other_metrics(comparison: Comparison) -> list[str]:
    """Name the reliable differences in the other quality metrics, and what is not worse there by their margins."""
    found, bounded = [], []
    for metric in comparison.quality_metrics[1:]:
        pairs = asked_pairs(comparison)
        told = [pair for pair in pairs if _sign(comparison, pair, metric)]
        if told:
            rows = [(_code(comparison, pair), comparison.pair(*pair, metric) or {}) for pair in told]
            seen = ", ".join(f"{code} {signed(row['difference'])}" for code, row in rows)
            found.append(f"{seen} in {comparison.directed(metric)}")
        kept = [pair for pair in pairs if pair not in told and _is_bounded(comparison, pair, metric)]
        if kept:
            names = listing([_code(comparison, pair) for pair in kept])
            bounded.append(f"{names} in {comparison.directed(metric)} ({comparison.run.margins[metric]:g})")
    return [
        *([f"Reliable differences in other metrics (secondary): {'; '.join(found)}."] if found else []),
        *([f"Within the margins of other metrics: {'; '.join(bounded)}."] if bounded else []),
    ]


def _code(comparison: Comparison, pair: Pair) -> str:
    other = "" if pair[1] == comparison.run.baseline else f" against {comparison.codes[pair[1]]}"
    return comparison.codes[pair[0]] + other
