"""The tables of a race, a HyDE study, the fronts, the reachable gain and the advice."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab._kit.wording import DASH, p_value, plain, seconds, short_verdict, signed, signed_interval
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import COST_NAMES, share_of_resamples
from rag_lab.comparison.findings.evidence_sentences import share_of_gain
from rag_lab.comparison.findings.search_sentences import dropped
from rag_lab.comparison.findings.statements import Verdict
from rag_lab.comparison.tables.bounds import Reach
from rag_lab.comparison.tables.hyde_study import RoutingStudy
from rag_lab.comparison.tables.pareto import Cost as Priced
from rag_lab.comparison.tables.pareto import Front
from rag_lab.report.tables.table import Table
from rag_lab.runs.race_record import Cost, RaceRecord, cost_of
from rag_lab.statistics.routing.routing_table import ALL

_MODULE_HEADER = ("verdict", "n", "effect", "95% interval", "a question costs", "because")


def module_table(comparison: Comparison, rows: Sequence[Verdict]) -> Table:
    """Return a row a module: verdict, effect on the main metric, price, and what qualifies the verdict."""
    is_grid = comparison.effects.is_grid
    title = f"against {comparison.name(comparison.run.baseline)}"
    if is_grid:
        title = "averaged over the other modules"
    elif any(row.against for row in rows):
        title = "of the pairs that the experiment is about"
    metric = comparison.directed(comparison.main_metric or "")
    header = ("module" if is_grid else "variant", *_MODULE_HEADER)
    return Table(f"Effects on {metric}, {title}", header, tuple(_row(comparison, row) for row in rows), 2, 2)


def _row(comparison: Comparison, row: Verdict) -> tuple[str, ...]:
    name = comparison.name(row.variant_id) if row.variant_id else row.name
    name += f", against {row.against}" if row.against else ""
    effect = DASH if row.effect is None else signed(row.effect)
    return (name, row.word, str(row.n), effect, signed_interval(row.low, row.high), row.price.signed, row.why)


_PRICES: dict[Priced, str] = {"seconds": "seconds", "tokens": "tokens", "usd": "dollars per 1,000"}


def front_table(comparison: Comparison) -> Table:
    """Return a row a variant: quality, what a question takes, and whether it is on each front; no rows without one."""
    found = comparison.front
    metric = comparison.directed(comparison.main_metric or "")
    header = ("variant", metric, *(_PRICES[cost] for cost in found.costs), *map(_named, found.fronts))
    rows = tuple(
        (
            comparison.name(variant),
            plain(found.quality[variant].mean),
            *(amount(comparison, variant, cost) for cost in found.costs),
            *(_place(front, variant) for front in found.fronts),
        )
        for variant in found.prices
        if found.fronts
    )
    return Table("What quality costs: who is on the front, and in what share of resamples", header, rows)


def amount(comparison: Comparison, variant: str, cost: Priced) -> str:
    """Write what a question takes under a variant, without the unit; dollars of a thousand questions."""
    price = comparison.front.prices[variant]
    if cost == "seconds":
        return seconds(price.seconds)
    if cost == "tokens":
        return DASH if price.tokens is None else f"{price.tokens:,.0f}"
    return DASH if price.usd is None else f"{1000 * price.usd:,.2f}"


def _named(front: Front) -> str:
    return f"front: {COST_NAMES[front.costs[0]] if len(front.costs) == 1 else 'together'}"


def _place(front: Front, variant: str) -> str:
    share = f" ({share_of_resamples(front.shares[variant])})" if variant in front.shares else ""
    return ("on" if variant in front.members else "off") + share


_GAIN_HEADER = (
    "variant",
    "metric",
    "n",
    "closed book",
    "mean",
    "evidence",
    "share of the gain",
    "95% interval",
    "why not",
)


def gain_table(comparison: Comparison) -> Table:
    """Return a row a metric and variant whose reader has both bounds; `gain_sentences` name the others."""
    rows = tuple(_reach(comparison, one, one.means) for one in comparison.gain if one.means is not None)
    return Table("Share of the reachable gain", _GAIN_HEADER, rows, names=2, words=1)


def _reach(comparison: Comparison, one: Reach, means: tuple[float, ...]) -> tuple[str, ...]:
    found = one.found
    has_interval = found.low is not None and found.high is not None
    ends = f"{share_of_gain(found.low or 0)} to {share_of_gain(found.high or 0)}" if has_interval else DASH
    share = DASH if found.mean is None else share_of_gain(found.mean)
    return (
        comparison.name(one.variant_id), comparison.directed(one.metric), str(found.n), *map(plain, means), share, ends,
        found.reason,
    )  # fmt: skip


_CLASS_HEADER = (
    *("class", "arms", "n", "mean", "mean against", "difference", "95% interval", "corrected p", "verdict"),
)
_CEILING_HEADER = (
    *("chosen afterwards", "n", "over", "seen", "shown by chance", "gain beyond chance", "95% interval"),
)
_MISTAKE_HEADER = ("labelled", "taken for", "questions", "sent elsewhere", "cost a question", "95% interval")


def routing_tables(study: RoutingStudy) -> list[Table]:
    """Return the arms by class, the ceilings, the classifier's confusion matrix, and what its mistakes cost."""
    made = [_class_table(study), _ceiling_table(study)]
    if study.confusion is not None:
        rows = tuple((str(name), *(str(int(n)) for n in row)) for name, row in study.confusion.iterrows())
        header = ("labelled", *(str(name) for name in study.confusion.columns))
        made.append(Table(f"The class that the pipeline gave, by the labelled class{_where(study)}", header, rows))
    if study.mistakes is not None:
        made.append(Table(_mistakes_title(study), _MISTAKE_HEADER, _mistake_rows(study), names=2))
    return made


