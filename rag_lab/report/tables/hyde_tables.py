"""A HyDE study as tables."""

from __future__ import annotations

from rag_lab._kit.numbers import p_value, plain, signed, signed_interval
from rag_lab._kit.wording import short_verdict
from rag_lab.comparison.hyde_studies import RoutingStudy
from rag_lab.report.tables.table import Table
from rag_lab.statistics.routing.routing_table import ALL

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
        made.append(Table(f"The class that the pipeline gave, by the labelled class{_beside(study)}", header, rows))
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
    return Table(f"Learned rule{_beside(study)}", ("class", "HyDE", "why"), rows, names=3)


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
    title = f"{study.metric} by class, {by}{_beside(study)}; {family}"
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
        f"What the better arm, chosen afterwards, gains in {study.metric} over the better arm for all{_beside(study)}"
    )
    return Table(title, _CEILING_HEADER, rows, names=1)


def _mistakes_title(study: RoutingStudy) -> str:
    return f"What the classifier's mistakes cost in {study.metric}{_beside(study)} (positive: they hurt)"


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


def _beside(study: RoutingStudy) -> str:
    return f", with {study.where}" if study.where else ""
