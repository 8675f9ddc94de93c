"""What a question and an index take under each variant, and how much more or less than under another."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass

from rag_lab._kit.wording import DASH, MINUS, number, seconds
from rag_lab.comparison.tables.run_tables import RunTables

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

    def minus(self, other: Price) -> Price:
        """Return how much more this takes than `other`; what is lost in the machine's noise is 0."""
        less, more = sorted((self.seconds or 0.0, other.seconds or 0.0))
        least = (
            _LEAST_S if more >= _TIMES * less else NOTICED_S,
            max(NOTICED_TOKENS, NOTICED_SHARE * (other.tokens or 0)),
            NOTICED_SHARE * (other.usd or 0),
        )
        pairs = zip(astuple(self), astuple(other), least, strict=True)
        return Price(*(None if a is None or b is None else a - b if abs(a - b) >= few else 0.0 for a, b, few in pairs))

    def times(self, other: Price) -> float:
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
    """What one index takes; `seconds` are those of its embeddings as first computed, None where that is not known."""

    chunks: int
    seconds: float | None
    bytes: int

    @property
    def cells(self) -> tuple[str, str, str]:
        """Chunks, minutes and MB, for a table."""
        minutes = DASH
        if self.seconds is not None:
            minutes = f"{self.seconds / 60:.1f}" if self.seconds >= 6 else f"{self.seconds / 60:.2g}"
        return f"{self.chunks:,}", minutes, f"{self.bytes / 1e6:,.1f}"

    def __str__(self) -> str:
        chunks, minutes, megabytes = self.cells
        took = "" if self.seconds is None else f" ({minutes} minutes)"
        return f"{chunks} chunks to embed{took} and {megabytes} MB"


def _index_price(tables: RunTables, variant: str) -> IndexPrice | None:
    """Return what the index of a variant takes, where that was recorded."""
    return tables.run.recorded(variant, "index", IndexPrice, "its index")


def index_cells(tables: RunTables) -> dict[str, tuple[str, str, str]]:
    """Return chunks, minutes and MB of each variant's index, for a table."""
    found = {plan.variant_id: _index_price(tables, plan.variant_id) for plan in tables.variants}
    return {variant: (DASH, DASH, DASH) if price is None else price.cells for variant, price in found.items()}


def index_sentences(tables: RunTables, variant: str, against: str, name: str) -> list[str]:
    """Say what the index of a variant takes, and that of another, called `name`; nothing where chunks are as many."""
    ours, theirs = _index_price(tables, variant), _index_price(tables, against)
    if ours is None or theirs is None or ours.chunks == theirs.chunks:
        return []
    return [f"Its index takes {ours}; that of {name} {theirs}."]
