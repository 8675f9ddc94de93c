"""Effects in plain words, as a report says them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rag_lab._kit.numbers import with_interval
from rag_lab._kit.wording import counted, listing
from rag_lab.statistics.verdict import NO_DIFFERENCE


def sentences(effects: pd.DataFrame, metric: str | None = None) -> list[str]:
    """Return what `effects` says: a sentence a main effect or toggle, and one a pair of levels of an interaction.

    An interaction is told both ways round: what each of the two does without and with the other. That an effect is
    reliable at one level and not at another does not show that it differs between them (Gelman and Stern 2006); so the
    sentence ends with whether the difference itself is reliable.

    Args:
        effects: the table that `effects.effects` returns.
        metric: of which, where not all are wanted.
    """
    rows = effects if metric is None else effects[effects["metric"] == metric]
    said = []
    for row in rows.to_dict("records"):
        if row["kind"] in ("main", "toggle"):
            said.append(_main(row, rows))
        elif row["kind"] == "interaction":
            said.append(_interaction(row, rows))
    return said


def _main(row: dict[Any, Any], rows: pd.DataFrame) -> str:
    others = [name for name in dict.fromkeys(rows.loc[rows["kind"] == "main", "factor"]) if name != row["factor"]]
    over = f", averaged over {listing(others)}" if row["kind"] == "main" and others else ""
    against = f"against {row['first']}{over}"
    size = counted(row["n"], "question")
    return f"{row['factor']}={row['level']} {_does(row)} in {row['metric']} {against} ({size})."


def _interaction(row: dict[Any, Any], rows: pd.DataFrame) -> str:
    if row["verdict"] in ("better", "worse"):
        end = f"the difference, {_seen(row)}, is reliable"
    elif row["effect"] is None:
        end = f"about the difference: {row['verdict']}"
    elif _is_same(row):
        end = "these two differ on no question"
    else:
        why = f"; {row['doubt']}" if row["doubt"] else ""
        end = f"whether these two differ the data cannot tell ({_seen(row)}{why})"
    swapped = {
        **{"factor": row["other"], "level": row["other_level"], "first": row["other_first"]},
        **{"other": row["factor"], "other_level": row["level"], "other_first": row["first"]},
    }
    one, other = (_one_way(way, rows) for way in (row, row | swapped))
    return f"In {row['metric']}, {one}; {other}; {end} ({counted(row['n'], 'question')})."


def _one_way(row: dict[Any, Any], rows: pd.DataFrame) -> str:
    alone, beside = (_conditional(row, rows, level) for level in (row["other_first"], row["other_level"]))
    return (
        f"{row['factor']}={row['level']} {_does(alone)} while {row['other']}={row['other_first']}, and {_does(beside)} "
        f"once {row['other']}={row['other_level']}"
    )


def _conditional(row: dict[Any, Any], rows: pd.DataFrame, held: Any) -> dict[Any, Any]:
    same = (rows["kind"] == "conditional") & (rows["metric"] == row["metric"]) & (rows["other_level"] == held)
    for name in ("factor", "level", "other"):
        same &= rows[name] == row[name]
    return {str(key): value for key, value in rows[same].iloc[0].items()}


def _does(row: dict[Any, Any]) -> str:
    if row["effect"] is None:
        return f"does nothing that could be measured ({row['verdict']})"
    if row["verdict"] == "better":
        return f"adds {_seen(row)}" if row["effect"] > 0 else f"takes off {_seen(row)}, which is better,"
    if row["verdict"] == "worse":
        return f"costs {_seen(row)}" if row["effect"] < 0 else f"adds {_seen(row)}, which is worse,"
    if _is_same(row):
        return "changes no question"
    if row["doubt"]:
        return f"shows {_seen(row)}, which is no finding ({row['doubt']}),"
    return f"does nothing that the data can tell from chance ({_seen(row)})"


def _is_same(row: dict[Any, Any]) -> bool:
    return str(row["verdict"]).startswith(NO_DIFFERENCE)


def _seen(row: dict[Any, Any]) -> str:
    return with_interval(row["effect"], row["low"], row["high"])
