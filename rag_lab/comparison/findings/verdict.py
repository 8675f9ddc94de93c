"""What the data say, in plain words: the first thing a reviewer reads. The pairs that the run is about come first."""

from collections.abc import Sequence
from statistics import median

from rag_lab._kit.wording import counted, listing, number, p_text, plain, signed, signed_interval, with_interval
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.caveats import caveats
from rag_lab.comparison.findings.statements import Verdict, margin_sentence, pair_verdict
from rag_lab.comparison.tables.prices import index_sentences, latency_text

WRITTEN_OUT = 3  # findings with a sentence of their own
Pair = tuple[str, str]  # a variant, and what it is compared with


def verdict(comparison: Comparison) -> list[str]:
    """Return the sentences of the verdict on the main metric, the most important first."""
    metric = comparison.main_metric
    if metric is None:
        return ["No quality metric was asked for, so nothing can be said about quality."]
    if comparison.scores.empty:
        return ["No variant has scores: the reasons stand beside the variants."]
    pairs = [pair for pair in _pairs(comparison) if comparison.pair(*pair, metric)]
    compared = [pair_verdict(comparison, *pair, metric) for pair in pairs]
    found = [one for one in compared if one.word in ("better", "worse")]
    equal = [one for one in compared if one.is_equal]
    bounded = [one for one in compared if one.word in ("not worse", "not better")]
    unsettled = [one for one in compared if one.word not in ("better", "worse") and not one.is_equal]
    left = [one for one in unsettled if one.n and not one.row["doubt"] and one.word not in ("not worse", "not better")]
    place = {variant: index for index, variant in enumerate(comparison.ranking["variant_id"])}
    found.sort(key=lambda one: place.get(one.variant_id, len(place)))  # failures count as the worst
    reasons = dict.fromkeys(one.by_margin.reason for one in compared if one.by_margin and one.by_margin.reason)
    sentences = [
        *_by_margin(comparison, bounded),
        *(_finding(comparison, one) for one in found[:WRITTEN_OUT]),
        _joined(
            comparison,
            f"Reliably different{_from_baseline(found[WRITTEN_OUT:])} in {comparison.directed(metric)} as well: ",
            [(one, _effect(one) + (f", {one.why}," if one.why else "")) for one in found[WRITTEN_OUT:]],
        ),
        _joined(
            comparison,
            f"Looks like a difference in {metric}, but is no finding: ",
            [(one, f"{_effect(one)} ({one.row['doubt']})") for one in unsettled if one.row["doubt"]],
        ),
        _cannot_tell(comparison, metric, left),
        _equal(comparison, metric, equal),
        _joined(
            comparison,
            f"Nothing can be told in {metric} of ",
            [(one, f"({one.row['verdict']})") for one in unsettled if not one.n],
        ),
        _needed(comparison, metric),
        *(f"What may be left out in {metric} cannot be tested: {reason}." for reason in reasons),
        *_other_metrics(comparison),
        *caveats(comparison, metric, is_compared=bool(compared)),
    ]
    return [sentence for sentence in sentences if sentence]


def _pairs(comparison: Comparison) -> list[Pair]:
    """Return the pairs that the run is about, of a grid every variant and the baseline."""
    if comparison.effects.is_grid:
        return [(plan.variant_id, comparison.run.baseline) for plan in comparison.variants[1:]]
    return list(comparison.run.pairs)


def _listed(comparison: Comparison, pair: Pair, name: str) -> str:
    """Name a pair where several stand in a list, the variant as `name`."""
    return name if pair[1] == comparison.run.baseline else f"{name} against {comparison.codes[pair[1]]}"


def _joined(comparison: Comparison, start: str, told: Sequence[tuple[Verdict, str]]) -> str:
    """Return one sentence on several pairs, each with what is said of it; "" without pairs."""
    named = [f"{_listed(comparison, (one.variant_id, one.against_id), one.called)} {text}" for one, text in told]
    return f"{start}{'; '.join(named)}." if told else ""


def _from_baseline(pairs: Sequence[Verdict]) -> str:
    return "" if any(one.against for one in pairs) else " from the baseline"


def _effect(one: Verdict) -> str:
    """Return the difference with its interval, or why there is none."""
    if one.low is None or one.high is None:
        return f"({one.row['verdict']})"
    return with_interval(one.effect, one.low, one.high)


def _by_margin(comparison: Comparison, pairs: Sequence[Verdict]) -> list[str]:
    """Say what may be left out, what saves something first."""
    ordered = sorted(pairs, key=lambda one: not (one.by_margin and one.by_margin.price.is_saving))
    sentences = [margin_sentence(one) for one in ordered[:WRITTEN_OUT]]
    for word, start in (("not worse", "Not worse"), ("not better", "Dearer and not better")):
        rest = [one for one in ordered[WRITTEN_OUT:] if one.word == word]
        if rest and rest[0].by_margin:
            names = listing([_listed(comparison, (one.variant_id, one.against_id), one.called) for one in rest])
            margin = rest[0].by_margin.margin
            sentences.append(f"{start} by more than {margin:g} in {rest[0].metric} as well: {names}.")
    return sentences


