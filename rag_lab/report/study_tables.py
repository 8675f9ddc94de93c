"""The tables of findings: modules, fronts, reachable gain, evidence, changes, preferences, a HyDE study and a race."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rag_lab._kit.wording import DASH, interval, p_value, plain, seconds, short_verdict, signed, signed_interval
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import COST_NAMES, share_of_resamples
from rag_lab.comparison.findings.search_sentences import dropped
from rag_lab.comparison.findings.trace_findings import share_of_gain, state_names
from rag_lab.comparison.findings.verdict_sentences import Verdict
from rag_lab.comparison.passages import excerpt
from rag_lab.comparison.tables.bounds import CAUSES
from rag_lab.comparison.tables.pareto import Cost as Priced
from rag_lab.comparison.tables.studies import RoutingStudy
from rag_lab.report.table import Table
from rag_lab.runs.run_manifest import Cost, cost_of
from rag_lab.statistics.routing import ALL

MOST = 10  # questions that changed most
_PRICES: dict[Priced, str] = {"seconds": "seconds", "tokens": "tokens", "usd": "dollars per 1,000"}


def module_table(comparison: Comparison, rows: Sequence[Verdict]) -> Table:
    """Return a row a module: verdict, effect on the main metric, price, and what qualifies the verdict."""
    is_grid = comparison.effects.is_grid
    title = f"against {comparison.name(comparison.run.baseline)}"
    if is_grid:
        title = "averaged over the other modules"
    elif any(row.against for row in rows):
        title = "of the pairs that the experiment is about"
    metric = comparison.directed(comparison.main_metric or "")
    header = ("verdict", "n", "effect", "95% interval", "a question costs", "because")
    texts = tuple(
        (
            (comparison.name(row.variant_id) if row.variant_id else row.name)
            + (f", against {row.against}" if row.against else ""),
            row.word,
            str(row.n),
            DASH if row.effect is None else signed(row.effect),
            signed_interval(row.low, row.high),
            row.price.signed,
            row.why,
        )
        for row in rows
    )
    return Table(f"Effects on {metric}, {title}", ("module" if is_grid else "variant", *header), texts, 2, 2)


def front_table(comparison: Comparison) -> Table:
    """Return a row a variant: quality, what a question takes, and whether it is on each front; no rows without one.

    Dollars are of a thousand questions.
    """
    found = comparison.front
    metric = comparison.directed(comparison.main_metric or "")
    fronts = (COST_NAMES[one.costs[0]] if len(one.costs) == 1 else "together" for one in found.fronts)
    header = ("variant", metric, *(_PRICES[cost] for cost in found.costs), *(f"front: {name}" for name in fronts))
    rows = []
    for variant, price in found.prices.items() if found.fronts else ():
        amounts: dict[Priced, str] = {
            "seconds": seconds(price.seconds),
            "tokens": DASH if price.tokens is None else f"{price.tokens:,.0f}",
            "usd": DASH if price.usd is None else f"{1000 * price.usd:,.2f}",
        }
        places = [
            ("on" if variant in one.members else "off")
            + (f" ({share_of_resamples(one.shares[variant])})" if variant in one.shares else "")
            for one in found.fronts
        ]
        quality = plain(found.quality[variant].mean)
        rows.append((comparison.name(variant), quality, *(amounts[cost] for cost in found.costs), *places))
    return Table("What quality costs: who is on the front, and in what share of resamples", header, tuple(rows))


def gain_table(comparison: Comparison) -> Table:
    """Return a row a metric and variant whose reader has both bounds; `gain_sentences` name the others."""
    header = (
        "variant", "metric", "n", "closed book", "mean", "evidence", "share of the gain", "95% interval", "why not",
    )  # fmt: skip
    rows = []
    for one in comparison.gain:
        if one.means is None:
            continue
        found = one.found
        has_interval = found.low is not None and found.high is not None
        rows.append(
            (
                comparison.name(one.variant_id),
                comparison.directed(one.metric),
                str(found.n),
                *map(plain, one.means),
                DASH if found.mean is None else share_of_gain(found.mean),
                f"{share_of_gain(found.low or 0)} to {share_of_gain(found.high or 0)}" if has_interval else DASH,
                found.reason,
            )
        )
    return Table("Share of the reachable gain", header, tuple(rows), names=2, words=1)


def claims_table(comparison: Comparison) -> Table:
    """Return a row a published figure: what was found here, whether that reproduces it, and what differs."""
    header = (
        "published in",
        "variant",
        "metric",
        "figure",
        "here",
        "95% interval",
        "off by",
        "reproduced",
        "what differs",
    )
    rows = []
    for claim in comparison.run.claims:
        cell = comparison.cell(claim.variant, claim.metric)
        head = (claim.paper, comparison.name(claim.variant), claim.metric, plain(claim.value))
        if not cell or not cell["scored"]:
            rows.append((*head, DASH, DASH, DASH, "not measured", claim.differs))
            continue
        gap, is_inside = cell["mean"] - claim.value, cell["low"] <= claim.value <= cell["high"]
        word = "no, but within chance" if is_inside else "no"
        word = f"within {claim.tolerance:g}" if abs(gap) <= claim.tolerance else word
        rows.append((*head, plain(cell["mean"]), interval(cell["low"], cell["high"]), signed(gap), word, claim.differs))
    return Table("Published figures, and what was found here", header, tuple(rows), names=3, words=2)


def evidence_tables(comparison: Comparison) -> list[Table]:
    """Return how many labelled pieces ended in each state by variant, what moved, and the states by class."""
    found, name = comparison.evidence, comparison.name
    states = state_names(found)
    header = ("variant", "pieces", *(state.name for state in states.values()))

    def counts(row: dict[Any, Any]) -> tuple[str, ...]:
        return (name(row["variant_id"]), *(f"{row[column]:,}" for column in ("items", *found.states)))

    by_variant = tuple(counts(row) for row in found.by_variant.to_dict("records"))
    by_class = tuple((row["query_class"], *counts(row)) for row in found.by_class.to_dict("records"))
    moved = tuple(
        (name(row["variant_id"]), states[row["before"]].name, states[row["after"]].name, f"{row['items']:,}")
        for row in found.moved.to_dict("records")
    )
    moves = ("variant", "under the baseline", "under the variant", "pieces")
    why = comparison.why_failed
    wrong: dict[str, Counter[str]] = {}
    for (variant, _), cause in why.causes.items():
        wrong.setdefault(variant, Counter())[cause] += 1
    causes = tuple((name(one), f"{n.total():,}", *(f"{n[cause]:,}" for cause in CAUSES)) for one, n in wrong.items())
    return [
        Table("Where evidence is lost", header, by_variant),
        Table("Evidence that ended elsewhere than under the baseline", moves, moved, names=3),
        Table("Where evidence is lost, by query class", ("class", *header), by_class, names=2),
        *([Table("Why answers are wrong", ("variant", "wrong", *CAUSES), causes)] if causes else []),
    ]


def change_tables(comparison: Comparison) -> list[Table]:
    """Return what each variant changes and takes, and the questions that changed most, with who changed each most."""
    changes = comparison.changes
    has_costs = any(one.cost_usd for one in changes.variants)
    header = (
        "variant", "rankings changed", "RBO", f"top {changes.k} shared", "answers changed", "their words changed",
        "abstained", "citations valid", "seconds (median)", "tokens", *(["USD"] if has_costs else []),
    )  # fmt: skip
    rows = []
    for one in changes.variants:
        is_baseline = one.variant_id == comparison.run.baseline
        row = (
            comparison.name(one.variant_id),
            "the baseline" if is_baseline else _of(one.rankings_changed, one.rankings),
            plain(one.overlap) + (" by page" if one.by_page else ""),
            _percent(one.shared),
            DASH if is_baseline else _of(one.answers_changed, one.answers),
            _percent(one.words),
            _of(one.abstained, one.answered),
            DASH if one.citations_valid is None else f"{one.citations_valid:.0%} of {one.cites}",
            seconds(one.seconds),
            DASH if one.tokens is None else f"{one.tokens:,.0f}",
            DASH if not one.cost_usd else f"{one.cost_usd:.4f}",
        )
        rows.append(row[: len(header)])
    most = tuple(
        (
            one.question_id,
            excerpt(comparison.asked[one.question_id].text),
            comparison.name(one.variant_id),
            plain(one.overlap),
            _percent(one.answer),
        )
        for one in changes.most[:MOST]
    )
    most_header = ("question", "text", "changed most by", "RBO", "words of the answer")
    return [
        Table("What changed against the baseline", header, tuple(rows)),
        Table("The questions that changed most", most_header, most, names=3),
    ]


def preferences_table(comparison: Comparison) -> Table:
    """Return a row a pair of variants that a person judged without seeing their names."""
    header = (
        "variant", "against", "questions judged", "preferred", "neither", "the other", "share of the decided",
        "95% interval", "p", "skipped", "verdict",
    )  # fmt: skip
    rows = tuple(
        (
            comparison.name(one.variant_id),
            comparison.name(one.against),
            str(one.difference.n),
            str(one.difference.wins),
            str(one.difference.ties),
            str(one.difference.losses),
            _percent(one.share),
            f"{one.interval[0]:.0%} to {one.interval[1]:.0%}" if one.interval else DASH,
            p_value(one.answer.p_value),
            str(one.skipped),
            short_verdict(one.answer.verdict),
        )
        for one in comparison.preferences
    )
    return Table("Preferred by a person who saw no names", header, rows, names=2, words=1)


def _of(n: int, total: int) -> str:
    return f"{n} of {total}" if total else DASH


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{share:.0%}"


def labels_table(comparison: Comparison) -> Table:
    """Return what judge, labels, and both say of the pair whose answers people rated."""
    pair, header = comparison.rated, ("by", "labels of", "mean", "95% interval", "weight of the judge")
    if pair is None:
        return Table("", header, ())
    (variant, against), names = pair.pair, [comparison.called(one) for one in pair.pair]
    rows = []
    if row := comparison.pair(variant, against, pair.metric):
        shown = (signed(row["difference"]), signed_interval(row["low"], row["high"]))
        rows.append((f"{pair.metric} alone", "difference", *shown, DASH))
    for which, name in ((None, "difference"), (variant, names[0]), (against, names[1])):
        for by, weight in (("labels alone", 0.0), ("labels and judge", None)):
            found = pair.corrected(which, weight)
            if found.low is not None and found.high is not None:
                told = (signed, signed_interval) if which is None else (plain, interval)
                ends = told[1](found.low, found.high)
                rows.append((by, name, told[0](found.mean), ends, DASH if weight == 0 else plain(found.weight)))
    return Table(f"Answers that people found good: {names[0]} against {names[1]}", header, tuple(rows), names=2)


def routing_tables(study: RoutingStudy) -> list[Table]:
    """Return the arms by class, the ceilings, the confusion matrix, what mistakes cost, and the learned rule."""
    where = f", with {study.where}" if study.where else ""
    classes = tuple(
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
    )
    header: tuple[str, ...] = (
        "class", "arms", "n", "mean", "mean against", "difference", "95% interval", "corrected p", "verdict",
    )  # fmt: skip
    by = "as the dataset labels it" if study.column == "labelled" else "as the pipeline gave it"
    family = "p corrected within the secondary family, of a pair that is primary within that one"
    tables = [Table(f"{study.metric} by class, {by}{where}; {family}", header, classes, names=2, words=1)]
    # What choosing between no HyDE and HyDE afterwards gains, for each question and for each class.
    one, known = study.question_ceiling, study.class_ceiling
    named = {"for each question, in another repeat" if one.is_of_repeats else "for each question": one}
    named |= {"for each class": known} if known else {}
    ceilings = tuple(
        (
            *(name, str(each.n), each.best_arm, signed(each.seen), signed(each.by_chance), signed(each.gain)),
            signed_interval(each.low, each.high),
        )
        for name, each in named.items()
    )
    title = f"What the better arm, chosen afterwards, gains in {study.metric} over the better arm for all{where}"
    header = ("chosen afterwards", "n", "over", "seen", "shown by chance", "gain beyond chance", "95% interval")
    tables.append(Table(title, header, ceilings))
    if study.confusion is not None:
        counts = tuple((str(name), *(str(int(n)) for n in row)) for name, row in study.confusion.iterrows())
        header = ("labelled", *(str(name) for name in study.confusion.columns))
        tables.append(Table(f"The class that the pipeline gave, by the labelled class{where}", header, counts))
    if study.mistakes is not None:
        mistakes = tuple(
            (
                "all" if row["labelled"] == ALL else row["labelled"],
                "any" if row["predicted"] == ALL else row["predicted"],
                str(row["n"]),
                str(row["n_routed_otherwise"]),
                signed(row["cost"]),
                signed_interval(row["low"], row["high"]),
            )
            for row in study.mistakes.to_dict("records")
            if row["labelled"] == ALL or row["n_routed_otherwise"]
        )
        header = ("labelled", "taken for", "questions", "sent elsewhere", "cost a question", "95% interval")
        title = f"What the classifier's mistakes cost in {study.metric}{where} (positive: they hurt)"
        tables.append(Table(title, header, mistakes, names=2))
    learned = study.learned
    rules = learned.class_to_hyde.items() if learned else ()
    reasons = learned.reasons if learned else {}
    rows = tuple((name, "yes" if on else "no", reasons[name]) for name, on in rules)
    return [*tables, Table(f"Learned rule{where}", ("class", "HyDE", "why"), rows, names=3)]


def race_tables(comparison: Comparison) -> list[Table]:
    """Return the rounds, and the dropped variants, the last dropped first; nothing where there was no race."""
    race, name = comparison.race, comparison.run.name
    if race is None or not race.rounds:
        return []

    def cost(cost: Cost) -> tuple[str, ...]:
        return seconds(cost.seconds), f"{cost.calls:,}", f"{cost.tokens:,}"

    rounds: list[tuple[str, ...]] = []
    for number, done in enumerate(race.rounds, start=1):
        counts = (f"{done.n_questions:,}", str(len(done.standings)), str(len(done.dropped)))
        rounds.append((f"{number} {done.title}".strip(), *counts, *cost(done.cost), f"{done.folder}/report.html"))
    if race.winner:
        rounds.append(("proof", f"{race.n_proof:,}", "2", DASH, *cost(cost_of(comparison.run)), "this one"))
    is_race = race.design == "racing"
    out: list[tuple[str, ...]] = []
    for number, n, one in dropped(race):
        row = (one.label, str(number), f"{n:,}", DASH if one.rank is None else str(one.rank), plain(one.mean))
        out.append((*row, plain(one.least), one.behind or DASH) if is_race else row)
    header: tuple[str, ...] = ("variant", "dropped in round", "its questions", "place", race.metric)
    header += ("worse by at least", "than") if is_race else ()
    columns = ("round", "questions", "variants", "dropped", "seconds", "calls", "tokens", "its report")
    kind = "race" if is_race else "search"
    return [
        Table(f"{name}: rounds of the {kind}", columns, tuple(rounds), words=1),
        Table(f"{name}: dropped in the {kind}", header, tuple(out), words=int(is_race)),
    ]
