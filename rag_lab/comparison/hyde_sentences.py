"""A HyDE study as sentences."""

from __future__ import annotations

from typing import Any

from rag_lab._kit.wording import number, p_text, plain, signed, signed_interval, with_interval
from rag_lab.comparison.hyde_studies import RoutingStudy
from rag_lab.statistics.intervals import PairedDifference
from rag_lab.statistics.routing.ceilings import Ceiling
from rag_lab.statistics.routing.routing_table import ALL
from rag_lab.statistics.verdict import ALPHA

_ARM = {"none": "no HyDE", "always": "HyDE for every question", "classified": "HyDE by class"}
_NO_COST = "changed no score"
_BETTER_ARM = "the better of no HyDE and HyDE for all"


def conclusion(study: RoutingStudy) -> str:
    """Return in a few words whether a rule that is learned from this run pays."""
    if study.learned is None:
        return f"No question has a class, so no routing of HyDE can be learned{_where(study)}.{_most(study)}"
    gain = study.learned.gains["best_arm"]
    seen = _seen({"gain": gain.mean, "low": gain.low, "high": gain.high}, "gain")
    on = [name for name, hyde in study.learned.class_to_hyde.items() if hyde]
    return (
        f"Routing HyDE by class{_where(study)}: the rule learned from this run is HyDE for {_listing(on)}; on "
        f"questions they were not learned on, such rules change {study.scale.named(study.metric)} by {seen} against "
        f"{_BETTER_ARM}: {_pays(study, gain)}.{_most(study)}"
    )


def _pays(study: RoutingStudy, gain: PairedDifference) -> str:
    """Say whether a gain is one, by its interval and by the classes dealt out at random; both must agree."""
    if gain.mean is None or gain.ties == gain.n:
        return "no question could be scored" if gain.mean is None else "they change no question"
    low, high = sorted(study.scale.sign * (number(end) or 0.0) for end in (gain.low, gain.high))
    if high < 0:
        return "no rule learned from these questions pays"
    rare = study.p_gain is not None and study.p_gain < ALPHA
    if rare and low > 0:
        return "a rule learned from these questions pays"
    unlike = f"p {p_text(study.p_gain)} where classes are dealt out at random"
    why = f" ({unlike})" if low > 0 else f" ({unlike}, but the interval holds zero)" if rare else ""
    return f"the data cannot tell whether a rule learned from these questions pays{why}"


def _most(study: RoutingStudy) -> str:
    """Say what the best rule could gain, where it can be told."""
    known, one = study.class_ceiling, study.question_ceiling
    if known is not None and known.gain is not None:
        more = f"{_left(known)} against {_BETTER_ARM}, beyond what classes dealt out at random would show"
        return f" The ceiling of a rule by these classes: {more}."
    if one.gain is None:
        return ""
    if one.is_of_repeats:
        return f" The ceiling of a router that knows each question: {_left(one)} against {_BETTER_ARM}."
    return f" Choosing afterwards for each question: {_left(one)} beyond what chance alone would show."


def sentences(study: RoutingStudy) -> list[str]:
    """Return what the study says, the most important first."""
    told = [*_arms(study), _classes(study), *_ceilings(study)]
    if study.confusion is not None:
        told.append(_classifier(study))
    return [sentence for sentence in told if sentence]


def _arms(study: RoutingStudy) -> list[str]:
    return [
        f"{_ARM[row['arm']]}, against {_ARM[row['against']]}{_where(study)}: {_seen(row, 'difference')} in "
        f"{study.scale.named(study.metric)} over {row['n']} questions; {_said(row)}."
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


def _ceilings(study: RoutingStudy) -> list[str]:
    one, known = study.question_ceiling, study.class_ceiling
    if one.gain is None:
        return ["No question has a score in every arm."]
    told = [_of_repeats(study, one) if one.is_of_repeats else _of_single_scores(one)]
    return [*told, _of_classes(known)] if known is not None and known.gain is not None else told


def _of_classes(known: Ceiling) -> str:
    arm = _ARM[known.best_arm]
    if not known.seen:
        return (
            f"In every class {arm} scores best: no rule by these classes could gain on these questions, on others "
            f"{_left(known)} beyond chance."
        )
    return (
        f"Choosing afterwards the better arm for each class shows {signed(known.seen)} over {arm}, and classes dealt "
        f"out at random would show {signed(known.by_chance)}: a gain of {_left(known)} beyond that, the ceiling of a "
        "rule by these classes."
    )


def _of_repeats(study: RoutingStudy, one: Ceiling) -> str:
    return (
        "Taking for each question the arm that was better for it in one repeat, and not the better one for all, "
        f"changes {study.scale.named(study.metric)} in the other repeats by {_left(one)}: the ceiling, on these "
        f"{one.n} questions, of a router that knows each of them."
    )


def _of_single_scores(one: Ceiling) -> str:
    return (
        f"Choosing afterwards the better of no HyDE and HyDE for each question shows {signed(one.seen)} over "
        f"{_ARM[one.best_arm]}, and two arms that differ by their mean and by chance alone would show "
        f"{signed(one.by_chance)}: a gain of {_left(one)} beyond chance. What lasts and what was chance cannot be told "
        "from one score a question; `repeats: 2` tells them apart."
    )


def _left(one: Ceiling) -> str:
    return _seen({"gain": one.gain, "low": one.low, "high": one.high}, "gain")


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
    if not row["n_routed_otherwise"]:
        return f"{told}; no mistake sent a question to another arm."
    moved = f"its mistakes sent {row['n_routed_otherwise']} of {row['n']} to another arm"
    per = "" if (cost := _cost(row)) == _NO_COST else " a question on average"
    return f"{told}; {moved}, which {cost}{per}."


def _cost(row: Any) -> str:
    cost, low, high = (number(row[name]) for name in ("cost", "low", "high"))
    if cost is None or low is None or high is None:
        return f"cost {_seen(row, 'cost')}"
    if cost == low == high == 0:
        return _NO_COST
    does = (
        f"cost {plain(cost)} [{signed_interval(low, high)}]"
        if cost >= 0
        else (f"gained {plain(-cost)} [{signed_interval(-high, -low)}]")
    )
    return does if low > 0 or high < 0 else f"{does} (the data cannot tell it from chance)"


def _where(study: RoutingStudy) -> str:
    return f" with {study.where}" if study.where else ""


def _seen(row: Any, name: str) -> str:
    if number(row["low"]) is None or number(row["high"]) is None:
        return f"{signed(row[name])} (no interval)"
    return with_interval(row[name], row["low"], row["high"])


def _said(row: Any) -> str:
    return {"better": "reliably better", "worse": "reliably worse"}.get(row["verdict"], str(row["verdict"]))


def _listing(names: list[str]) -> str:
    return ", ".join(names) if names else "no class"
