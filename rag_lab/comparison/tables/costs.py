"""What stages, questions and indexes take under each variant, where stages failed or fell back, and why."""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import median
from typing import Any

import pandas as pd

from rag_lab._kit.wording import DASH, MINUS, number, seconds
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.records import StageRecord, Trace

SHOWN_S = 0.001
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
    did = (stages["median_s"] >= SHOWN_S) | (stages[["tokens_in", "tokens_out", "fallbacks", "failures"]] > 0).any(
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
                (answered(asked) or asked, (True, False)),
                (asked, (False,)),
                (answered(asked), (True,)),
            )
        )
        if asked:
            rows.append([variant_id, len(asked), median(whole), median(search), median(answer) if answer else None])
    return pd.DataFrame(rows, columns=["variant_id", "n", "median_s", "search_s", "answer_s"]).astype(object)


def answered(traces: Sequence[Trace]) -> list[Trace]:
    """Return the traces that were answered; what they took, or all where none was, is the price of a question."""
    return [trace for trace in traces if any(record.stage == "generate" for record in trace.stages)]


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


# Differences below these are the machine's, not the variant's.
NOTICED_S, NOTICED_TOKENS, NOTICED_SHARE = 0.05, 10, 0.02
_TIMES, _LEAST_S = 5, 0.01  # so many times as long is the variant's, too, where it is as long as this
SAME = "about the same"
# Rewriting, classifying and HyDE ask a chat model once each, as the reader does: more than all four together is many
# times the price. A second, or a tenth of a cent, is what an asker, or a budget, notices of one question.
MANY_TIMES, LEAST_S, LEAST_USD = 4, 1.0, 0.001


@dataclass(frozen=True, slots=True)
class Price:
    """What one question takes, or with what sign it takes more; None where that is not known.

    seconds: the median over the questions that are answered, over all where none is, as first computed.
    tokens: read and written by chat models; each stage counts with its mean over the questions on which it ran, so
        that a run of which only some questions are answered shows what an answered one takes.
    usd: as `tokens`; None also where a model that was called has no price in any table.
    """

    seconds: float | None = None
    tokens: float | None = None
    usd: float | None = None

    def minus(self, other: "Price") -> "Price":
        """Return how much more this takes than `other`; what is lost in the machine's noise is 0."""
        less, more = sorted((self.seconds or 0.0, other.seconds or 0.0))
        least = (
            _LEAST_S if more >= _TIMES * less else NOTICED_S,
            max(NOTICED_TOKENS, NOTICED_SHARE * (other.tokens or 0)),
            NOTICED_SHARE * (other.usd or 0),
        )
        pairs = zip(astuple(self), astuple(other), least, strict=True)
        return Price(*(None if a is None or b is None else a - b if abs(a - b) >= few else 0.0 for a, b, few in pairs))

    def times(self, other: "Price") -> float:
        """Return how many times what `other` takes this takes, where the difference is noticed of one question."""
        pairs = ((self.seconds, other.seconds, LEAST_S), (self.usd, other.usd, LEAST_USD))
        known = [(a, b) for a, b, least in pairs if a is not None and b is not None and a - b >= least]
        return max((a / b if b else math.inf for a, b in known), default=1.0)

    @property
    def is_saving(self) -> bool:
        """Whether, as a difference, it is less in something and more in nothing."""
        known = [value for value in astuple(self) if value is not None]
        return any(value < 0 for value in known) and all(value <= 0 for value in known)

    @property
    def is_costing(self) -> bool:
        """Whether, as a difference, it is more in anything."""
        return any(value is not None and value > 0 for value in astuple(self))

    @property
    def text(self) -> str:
        """What a question takes, for a sentence: `1.65 s and 783 tokens`."""
        return " and ".join(filter(None, _texts(self))) or DASH

    @property
    def signed(self) -> str:
        """A difference for a table: `+1.64 s, −12 tokens`, or that it is about the same."""
        if self == Price():
            return DASH
        signs = (None if value is None else "+" if value > 0 else MINUS for value in astuple(self))
        told = (f"{sign}{part}" for sign, part in zip(signs, _texts(self), strict=True) if part)
        return ", ".join(told) or SAME

    @property
    def sentence(self) -> str:
        """A difference as the end of a sentence on a variant: `costs 1.64 s and saves 12 tokens a question`."""
        if self == Price():
            return "costs what no trace tells"
        of_one: list[str] = []
        of_many = []
        for verb, side in (("costs", 1), ("saves", -1)):
            part = Price(*(value if (value or 0.0) * side > 0 else None for value in astuple(self)))
            took, tokens, dollars = _texts(part)
            if took or tokens:
                of_one.append(f"{verb} {' and '.join(filter(None, (took, tokens)))}")
            if dollars:
                is_same = of_one and of_one[-1].startswith(verb)
                of_many.append(f"{'' if is_same else f'{verb} '}{dollars} questions")
        texts = [f"{' and '.join(of_one)} a question" if of_one else "", *of_many]
        return " and ".join(filter(None, texts)) or "takes about as long and as many tokens a question"


