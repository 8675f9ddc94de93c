"""What the data say, in plain words, and what qualifies it: missing scores, too few questions, truncated text."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from rag_lab._kit import wording
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings import SAYS
from rag_lab.comparison.findings.verdict_sentences import Verdict, margin_sentence, pair_verdict
from rag_lab.comparison.tables.costs import index_sentences, latency_text
from rag_lab.models.truncation import NOTICED, is_unlike, percent, short_name
from rag_lab.stages.steps import stage_name

FEW = 20  # questions: fewer show only very large differences
SHARE = 0.5  # of the questions that the main metric has under the variant where it has most
_ENDED = {"failed": "failed", "stopped": "was stopped by a limit"}
_NAMED = 6  # pairs that are written out
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
    bounded = [one for one in compared if one.word in ("not worse", "not better")]
    unsettled = [one for one in compared if one.word not in ("better", "worse") and not one.is_equal]
    left = [one for one in unsettled if one.n and not one.row["doubt"] and one.word not in ("not worse", "not better")]
    place = {variant: index for index, variant in enumerate(comparison.ranking["variant_id"])}
    found.sort(key=lambda one: place.get(one.variant_id, len(place)))  # failures count as the worst
    reasons = dict.fromkeys(one.by_margin.reason for one in compared if one.by_margin and one.by_margin.reason)
    further = found[WRITTEN_OUT:]
    whence = "" if any(one.against for one in further) else " from the baseline"
    margin = comparison.run.margins.get(metric)
    nor = "" if margin is None else f", nor whether it stays below the margin of {margin:g}"
    smallest = [value for one in left if (value := wording.number(one.row["smallest_difference"])) is not None]
    n = max((one.n for one in left), default=0)
    could = (
        f" {n} questions could have shown a difference of about {wording.plain(median(smallest))}." if smallest else ""
    )
    sentences = [
        *_by_margin(comparison, bounded),
        *(_finding(comparison, one) for one in found[:WRITTEN_OUT]),
        _joined(
            comparison,
            f"Reliably different{whence} in {comparison.directed(metric)} as well: ",
            [(one, _effect(one) + (f", {one.why}," if one.why else "")) for one in further],
        ),
        _joined(
            comparison,
            f"Looks like a difference in {metric}, but is no finding: ",
            [(one, f"{_effect(one)} ({one.row['doubt']})") for one in unsettled if one.row["doubt"]],
        ),
        _joined(
            comparison, f"The data cannot tell from chance, in {metric}{nor}: ", [(one, _effect(one)) for one in left]
        )
        + could,
        _equal(comparison, metric, [one for one in compared if one.is_equal]),
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


def _effect(one: Verdict) -> str:
    """Return the difference with its interval, or why there is none."""
    if one.low is None or one.high is None:
        return f"({one.row['verdict']})"
    return wording.with_interval(one.effect, one.low, one.high)


def _by_margin(comparison: Comparison, pairs: Sequence[Verdict]) -> list[str]:
    """Say what may be left out, what saves something first."""
    ordered = sorted(pairs, key=lambda one: not (one.by_margin and one.by_margin.price.is_saving))
    sentences = [margin_sentence(one) for one in ordered[:WRITTEN_OUT]]
    for word, start in (("not worse", "Not worse"), ("not better", "Dearer and not better")):
        rest = [one for one in ordered[WRITTEN_OUT:] if one.word == word]
        if rest and rest[0].by_margin:
            names = wording.listing([_listed(comparison, (one.variant_id, one.against_id), one.called) for one in rest])
            margin = rest[0].by_margin.margin
            sentences.append(f"{start} by more than {margin:g} in {rest[0].metric} as well: {names}.")
    return sentences


def _finding(comparison: Comparison, one: Verdict) -> str:
    row, more = one.row, float(one.row["difference"]) > 0
    verb, size = "raises" if more else "lowers", wording.plain(abs(float(row["difference"])))
    judged = "" if more == (one.word == "better") else f", which is {row['verdict']},"
    caveat = f", {one.why}," if one.why else ""
    mine, other = latency_text(comparison, one.variant_id), latency_text(comparison, one.against_id)
    name = comparison.codes[one.against_id] if one.against else "the baseline"
    time = [f"A question takes {mine}, with {name} {other} (medians)."] if mine and other and mine != other else []
    price = [*time, *index_sentences(comparison, one.variant_id, one.against_id, name)]
    does, p_value = f"{one.called} {verb} {one.metric} by {size}{judged}{caveat}", wording.p_text(row["p_corrected"])
    ends = wording.signed_interval(row["low"], row["high"])
    found = SAYS["finding"].format(does=does, rival=one.rival, interval=ends, row=row, p_value=p_value)
    return " ".join([found, *price])


def _equal(comparison: Comparison, metric: str, pairs: Sequence[Verdict]) -> str:
    if not pairs:
        return ""
    asked, names = wording.counted(len(comparison.questions), "question"), []
    for one in pairs:
        blind = ", the metric is blind to it" if one.unchanged else ""
        names.append(f"{_listed(comparison, (one.variant_id, one.against_id), one.called)} ({one.n} of {asked}{blind})")
    missed = [one.high for one in pairs if one.high]
    could = f"; they could have missed one of up to {wording.plain(max(missed))} on average" if missed else ""
    whence = "" if any(one.against for one in pairs) else " from the baseline"
    return f"No difference{whence} on any question compared, in {metric}: {wording.listing(names)}{could}."


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
    start = wording.listing(
        [f"with {f'about {n:,}' if n else 'more than 20,000'} {units} {name}" for name, n in needed.items()]
    )
    return SAYS["needed"].format(start=f"{start[:1].upper()}{start[1:]}", margin=margin, metric=metric)


def _other_metrics(comparison: Comparison) -> list[str]:
    """Name the reliable differences in the other quality metrics, and what is not worse there by their margins."""
    found, bounded = [], []
    pairs = {pair: _listed(comparison, pair, comparison.codes[pair[0]]) for pair in _pairs(comparison)}
    for metric in comparison.quality_metrics[1:]:
        reliable, kept = [], []
        for pair, code in pairs.items():
            row, by_margin = comparison.pair(*pair, metric), comparison.not_worse.get((metric, *pair))
            if row and row["verdict"] in ("better", "worse"):
                reliable.append(f"{code} {wording.signed(row['difference'])}")
            elif row and by_margin and by_margin.is_found:
                kept.append(code)
        if reliable:
            found.append(f"{', '.join(reliable)} in {comparison.directed(metric)}")
        if kept:
            bounded.append(
                f"{wording.listing(kept)} in {comparison.directed(metric)} ({comparison.run.margins[metric]:g})"
            )
    return [
        f"Reliable differences in other metrics (secondary): {'; '.join(found)}." if found else "",
        f"Within the margins of other metrics: {'; '.join(bounded)}." if bounded else "",
    ]


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
    missing = []
    for plan in comparison.variants:
        row = comparison.cell(plan.variant_id, metric) or {"failed": 0}
        if int(row["failed"]):
            code, scored = comparison.codes[plan.variant_id], int(row["scored"])
            missing.append(f"{code} {scored} of {scored + int(row['failed'])}")
    if missing:
        told.append(f"Some questions could not be scored in {metric}: {wording.listing(missing)}.")
    if comparison.effects.confounded:
        told.append(comparison.effects.confounded)
    answers = {(one.metric, one.unsigned, one.questions): answer for one, answer in comparison.answers.items()}
    tested = [one for one in answers.values() if one.p_value is not None]
    if unable := [one for one in tested if one.p_corrected is None]:
        was, do = ("was", "does") if len(unable) == 1 else ("were", "do")
        of = f"{len(unable)} of {wording.counted(len(tested), 'comparison')}"
        told.append(SAYS["too_small"].format(of=of, was=was, do=do))
    scored_in = {name: comparison.cell(baseline, name) for name in comparison.quality_metrics}
    if few := [f"{name} ({cell['scored']})" for name, cell in scored_in.items() if cell and cell["scored"] < FEW]:
        told.append(
            f"Metrics with fewer than {FEW} questions, in which hardly anything can be told: {wording.listing(few)}."
        )
    return told


def families_sentence(comparison: Comparison) -> str:
    """Say which comparisons are primary and secondary, how many of each are tested, and at what level."""
    sizes = {one.family.name: one.family for one in comparison.answers.values() if one.p_value is not None}
    if not sizes:
        return ""
    primary, secondary = (sizes[name].n_tests if name in sizes else 0 for name in ("primary", "secondary"))
    what = "main effects and interactions" if comparison.effects.is_grid else "the pairs that the experiment is about"
    what = "the effects that the fraction can tell" if comparison.effects.confounded else what
    levels, metric = SAYS["levels_strict" if comparison.run.strict else "levels"], comparison.main_metric
    first, others = wording.counted(primary, "comparison"), wording.counted(secondary, "other comparison")
    return SAYS["families"].format(first=first, metric=metric, what=what, others=others, levels=levels)


def truncation_sentences(comparison: Comparison) -> list[str]:
    """Return what models did not read, of which variants."""
    told: dict[str, list[str]] = {}
    for variant, one in comparison.truncation.items():
        found, corpus = [], one.corpus
        if corpus is not None and corpus.chunks.share_truncated >= NOTICED:
            read = percent(corpus.given_cut / corpus.given) if corpus.given else "none"
            cut, share = corpus.chunks.text("the chunks", corpus.model), percent(corpus.chunks.share_truncated)
            found.append(SAYS["invisible"].format(cut=cut, share=share, read=read))
        if corpus is not None and corpus.asked_cut:
            by, model = corpus.asked_tokens / corpus.asked_cut, short_name(corpus.model)
            found.append(SAYS["longer_queries"].format(corpus=corpus, model=model, by=by))
        for stage, part in one.stages.items():
            found.append(SAYS["stage_cut"].format(stage=stage_name(stage), by=part.tokens / part.n, part=part))
        for metric, part in one.metrics.items():
            found.append(SAYS["metric_cut"].format(metric=metric, by=part.tokens / part.n, part=part))
        for sentence in found:
            told.setdefault(sentence, []).append(comparison.codes[variant])
    everyone = len(comparison.variants)
    return [
        f"{'Under every variant' if len(codes) == everyone else wording.listing(codes)}: {sentence}"
        for sentence, codes in told.items()
    ]


def measures_cutting(comparison: Comparison) -> list[str]:
    """Say which variants are at a disadvantage, as less of their text was read, where that may decide a verdict."""
    run, records = comparison.run, {name: one.corpus for name, one in comparison.truncation.items()}
    share = {name: one.chunks.share_truncated if one else None for name, one in records.items()}
    pairs = [(plan.variant_id, run.baseline) for plan in comparison.variants if plan.variant_id != run.baseline]
    behind = {}
    for pair in dict.fromkeys([*run.pairs, *pairs]):
        if is_unlike(*(share.get(one) for one in pair)):
            less_read, more_read = sorted(pair, key=lambda one: -(share[one] or 0.0))
            row = comparison.pair(*pair, comparison.main_metric or "")
            if row is None or row["verdict"] != ("better" if less_read == pair[0] else "worse"):
                behind[less_read] = more_read
    if not behind:
        return []
    involved = dict.fromkeys([*behind, *behind.values()])
    told = [f"{percent(share[one] or 0.0)} of the text under {comparison.codes[one]}" for one in involved]
    codes = wording.listing([comparison.codes[one] for one in behind])
    who = f"{codes} {'is' if len(behind) == 1 else 'are'}"
    return [SAYS["disadvantage"].format(who=who, what=wording.some_of(told, _NAMED))]


def sparse_metrics(comparison: Comparison) -> dict[str, str]:
    """Return the quality metrics with scores on less than half as many questions as the main metric, and why.

    The reason reads on after the name of the metric: `5 of 117 questions: no answer was asked for (112)`.
    """
    cells: dict[str, dict[Any, Any]] = {}
    for row in comparison.summary.to_dict("records"):
        if row["metric"] not in cells or row["scored"] > cells[row["metric"]]["scored"]:
            cells[row["metric"]] = row
    most = cells.get(comparison.main_metric or "", {"scored": 0})["scored"]
    found = {metric: cells[metric] for metric in comparison.quality_metrics if metric in cells}
    gaps, run, whys = comparison.gaps, comparison.run, {}
    for metric, cell in found.items():
        if cell["scored"] < SHARE * most:
            ours = gaps[(gaps["variant_id"] == cell["variant_id"]) & (gaps["metric"] == metric)]
            reasons = [f"{reason} ({count})" for reason, count in zip(ours["reason"], ours["count"], strict=True)]
            if 0 < len(run.answered) < len(run.questions):
                reasons.append(f"{len(run.answered)} are answered, as `limits.answers` says")
            why = f": {'; '.join(reasons)}" if reasons else ""
            whys[metric] = f"{cell['scored']} of {cell['asked']} questions{why}"
    return whys


def sparse_metric_sentences(apart: Mapping[str, str]) -> list[str]:
    """Return a sentence for each reason, with the metrics that share it."""
    by_reason: dict[str, list[str]] = {}
    for metric, why in apart.items():
        by_reason.setdefault(why, []).append(metric)
    return [f"{', '.join(metrics)}: {why}." for why, metrics in by_reason.items()]
