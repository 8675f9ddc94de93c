"""What each stage cost, where it failed or fell back, and why. No fallback stays silent."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd

from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.records import StageRecord, Trace

NOTICED_S = 0.001
_ANSWERING = ("context", "generate", "parse")
_SUMS = ["tokens_in", "tokens_out", "thinking_tokens", "cost_usd", "fallbacks", "failures"]
STAGE_COLUMNS = ["variant_id", "stage", "runs", "median_s", *_SUMS]
PROBLEM_COLUMNS = ["variant_id", "stage", "status", "reason", "count", "runs"]
COMMONEST = 3  # reasons shown before the rest is counted
_PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|-?\d+(?:\.\d+)?")


def stage_table(traces: Mapping[str, list[Trace]]) -> pd.DataFrame:
    """Return one row a (variant, stage), in the order in which the stages ran.

    `median_s` is per question and as first computed (a replay from the store costs what the original cost); tokens are
    means per question, thinking among those written, `cost_usd` is the sum, `fallbacks` and `failures` are counts of
    the `runs`.
    """
    rows = []
    for (variant_id, stage), records in _by_stage(traces).items():
        n = len(records)
        totals = [
            median(record.seconds for record in records),
            sum(record.tokens_in for record in records) / n,
            sum(record.tokens_out for record in records) / n,
            sum(record.thinking_tokens for record in records) / n,
            sum(record.cost_usd for record in records),
            sum(record.status == "fallback" for record in records),
            sum(record.status == "failed" for record in records),
        ]
        rows.append([variant_id, stage, n, *totals])
    return pd.DataFrame(rows, columns=STAGE_COLUMNS)


def stage_problems(traces: Mapping[str, list[Trace]]) -> pd.DataFrame:
    """Return one row a (variant, stage, status, reason) of fallbacks and failures, the commonest first."""
    rows = []
    for (variant_id, stage), records in _by_stage(traces).items():
        counts = Counter((r.status, r.reason) for r in records if r.status != "ok")
        rows += [[variant_id, stage, status, reason, n, len(records)] for (status, reason), n in counts.items()]
    table = pd.DataFrame(rows, columns=PROBLEM_COLUMNS)
    return table.sort_values("count", ascending=False, kind="stable", ignore_index=True)


def stage_names(stages: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the stages in the order in which they ran, and apart from them those that took no time anywhere."""
    did = (stages["median_s"] >= NOTICED_S) | (stages[["tokens_in", "tokens_out", "fallbacks", "failures"]] > 0).any(
        axis=1
    )
    shown = set(stages.loc[did, "stage"])
    names = list(dict.fromkeys(stages["stage"]))
    return [name for name in names if name in shown], [name for name in names if name not in shown]


def stage_cells(stages: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of a `stage_table` by (variant_id, stage)."""
    rows = stages.to_dict("records")
    return {(row["variant_id"], row["stage"]): {str(key): value for key, value in row.items()} for row in rows}


def latencies(traces: Mapping[str, list[Trace]]) -> pd.DataFrame:
    """Return median seconds for each variant that has traces, as first computed.

    Columns:
        variant_id, n
        median_s: of a whole question: of those that are answered, where any is
        search_s: of all that comes before a context
        answer_s: of context and answer, of the questions that are answered; None where none is
    """
    rows = []
    for variant_id, asked in traces.items():
        whole, search, answer = (
            [sum(one.seconds for one in trace.stages if (one.stage in _ANSWERING) in kinds) for trace in some]
            for some, kinds in (
                (as_answered(asked), (True, False)),
                (asked, (False,)),
                ([trace for trace in asked if _is_answered(trace)], (True,)),
            )
        )
        if asked:
            rows.append([variant_id, len(asked), median(whole), median(search), median(answer) if answer else None])
    return pd.DataFrame(rows, columns=["variant_id", "n", "median_s", "search_s", "answer_s"]).astype(object)


def as_answered(traces: Sequence[Trace]) -> Sequence[Trace]:
    """Return the traces that were answered, all where none was: what they took is the price of a question."""
    return [trace for trace in traces if _is_answered(trace)] or traces


def _is_answered(trace: Trace) -> bool:
    return any(record.stage == "generate" for record in trace.stages)


def _by_stage(traces: Mapping[str, list[Trace]]) -> dict[tuple[str, str], list[StageRecord]]:
    """Return the records by (variant_id, stage)."""
    found: dict[tuple[str, str], list[StageRecord]] = {}
    for variant_id, some in traces.items():
        for trace in some:
            for record in trace.stages:
                found.setdefault((variant_id, record.stage), []).append(record)
    return found


def commonest(rows: pd.DataFrame) -> str:
    """Write the commonest of the reasons in `rows` (columns `reason` and `count`), each by its first example."""
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    for reason, count in zip(rows["reason"], rows["count"], strict=True):
        shape = _PARTICULARS.sub("", str(reason))
        counts[shape] += int(count)
        examples.setdefault(shape, []).append(str(reason) or "no reason was recorded")
    more, texts = counts.total(), []
    for shape, count in counts.most_common(COMMONEST):
        alike = " and alike" if len(set(examples[shape])) > 1 else ""
        texts.append(f"{examples[shape][0]}{alike} ({count}×)")
        more -= count
    return "; ".join([*texts, *([f"{more} for other reasons"] if more else [])])


def stage_incidents(tables: RunTables) -> list[dict[str, Any]]:
    """Return fallbacks and failures by stage and status with their commonest reasons, and how often in each variant."""
    groups = tables.stage_problems.groupby(["stage", "status"], sort=False)
    return [
        {"stage": stage, "status": status, "where": _where(tables, rows), "reasons": commonest(rows)}
        for (stage, status), rows in groups
    ]


def score_incidents(tables: RunTables) -> list[dict[str, Any]]:
    """Return failed scores by metric with their commonest reasons, and how often in each variant."""
    groups = tables.gaps[tables.gaps["status"] == "failed"].groupby("metric", sort=False)
    return [{"metric": metric, "where": _where(tables, rows), "reasons": commonest(rows)} for metric, rows in groups]


def _where(tables: RunTables, rows: Any) -> list[tuple[str, int, int | None]]:
    """Return (letter, count, runs) for each variant; runs are None where the rows do not know them."""
    counts = rows.groupby("variant_id")["count"].sum()
    runs = rows.groupby("variant_id")["runs"].first() if "runs" in rows else {}
    return [
        (letter, int(counts[variant]), int(runs[variant]) if variant in runs else None)
        for variant, letter in tables.codes.items()
        if variant in counts.index
    ]
