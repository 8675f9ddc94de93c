"""What traces say without a test: what variants change, where evidence is lost, what answers reach, what comes next."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.wording import counted, listing, number, plain, seconds, with_interval
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings import SAYS
from rag_lab.comparison.findings.verdict import FEW, sparse_metrics
from rag_lab.comparison.tables.bounds import BOUNDS, Reach, answer_metrics, bound_arms
from rag_lab.comparison.tables.changes import Changes, VariantChange
from rag_lab.comparison.tables.evidence import State, Waterfall
from rag_lab.stages.context import NEAREST

WRITTEN_OUT = 5  # variants with a sentence of their own
DOLLARS = 0.0001


def changes_sentences(comparison: Comparison) -> list[str]:
    """Return a sentence a variant, the largest change first, and one for those that change nothing."""
    changes = comparison.changes
    others = [one for one in changes.variants if one.variant_id != comparison.run.baseline]
    if len(others) == len(changes.variants):
        return ["The baseline was not run to its end, so nothing can be compared with it."]
    if not others:
        notices = [str(notice) for notice in comparison.manifest.get("notices", [])]
        return [*notices, "No other variant was run to its end, so there is nothing to compare the baseline with."]
    baseline = next(one for one in changes.variants if one.variant_id == comparison.run.baseline)
    moved = [one for one in others if one.rankings_changed or one.answers_changed]
    moved.sort(
        key=lambda one: (
            (1 - one.overlap if one.overlap is not None else 0.0)
            + (one.answers_changed / one.answers if one.answers else 0.0)
        ),
        reverse=True,
    )
    told = [
        f"{comparison.called(one.variant_id)} changes {_changed(changes, one)}.{_price(one, baseline)}"
        for one in moved[:WRITTEN_OUT]
    ]
    if len(moved) > WRITTEN_OUT:
        rest = [comparison.called(one.variant_id) for one in moved[WRITTEN_OUT:]]
        told.append(f"Less is changed by {listing(rest)}.")
    if still := [one for one in others if one not in moved]:
        names = listing([comparison.called(one.variant_id) for one in still])
        what = "ranking or answer" if any(one.answers for one in still) else "ranking"
        verb, price = ("changes", _price(still[0], baseline)) if len(still) == 1 else ("change", "")
        told.append(f"{names} {verb} no {what} of any question.{price}")
    return told


def labels_wanted(comparison: Comparison) -> list[str]:
    """Count down to the labelled questions from which on variants can be told apart; none where so many were asked."""
    labelled = sum(question.is_labelled for question in comparison.asked.values())
    if labelled >= FEW or not comparison.asked or comparison.run.left_out:
        return []
    return [SAYS["label_more"].format(n=labelled, few=FEW, dataset=comparison.run.dataset)]


def _changed(changes: Changes, one: VariantChange) -> str:
    parts = []
    if one.rankings:
        what, seen = "the order of pages" if one.by_page else "the ranking", ""
        if one.rankings_changed:
            top = f", {(one.shared or 0) * changes.k:.1f} of the first {changes.k} shared"
            seen = f" (overlap RBO {plain(one.overlap)}{top if one.shared is not None else ''})"
        parts.append(f"{what} of {one.rankings_changed} of {counted(one.rankings, 'question')}{seen}")
    if one.answers:
        words = f" ({one.words:.0%} of their words)" if one.words is not None else ""
        parts.append(f"{one.answers_changed} of {counted(one.answers, 'answer')}{words}")
    return " and ".join(parts)


def _price(one: VariantChange, before: VariantChange) -> str:
    parts = []
    mine, base = seconds(one.seconds), seconds(before.seconds)
    if mine != base:
        parts.append(f"takes {mine} s, with the baseline {base} s (medians)")
    dollars = number(one.cost_usd) or 0.0, number(before.cost_usd) or 0.0
    if abs(dollars[0] - dollars[1]) >= DOLLARS:
        parts.append(f"costs {dollars[0]:.4f} dollars, with the baseline {dollars[1]:.4f}")
    return f" A question {' and '.join(parts)}." if parts else ""


NOTHING = "No question of this run has labelled evidence, so it cannot be told where evidence is lost."
MUCH = 0.25  # of all labelled pieces: where one place loses less, no setting decides
_STATES: Any = read_shipped(Path(__file__).with_name("states.yaml"))
_SETTINGS: dict[State, tuple[str, Sequence[str]]] = {
    state: (known["try"], known["settings"]) for state, known in _STATES.items() if "try" in known
}
_CUT = ("give the context more tokens", ("answer.context_tokens",))


class StateName(NamedTuple):
    """A state in a table, in a bar, and what it means."""

    name: str
    short: str
    meaning: str


_NAMES: dict[State, StateName] = {
    state: StateName(known["name"], known["short"], known["meaning"]) for state, known in _STATES.items()
}
_UNASKED = StateName(*_STATES["not_answered"]["unasked"])


def state_names(found: Waterfall) -> Mapping[State, StateName]:
    """Return the names of the states in which pieces of a run ended, in the order of the pipeline."""
    names = _NAMES if found.asks_reader else _NAMES | {"not_answered": _UNASKED}
    return {state: names[state] for state in found.states}


def evidence_sentences(comparison: Comparison) -> list[str]:
    """Return what is to be known beside the tables: how much is counted, and what was cut."""
    found, codes = comparison.evidence, comparison.codes
    if found.items.empty:
        return [NOTHING]
    first = found.items[found.items["variant_id"] == found.items["variant_id"].iloc[0]]
    repeats = f", each in {comparison.run.repeats} repeats" if comparison.run.repeats > 1 else ""
    questions = counted(first["question_id"].nunique(), "question")
    told = [f"{counted(len(first), 'labelled piece')} of evidence of {questions}{repeats}; each ends in one place."]
    if found.cut:  # which budget was short: the tokens, or the number of passages
        pieces = listing([f"{codes[name]} {cut:,} of {all_of:,}" for name, (cut, all_of) in found.cut.items()])
        told.append(SAYS["cut"].format(pieces=pieces))
    why = comparison.why_failed
    if why.causes:
        told.append(SAYS["why_wrong"].format(metric=why.metric, middle=plain(why.middle)))
    return told


def baseline_sentence(comparison: Comparison) -> list[str]:
    """Return one sentence on the baseline, or the first variant that was run; none where nothing is labelled."""
    found = comparison.evidence
    if found.items.empty:
        return []
    row = found.by_variant.to_dict("records")[0]
    parts = [f"{name.name} {row[state]:,}" for state, name in state_names(found).items() if row[state]]
    pieces = counted(row["items"], "labelled piece")
    return [f"Of {pieces} of evidence under {comparison.name(row['variant_id'])}: {listing(parts)}."]


def share_of_gain(value: float) -> str:
    """Write a share of the reachable gain, which may be negative or above one: `38%`."""
    return f"{100 * value:.0f}%"


def gain_sentences(comparison: Comparison) -> list[str]:
    """Return a sentence on each variant in the first metric that reads answers, and who is a bound; none without."""
    arms = bound_arms(comparison)
    if not arms:
        return []
    named = []
    for one, kind in arms.items():
        traces = comparison.traces.get(one, [])
        n = sum(any(NEAREST in record.reason for record in trace.stages) for trace in traces)
        guessed = f" (of {n:,} of {len(traces):,} questions, whose labels name files or pages, the nearest passages)"
        named.append(f"{comparison.called(one)} reads {BOUNDS[kind]}{guessed if n else ''}")
    first = [one for one in comparison.gain if one.metric == comparison.gain[0].metric]
    by_reason: dict[str, list[str]] = {}
    for reach in first:
        if reach.means is None:
            by_reason.setdefault(reach.found.reason, []).append(comparison.called(reach.variant_id))
    return [
        f"Bounds, which are not recommended: {'; '.join(named)}.",
        *(_gain_sentence(comparison, one, one.means) for one in first if one.means is not None),
        *(f"No share of the gain is told of {listing(names)}: {reason}." for reason, names in by_reason.items()),
    ]


def _gain_sentence(comparison: Comparison, one: Reach, bounds: tuple[float, float, float]) -> str:
    name, metric = comparison.called(one.variant_id), comparison.directed(one.metric)
    floor, value, ceiling = (plain(mean) for mean in bounds)
    means = f"{value}, between {floor} of a closed book and {ceiling} of the labelled evidence"
    over = counted(one.found.n, "question")
    if one.found.mean is None or one.found.low is None or one.found.high is None:
        return f"{name} has {means} in {metric} over {over}; the share of the gain is not told: {one.found.reason}."
    ends = f"{share_of_gain(one.found.low)} to {share_of_gain(one.found.high)}"
    return f"{name} reaches {share_of_gain(one.found.mean)} [{ends}] of the gain in {metric}: {means}, over {over}."


def answers_sentence(comparison: Comparison, variant: str) -> str:
    """Say what becomes of the answers of a variant against the baseline; "" where none were asked for."""
    if not comparison.run.answered:
        return ""
    sparse, told, baseline = sparse_metrics(comparison), [], comparison.run.baseline
    metric = next((one for one in answer_metrics(comparison) if one not in sparse), comparison.main_metric)
    if metric is not None and metric != comparison.main_metric:
        row, cell = comparison.difference(variant, metric), comparison.cell(variant, metric)
        if row is not None and number(row["difference"]) is not None:
            word = row["verdict"] if row["verdict"] in ("better", "worse") else "the data cannot tell"
            seen = with_interval(row["difference"], row["low"], row["high"])
            told.append(f"{comparison.directed(metric)} {seen} against the baseline: {word}")
        elif cell:
            told.append(f"{comparison.directed(metric)} {plain(cell['mean'])}")
    pieces = comparison.evidence.by_variant.set_index("variant_id").to_dict("index")
    if variant in pieces:
        other = f", under the baseline {pieces[baseline]['used']}" if variant != baseline and baseline in pieces else ""
        used, of_all = pieces[variant]["used"], counted(pieces[variant]["items"], "labelled piece")
        told.append(f"they use {used} of {of_all} of evidence{other}")
    return f"{'; '.join(told)}." if told else ""


def largest_loss(comparison: Comparison, variant: str) -> str:
    """Name the place that loses most of the evidence, and the setting that decides it; "" where none loses much."""
    rows = comparison.evidence.by_variant.set_index("variant_id").to_dict("index")
    row, config = rows.get(variant), comparison.pipelines.get(variant)
    if row is None or config is None:
        return ""
    state = max(_SETTINGS, key=lambda one: row[one])
    if row[state] < MUCH * row["items"] or not row[state]:
        return ""
    cut, lost = comparison.evidence.cut.get(variant, (0, 0))
    what, keys = _CUT if state == "budget" and 2 * cut > lost else _SETTINGS[state]
    flat = config.flat()
    settings = listing([f"`{key}` ({flat[key]})" for key in keys])
    where = state_names(comparison.evidence)[state].name
    return f"First, {what}: {settings}. {row[state]} of {row['items']} labelled pieces of evidence are {where}."