def latency_text(tables: RunTables, variant: str) -> str:
    """Write what a question takes under a variant: `7.2 s (search 0.005 s, answer 7.2 s)`; "" without traces."""
    latency = tables.latency.set_index("variant_id")
    if variant not in latency.index:
        return ""
    whole, search, answer = (number(latency.at[variant, name]) for name in ("median_s", "search_s", "answer_s"))
    parts = "" if answer is None else f" (search {seconds(search)} s, answer {seconds(answer)} s)"
    return f"{seconds(whole)} s{parts}"


def _texts(price: Price) -> tuple[str, str, str]:
    """Return each amount without its sign; empty where it is nothing or not known."""
    took, tokens, usd = (abs(value or 0.0) for value in astuple(price))
    return (
        f"{seconds(took)} s" if took else "",
        f"{tokens:,.0f} tokens" if tokens >= 0.5 else "",
        f"${1000 * usd:,.2f} per 1,000" if usd else "",
    )


def prices(tables: RunTables) -> dict[str, Price]:
    """Return what a question takes under each variant that has traces."""
    medians = tables.latency.set_index("variant_id")["median_s"].to_dict()
    # A model without a price was counted as free.
    is_priced = not any(
        row.get("calls_spent") and row.get("cost_usd_estimated", 0) is None and not row.get("cost_usd_spent")
        for row in tables.manifest.get("spent", [])
    )
    found = {}
    for variant, rows in tables.stages.groupby("variant_id", sort=False):
        tokens, usd = (rows["tokens_in"] + rows["tokens_out"]).sum(), (rows["cost_usd"] / rows["runs"]).sum()
        found[str(variant)] = Price(medians.get(variant), float(tokens), float(usd) if is_priced else None)
    return found


def surplus(found: Mapping[str, Price], variant: str, other: str) -> Price:
    """Return how much more a question takes under `variant` than under `other`."""
    return found.get(variant, Price()).minus(found.get(other, Price()))


def average(found: Mapping[str, Price], variants: Collection[str]) -> Price:
    """Return the mean price of `variants`; None for what is not known of one of them."""
    rows = [astuple(found.get(variant, Price())) for variant in variants]
    columns = list(zip(*rows, strict=True))
    return Price(*(None if None in column else sum(column) / len(column) for column in columns))


@dataclass(frozen=True, slots=True)
class IndexPrice:
    """What one index takes; `seconds` are those of its embeddings as first computed, None where that is not known.

    `kept` is the share of near neighbours that quantized vectors keep near.
    """

    chunks: int
    seconds: float | None
    bytes: int
    kept: float | None = None

    @property
    def cells(self) -> tuple[str, str, str]:
        """Chunks, minutes and MB, for a table."""
        minutes = DASH
        if self.seconds is not None:
            minutes = f"{self.seconds / 60:.1f}" if self.seconds >= 6 else f"{self.seconds / 60:.2g}"
        return f"{self.chunks:,}", minutes, f"{self.bytes / 1e6:,.1f}"


def index_cells(tables: RunTables) -> dict[str, tuple[str, str, str]]:
    """Return chunks, minutes and MB of each variant's index, for a table."""
    ids = [plan.variant_id for plan in tables.variants]
    found = {variant: tables.run.recorded(variant, "index", IndexPrice, "its index") for variant in ids}
    return {variant: (DASH, DASH, DASH) if price is None else price.cells for variant, price in found.items()}


def index_sentences(tables: RunTables, variant: str, against: str, name: str) -> list[str]:
    """Say what the index of a variant takes, and that of another, called `name`; nothing where both take the same."""
    prices = [tables.run.recorded(one, "index", IndexPrice, "its index") for one in (variant, against)]
    known = [(*one.cells, one.kept) for one in prices if one is not None]
    if len(known) < 2 or (known[0][0], known[0][3]) == (known[1][0], known[1][3]):
        return []
    ours, theirs = (
        f"{chunks} chunks to embed{'' if minutes == DASH else f' ({minutes} minutes)'} and {megabytes} MB"
        f"{'' if kept is None else f', and its quantized vectors keep {kept:.1%} of near neighbours'}"
        for chunks, minutes, megabytes, kept in known
    )
    return [f"Its index takes {ours}; that of {name} {theirs}."]
