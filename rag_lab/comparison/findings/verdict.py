"""What the data say, in plain words: the first thing a reviewer reads. The pairs that the run is about come first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rag_lab._kit.wording import (
    counted,
    listing,
    number,
    p_text,
    plain,
    signed,
    signed_interval,
    with_interval,
)
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.caveats import caveats
from rag_lab.comparison.findings.statements import margin_sentence, removed, removed_level, statement
from rag_lab.comparison.tables.comparable import is_blind
from rag_lab.comparison.tables.not_worse import NotWorse
from rag_lab.comparison.tables.prices import index_sentences, latency_text

WRITTEN_OUT = 3  # findings with a sentence of their own


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What is known of one pair in one metric: its row of `differences`, and what the margin allows one to say."""

    comparison: Comparison
    metric: str
    pair: tuple[str, str]  # a variant, and what it is compared with
    row: dict[str, Any]
    by_margin: NotWorse | None

    @property
    def sign(self) -> int:
        """1 or -1 where the variant is reliably better or worse, else 0."""
        return {"better": 1, "worse": -1}.get(str(self.row["verdict"]), 0)

    @property
    def is_equal(self) -> bool:
        """Whether the two score the same on every question."""
        return 0 < int(self.row["n"]) == int(self.row["ties"])

    @property
    def is_bounded(self) -> bool:
        """Whether the margin allows one to say something."""
        return self.by_margin is not None and self.by_margin.is_found

    @property
    def is_from_baseline(self) -> bool:
        """Whether the variant is compared with the baseline."""
        return self.pair[1] == self.comparison.run.baseline

    def name(self, called: str) -> str:
        """Name the pair where several stand in a list, the variant as `called`."""
        return called + ("" if self.is_from_baseline else f" against {self.comparison.codes[self.pair[1]]}")

    @property
    def called(self) -> str:
        """The pair by letters and labels."""
        return self.name(self.comparison.called(self.pair[0]))

    @property
    def code(self) -> str:
        """The pair by letters."""
        return self.name(self.comparison.codes[self.pair[0]])

    @property
    def effect(self) -> str:
        """The difference with its interval, or why there is none."""
        if number(self.row["low"]) is None or number(self.row["high"]) is None:
            return f"({self.row['verdict']})"
        return with_interval(self.row["difference"], self.row["low"], self.row["high"])

    @property
    def caveat(self) -> str:
        """That a difference, though a finding, is smaller than the margin; "" where that is not known."""
        text = statement(str(self.row["verdict"]), self.by_margin)[1]
        return f", {text}," if text else ""


def pair_verdicts(comparison: Comparison, metric: str) -> list[PairVerdict]:
    """Return the pairs that the run is about, of a grid every variant and the baseline, as far as they are compared."""
    run = comparison.run
    pairs = list(run.pairs)
    if comparison.effects.is_grid:
        pairs = [(plan.variant_id, run.baseline) for plan in comparison.variants[1:]]
    rows = {pair: comparison.pair(*pair, metric) for pair in pairs}
    margins = comparison.not_worse
    return [
        PairVerdict(comparison, metric, pair, row, margins.get((metric, *pair))) for pair, row in rows.items() if row
    ]


def verdict(comparison: Comparison) -> list[str]:
    """Return the sentences of the verdict on the main metric, the most important first."""
    metric = comparison.main_metric
    if metric is None:
        return ["No quality metric was asked for, so nothing can be said about quality."]
    if comparison.scores.empty:
        return ["No variant has scores: the reasons stand beside the variants."]
    compared = pair_verdicts(comparison, metric)
    found = [one for one in compared if one.sign]
    equal = [one for one in compared if one.is_equal]
    bounded = [one for one in compared if one.is_bounded and not one.sign]
    unsettled = [one for one in compared if not one.sign and not one.is_equal]
    doubted = [one for one in unsettled if one.row["doubt"]]
    withheld = [one for one in unsettled if not one.row["n"]]
    left = [one for one in unsettled if not one.row["doubt"] and not one.is_bounded and one.row["n"]]
    place = {variant: index for index, variant in enumerate(comparison.ranking["variant_id"])}
    in_order = sorted(found, key=lambda one: place.get(one.pair[0], len(place)))  # failures count as the worst
    sentences = [
        *_by_margin(bounded),
        *_findings(in_order),
        _joined(f"Looks like a difference in {metric}, but is no finding: ", doubted, "{0.effect} ({0.row[doubt]})"),
        _cannot_tell(left),
        _equal(equal),
        _joined(f"Nothing can be told in {metric} of ", withheld, "({0.row[verdict]})"),
        *_needed(comparison, metric),
        *_untested(compared),
        *_other_metrics(comparison),
        *caveats(comparison, metric, is_compared=bool(compared)),
    ]
    return [sentence for sentence in sentences if sentence]


