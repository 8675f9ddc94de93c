"""A HyDE study as sentences and tables."""

from __future__ import annotations

from typing import Any

from rag_lab.report.numbers import number, p_value, plain, signed, signed_interval
from rag_lab.report.routing import RoutingStudy
from rag_lab.report.tables import Table
from rag_lab.statistics.routing import ALL

_ARM = {"none": "no HyDE", "always": "HyDE for every question", "classified": "HyDE by class"}
_CLASS_HEADER = (
    *("class", "comparison", "n", "mean", "mean against", "difference", "95% interval", "corrected p"),
    "what can be said",
)
_MISTAKE_HEADER = ("labelled", "taken for", "questions", "sent elsewhere", "cost a question", "95% interval")


def conclusion(study: RoutingStudy) -> str:
    """Return in a sentence or two whether routing pays."""
    ceiling = _seen(study.ceiling, "gain")
    if study.learned is None:
        return (
            f"No question has a class, so no routing of HyDE can be learned{_where(study)}; its ceiling is {ceiling}."
        )
    gain = study.learned.gains["best_arm"]
    seen = _seen({"gain": gain.mean, "low": gain.low, "high": gain.high}, "gain")
    pays = gain.low is not None and gain.low > 0
    costs = gain.high is not None and gain.high < 0
    end = "routing pays" if pays else "routing costs" if costs else "the data cannot tell that routing pays"
    return (
        f"Routing HyDE by class{_where(study)}: a learned rule changes {study.metric} by {seen} against the better of "
        f"no HyDE and HyDE for all, on questions it was not learned on: {end}. The ceiling of any router is {ceiling}."
    )


def sentences(study: RoutingStudy) -> list[str]:
    """Return what the study says, the most important first."""
    told = [*_arms(study), _classes(study), _ceiling(study)]
    if study.confusion is not None:
        told.append(_classifier(study))
    return [sentence for sentence in told if sentence]


def tables(study: RoutingStudy) -> list[Table]:
    """Return the arms by class, the classifier's confusion matrix, and what its mistakes cost."""
    made = [_class_table(study)]
    if study.confusion is not None:
        rows = tuple((str(name), *(str(int(n)) for n in row)) for name, row in study.confusion.iterrows())
        header = ("labelled", *(f"taken for {name}" for name in study.confusion.columns))
        made.append(Table(f"What the pipeline took each class for{_where(study)}", header, rows))
    if study.mistakes is not None:
        made.append(Table(_mistakes_title(study), _MISTAKE_HEADER, _mistake_rows(study), names=2))
    return made


def rule_table(study: RoutingStudy) -> Table:
    """Return the learned rule with the reason for each class."""
    learned = study.learned
    rows = (
        tuple((name, "yes" if on else "no", learned.reasons[name]) for name, on in learned.class_to_hyde.items())
        if (learned)
        else ()
    )
    return Table(f"Learned rule{_where(study)}", ("class", "HyDE", "why"), rows, names=3)


def _arms(study: RoutingStudy) -> list[str]:
    return [
        f"{_ARM[row['arm']]}, against {_ARM[row['against']]}{_where(study)}: {_seen(row, 'difference')} in "
        f"{study.metric} over {row['n']} questions; {_said(row)}."
        for row in study.by_class.to_dict("records")
        if row["query_class"] == ALL
    ]


def _classes(study: RoutingStudy) -> str:
    rows = [row for row in study.by_class.to_dict("records") if row["query_class"] != ALL]
    if not rows:
        return ""
    found = [row for row in rows if row["verdict"] in ("better", "worse")]
    told = [
        f"{row['query_class']} ({_ARM[row['arm']]} against {_ARM[row['against']]}: {_seen(row, 'difference')})"
        for row in found
    ]
    return f"By class, reliable differences: {'; '.join(told)}." if told else "In no class is a difference reliable."


def _ceiling(study: RoutingStudy) -> str:
    one = study.ceiling
    if one["oracle"] is None:
        return "No question has a score in every arm."
    return (
        f"Choosing afterwards the better of no HyDE and HyDE for each question would reach {plain(one['oracle'])}, "
        f"{_seen(one, 'gain')} over {_ARM[one['best_arm']]}: the ceiling of any router, and an optimistic one."
    )


def _classifier(study: RoutingStudy) -> str:
    table = study.confusion
    if table is None or not table.to_numpy().sum():
        return ""
    right = sum(int(table.loc[name, name]) for name in table.index if name in table.columns)
    total = int(table.to_numpy().sum())
    told = f"The pipeline gave {right} of {total} labelled questions the dataset's class ({right / total:.0%})"
    if study.mistakes is None or study.mistakes.empty:
        return f"{told}."
    row = study.mistakes.iloc[0]
    moved = f"its mistakes sent {row['n_routed_otherwise']} of {row['n']} to another arm"
    return f"{told}; {moved}, which cost {_seen(row, 'cost')} a question on average (positive: mistakes hurt)."


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
            row["verdict"],
        )
        for row in study.by_class.to_dict("records")
    ]
    by = "as the dataset labels it" if study.column == "labelled" else "as the pipeline gave it"
    return Table(f"{study.metric} by class, {by}{_where(study)}", _CLASS_HEADER, tuple(rows), names=2, words=1)


def _mistakes_title(study: RoutingStudy) -> str:
    return f"What the classifier's mistakes cost in {study.metric}{_where(study)} (positive: they hurt)"


def _mistake_rows(study: RoutingStudy) -> tuple[tuple[str, ...], ...]:
    rows = [] if study.mistakes is None else study.mistakes.to_dict("records")
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
    return f" with {study.where}" if study.where else ""


def _seen(row: Any, name: str) -> str:
    if number(row["low"]) is None or number(row["high"]) is None:
        return f"{signed(row[name])} (no interval)"
    return f"{signed(row[name])} [{signed_interval(row['low'], row['high'])}]"


def _said(row: Any) -> str:
    return {"better": "reliably better", "worse": "reliably worse"}.get(row["verdict"], str(row["verdict"]))