def _finding(comparison: Comparison, one: Verdict) -> str:
    row, more = one.row, float(one.row["difference"]) > 0
    verb, size = "raises" if more else "lowers", plain(abs(float(row["difference"])))
    judged = "" if more == (one.word == "better") else f", which is {row['verdict']},"
    caveat = f", {one.why}," if one.why else ""
    mine, other = latency_text(comparison, one.variant_id), latency_text(comparison, one.against_id)
    name = comparison.codes[one.against_id] if one.against else "the baseline"
    time = [f"A question takes {mine}, with {name} {other} (medians)."] if mine and other and mine != other else []
    price = [*time, *index_sentences(comparison, one.variant_id, one.against_id, name)]
    return (
        f"{one.called} {verb} {one.metric} by {size}{judged}{caveat} against {one.rival} (95% interval of the "
        f"difference {signed_interval(row['low'], row['high'])}; {row['n']} questions; corrected p "
        f"{p_text(row['p_corrected'])}): {row['wins']} questions better, {row['ties']} equal, {row['losses']} worse."
        f"{''.join(f' {sentence}' for sentence in price)}"
    )


def _equal(comparison: Comparison, metric: str, pairs: Sequence[Verdict]) -> str:
    if not pairs:
        return ""
    asked, names = counted(len(comparison.questions), "question"), []
    for one in pairs:
        blind = ", the metric is blind to it" if one.unchanged else ""
        names.append(f"{_listed(comparison, (one.variant_id, one.against_id), one.called)} ({one.n} of {asked}{blind})")
    missed = [one.high for one in pairs if one.high]
    could = f"; they could have missed one of up to {plain(max(missed))} on average" if missed else ""
    return f"No difference{_from_baseline(pairs)} on any question compared, in {metric}: {listing(names)}{could}."


def _cannot_tell(comparison: Comparison, metric: str, pairs: Sequence[Verdict]) -> str:
    if not pairs:
        return ""
    smallest = [number(one.row["smallest_difference"]) for one in pairs]
    shown = [value for value in smallest if value is not None]
    n, margin = max(one.n for one in pairs), comparison.run.margins.get(metric)
    could = f" {n} questions could have shown a difference of about {plain(median(shown))}." if shown else ""
    more = "" if margin is None else f", nor whether it stays below the margin of {margin:g}"
    start = f"The data cannot tell from chance, in {metric}{more}: "
    return _joined(comparison, start, [(one, _effect(one)) for one in pairs]) + could


def _needed(comparison: Comparison, metric: str) -> str:
    """Say how many questions would show what the margin does not show yet."""
    codes, margin = comparison.codes, comparison.run.margins.get(metric)
    names = {(metric, *pair): _listed(comparison, pair, codes[pair[0]]) for pair in comparison.run.pairs}
    needed = {
        names.get(key, f"{key[1]}={key[2]}"): n
        for key, n in comparison.questions_for_margin.items()
        if n is None or n > len(comparison.questions)
    }
    if margin is None or not needed:
        return ""
    units = "questions" if comparison.clusters is None else "clusters"
    start = listing(
        [f"with {f'about {n:,}' if n else 'more than 20,000'} {units} {name}" for name, n in needed.items()]
    )
    return (
        f"{start[:1].upper()}{start[1:]} would be shown to stay within the margin of {margin:g} in {metric} (power "
        "0.8, if in truth nothing differs)."
    )


def _other_metrics(comparison: Comparison) -> list[str]:
    """Name the reliable differences in the other quality metrics, and what is not worse there by their margins."""
    found, bounded = [], []
    pairs = {pair: _listed(comparison, pair, comparison.codes[pair[0]]) for pair in _pairs(comparison)}
    for metric in comparison.quality_metrics[1:]:
        reliable, kept = [], []
        for pair, code in pairs.items():
            row, by_margin = comparison.pair(*pair, metric), comparison.not_worse.get((metric, *pair))
            if row and row["verdict"] in ("better", "worse"):
                reliable.append(f"{code} {signed(row['difference'])}")
            elif row and by_margin and by_margin.is_found:
                kept.append(code)
        if reliable:
            found.append(f"{', '.join(reliable)} in {comparison.directed(metric)}")
        if kept:
            bounded.append(f"{listing(kept)} in {comparison.directed(metric)} ({comparison.run.margins[metric]:g})")
    return [
        f"Reliable differences in other metrics (secondary): {'; '.join(found)}." if found else "",
        f"Within the margins of other metrics: {'; '.join(bounded)}." if bounded else "",
    ]