def against_name(comparison: Comparison, against: str) -> str:
    """Return what a pair is compared with, for a sentence."""
    return "the baseline" if against == comparison.run.baseline else comparison.called(against)


def _joined(start: str, pairs: Sequence[PairVerdict], what: str) -> str:
    """Return one sentence on several pairs, each with what the template `what` shows of it; "" without pairs."""
    return f"{start}{'; '.join(f'{one.called} {what.format(one)}' for one in pairs)}." if pairs else ""


def _by_margin(pairs: Sequence[PairVerdict]) -> list[str]:
    """Say what may be left out, what saves something first."""
    known = [(one, one.by_margin) for one in pairs if one.by_margin is not None]
    ordered = sorted(known, key=lambda item: not item[1].price.is_saving)
    sentences = []
    for one, found in ordered[:WRITTEN_OUT]:
        names = one.comparison.called(one.pair[0]), against_name(one.comparison, one.pair[1])
        sentences.append(margin_sentence(*names, one.metric, found, removed(one.comparison, *one.pair)))
    for is_addition, start in ((False, "Not worse"), (True, "Dearer and not better")):
        rest = [(one, found) for one, found in ordered[WRITTEN_OUT:] if found.is_addition is is_addition]
        if rest:
            margin, metric = rest[0][1].margin, rest[0][0].metric
            names_of = listing([one.called for one, _ in rest])
            sentences.append(f"{start} by more than {margin:g} in {metric} as well: {names_of}.")
    return sentences


def _findings(pairs: Sequence[PairVerdict]) -> list[str]:
    sentences, rest = [_finding(one) for one in pairs[:WRITTEN_OUT]], pairs[WRITTEN_OUT:]
    from_baseline = " from the baseline" if all(one.is_from_baseline for one in rest) else ""
    metric = rest[0].comparison.directed(rest[0].metric) if rest else ""
    start = f"Reliably different{from_baseline} in {metric} as well: "
    return [*sentences, _joined(start, rest, "{0.effect}{0.caveat}")]


def _finding(one: PairVerdict) -> str:
    comparison, row, (variant, against) = one.comparison, one.row, one.pair
    more = float(row["difference"]) > 0
    verb, size = "raises" if more else "lowers", plain(abs(float(row["difference"])))
    judged = "" if more == (one.sign > 0) else f", which is {row['verdict']},"
    between, p = signed_interval(row["low"], row["high"]), p_text(row["p_corrected"])
    mine, other = latency_text(comparison, variant), latency_text(comparison, against)
    name = "the baseline" if one.is_from_baseline else comparison.codes[against]
    time = [f"A question takes {mine}, with {name} {other} (medians)."] if mine and other and mine != other else []
    price = "".join(f" {sentence}" for sentence in (*time, *index_sentences(comparison, variant, against, name)))
    return (
        f"{comparison.called(variant)} {verb} {one.metric} by {size}{judged}{one.caveat} against "
        f"{against_name(comparison, against)} (95% interval of the difference {between}; {row['n']} questions; "
        f"corrected p {p}): {row['wins']} questions better, {row['ties']} equal, {row['losses']} worse.{price}"
    )