def rule_table(study: RoutingStudy) -> Table:
    """Return the learned rule with the reason for each class."""
    learned = study.learned
    rows = (
        tuple((name, "yes" if on else "no", learned.reasons[name]) for name, on in learned.class_to_hyde.items())
        if learned
        else ()
    )
    return Table(f"Learned rule{_where(study)}", ("class", "HyDE", "why"), rows, names=3)


def _class_table(study: RoutingStudy) -> Table:
    rows = [
        (
            row["query_class"],
            f"{row['arm']} − {row['against']}",
            str(row["n"]),
            plain(row["mean"]),
            plain(row["mean_against"]),
            signed(row["difference"]),
            signed_interval(row["low"], row["high"]),
            p_value(row["p_corrected"]),
            short_verdict(row["verdict"]),
        )
        for row in study.by_class.to_dict("records")
    ]
    by = "as the dataset labels it" if study.column == "labelled" else "as the pipeline gave it"
    family = "p corrected within the secondary family, of a pair that is primary within that one"
    title = f"{study.metric} by class, {by}{_where(study)}; {family}"
    return Table(title, _CLASS_HEADER, tuple(rows), names=2, words=1)


def _ceiling_table(study: RoutingStudy) -> Table:
    """Return what choosing between no HyDE and HyDE afterwards gains, for each question and for each class."""
    one, known = study.question_ceiling, study.class_ceiling
    named = {"for each question, in another repeat" if one.is_of_repeats else "for each question": one}
    named |= {"for each class": known} if known else {}
    rows = tuple(
        (
            *(name, str(each.n), each.best_arm, signed(each.seen), signed(each.by_chance), signed(each.gain)),
            signed_interval(each.low, each.high),
        )
        for name, each in named.items()
    )
    title = (
        f"What the better arm, chosen afterwards, gains in {study.metric} over the better arm for all{_where(study)}"
    )
    return Table(title, _CEILING_HEADER, rows, names=1)


def _mistakes_title(study: RoutingStudy) -> str:
    return f"What the classifier's mistakes cost in {study.metric}{_where(study)} (positive: they hurt)"


def _mistake_rows(study: RoutingStudy) -> tuple[tuple[str, ...], ...]:
    rows = [] if study.mistakes is None else study.mistakes.to_dict("records")
    rows = [row for row in rows if row["labelled"] == ALL or row["n_routed_otherwise"]]
    return tuple(
        (
            "all" if row["labelled"] == ALL else row["labelled"],
            "any" if row["predicted"] == ALL else row["predicted"],
            str(row["n"]),
            str(row["n_routed_otherwise"]),
            signed(row["cost"]),
            signed_interval(row["low"], row["high"]),
        )
        for row in rows
    )


def _where(study: RoutingStudy) -> str:
    return f", with {study.where}" if study.where else ""


_COSTS = ("seconds", "calls", "tokens")
ROUNDS_HEADER = ("round", "questions", "variants", "dropped", *_COSTS, "its report")


def race_tables(comparison: Comparison) -> list[Table]:
    """Return the rounds and the dropped variants; nothing where there was no race."""
    race = comparison.race
    if race is None or not race.rounds:
        return []
    rows = [_round(number, race) for number in range(1, len(race.rounds) + 1)]
    if race.winner:
        rows.append(("proof", f"{race.n_proof:,}", "2", DASH, *_cost(cost_of(comparison.run)), "this one"))
    rounds = Table(
        f"{comparison.run.name}: rounds of the {'race' if race.design == 'racing' else 'search'}",
        ROUNDS_HEADER,
        tuple(rows),
        words=1,
    )
    return [rounds, dropped_table(comparison.run.name, race)]


def dropped_table(name: str, race: RaceRecord) -> Table:
    """Return a row a dropped variant, the last dropped first, with its mean, and than whom it is worse."""
    header = ["variant", "dropped in round", "its questions", "place", race.metric]
    rows = [
        [one.label, str(number), f"{n:,}", DASH if one.rank is None else str(one.rank), plain(one.mean)]
        for number, n, one in dropped(race)
    ]
    if race.design != "racing":
        return Table(f"{name}: dropped in the search", tuple(header), tuple(map(tuple, rows)))
    worse = ([plain(one.least), one.behind or DASH] for _, _, one in dropped(race))
    rows = [[*row, *more] for row, more in zip(rows, worse, strict=True)]
    title = f"{name}: dropped in the race"
    return Table(title, (*header, "worse by at least", "than"), tuple(map(tuple, rows)), words=1)


def _round(number: int, race: RaceRecord) -> tuple[str, ...]:
    done = race.rounds[number - 1]
    counts = (f"{done.n_questions:,}", str(len(done.standings)), str(len(done.dropped)))
    return (f"{number} {done.title}".strip(), *counts, *_cost(done.cost), f"{done.folder}/report.html")


def _cost(cost: Cost) -> tuple[str, ...]:
    return seconds(cost.seconds), f"{cost.calls:,}", f"{cost.tokens:,}"