def _equal(pairs: Sequence[PairVerdict]) -> str:
    if not pairs:
        return ""
    comparison, metric = pairs[0].comparison, pairs[0].metric
    asked = counted(len(comparison.questions), "question")
    blind = {one.pair: is_blind(comparison, *one.pair, metric) for one in pairs}
    names = [
        f"{one.called} ({one.row['n']} of {asked}{', the metric is blind to it' if blind[one.pair] else ''})"
        for one in pairs
    ]
    missed = [float(one.row["high"]) for one in pairs if number(one.row["high"])]
    could = f"; they could have missed one of up to {plain(max(missed))} on average" if missed else ""
    of_what = " from the baseline" if all(one.is_from_baseline for one in pairs) else ""
    return f"No difference{of_what} on any question compared, in {metric}: {listing(names)}{could}."


def _cannot_tell(pairs: Sequence[PairVerdict]) -> str:
    if not pairs:
        return ""
    smallest = [number(one.row["smallest_difference"]) for one in pairs]
    shown = [value for value in smallest if value is not None]
    n, margin = max(int(one.row["n"]) for one in pairs), pairs[0].comparison.run.margins.get(pairs[0].metric)
    could = f" {n} questions could have shown a difference of about {plain(median(shown))}." if shown else ""
    more = "" if margin is None else f", nor whether it stays below the margin of {margin:g}"
    return _joined(f"The data cannot tell from chance, in {pairs[0].metric}{more}: ", pairs, "{0.effect}") + could


def _needed(comparison: Comparison, metric: str) -> list[str]:
    """Say how many questions would show what the margin does not show yet."""
    codes, baseline = comparison.codes, comparison.run.baseline
    names = {
        (metric, *pair): codes[pair[0]] + ("" if pair[1] == baseline else f" against {codes[pair[1]]}")
        for pair in comparison.run.pairs
    }
    needed = {
        names.get(key, f"{key[1]}={key[2]}"): n
        for key, n in comparison.questions_for_margin.items()
        if n is None or n > len(comparison.questions)
    }
    units, margin = "questions" if comparison.clusters is None else "clusters", comparison.run.margins.get(metric)
    if margin is None or not needed:
        return []
    start = listing(
        [f"with {f'about {n:,}' if n else 'more than 20,000'} {units} {name}" for name, n in needed.items()]
    )
    return [
        f"{start[:1].upper()}{start[1:]} would be shown to stay within the margin of {margin:g} in {metric} (power "
        "0.8, if in truth nothing differs)."
    ]


def main_effects_by_margin(comparison: Comparison, metric: str) -> list[str]:
    """Say of the main effects of a grid what may be left out."""
    rows = comparison.effects.table
    sentences = []
    for row in rows[(rows["metric"] == metric) & (rows["kind"] == "main")].to_dict("records"):
        factor, level, first = str(row["factor"]), str(row["level"]), str(row["first"])
        found = comparison.not_worse.get((metric, factor, level))
        if found is None or not found.is_found or row["verdict"] in ("better", "worse"):
            continue
        names = f"Averaged over the other modules, {factor}={level}", f"{factor}={first}"
        sentences.append(margin_sentence(*names, metric, found, removed_level(factor, level, first)))
    return sentences


def _untested(pairs: Iterable[PairVerdict]) -> list[str]:
    """Say why a margin could not be tested."""
    reasons = {(one.by_margin.reason, one.metric): None for one in pairs if one.by_margin and one.by_margin.reason}
    return [f"What may be left out in {metric} cannot be tested: {reason}." for reason, metric in reasons]


def _other_metrics(comparison: Comparison) -> list[str]:
    """Name the reliable differences in the other quality metrics, and what is not worse there by their margins."""
    found, bounded = [], []
    for metric in comparison.quality_metrics[1:]:
        pairs, name = pair_verdicts(comparison, metric), comparison.directed(metric)
        if reliable := [f"{one.code} {signed(one.row['difference'])}" for one in pairs if one.sign]:
            found.append(f"{', '.join(reliable)} in {name}")
        if kept := [one.code for one in pairs if one.is_bounded and not one.sign]:
            bounded.append(f"{listing(kept)} in {name} ({comparison.run.margins[metric]:g})")
    return [
        f"Reliable differences in other metrics (secondary): {'; '.join(found)}." if found else "",
        f"Within the margins of other metrics: {'; '.join(bounded)}." if bounded else "",
    ]
