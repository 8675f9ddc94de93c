"""A gate between two runs of the same variants: what is reliably worse now, and what the data cannot tell."""

from dataclasses import dataclass
from typing import Any

from rag_lab._kit.wording import counted, listing, plain, short_verdict, signed, signed_interval, with_interval
from rag_lab.comparison.across import AcrossRuns
from rag_lab.comparison.findings.trace_findings import state_names
from rag_lab.report.table import Table

_MOST_QUESTIONS = 10  # that lost the most, of each variant


@dataclass(frozen=True)
class Gate:
    """What each variant of an earlier run, the first of `found`, has come to in the second.

    Family and correction are those of `compare_runs`: where nothing has changed, one gate in twenty finds something.
    """

    found: AcrossRuns

    @property
    def rows(self) -> list[dict[Any, Any]]:
        """A row a variant, by its id in both runs, and quality metric, as in `AcrossRuns.same`."""
        rows = self.found.same.to_dict("records")
        return [row | {"variant": str(row["variant_id"]).rpartition("/")[2]} for row in rows]

    @property
    def missing(self) -> list[str]:
        """The variants of the earlier run without a score in the later one."""
        there = {row["variant_id"] for row in self.rows if row["n"]}
        before = {row["variant_id"] for row in self.found.first.summary.to_dict("records") if row["scored"]}
        plans = self.found.first.variants
        name = self.found.names[1]
        return [p.variant_id for p in plans if p.variant_id in before and f"{name}/{p.variant_id}" not in there]

    @property
    def passes(self) -> bool:
        """Whether nothing is reliably worse, and no variant has lost its scores."""
        return not self.missing and not any(row["verdict"] == "worse" for row in self.rows)

    @property
    def sentences(self) -> list[str]:
        """What failed, else that nothing did; and how little the rest says."""
        worse = [
            f"{row['variant']} in {row['metric']} by {with_interval(row['difference'], row['low'], row['high'])}"
            for row in self.rows
            if row["verdict"] == "worse"
        ]
        open_rows = [row for row in self.rows if row["verdict"] not in ("worse", "better")]
        told = [f"Reliably worse: {listing(worse)}." if worse else "Nothing is reliably worse."]
        if self.missing:
            told.append(f"Without scores now: {listing(self.missing)}.")
        if open_rows:
            told.append(
                f"Of {counted(len(self.rows), 'comparison')} the data cannot tell {len(open_rows)}: the table says "
                "which loss their intervals do not rule out."
            )
        return [*told, *self.found.sentences]

    def tables(self) -> list[Table]:
        """The comparisons; the questions that lost the most in the main metric; evidence that ended elsewhere."""
        header = ("variant", "metric", "n", "difference", "95% interval", "verdict")
        rows = tuple(
            (
                row["variant"],
                row["metric"],
                str(row["n"]),
                signed(row["difference"]),
                signed_interval(row["low"], row["high"]),
                short_verdict(row["verdict"]),
            )
            for row in self.rows
        )
        names, on = self.found.names, ["variant_id", "question_id", "repeat", "item"]
        items = [one.evidence.items for one in (self.found.first, self.found.second)]
        both = items[0].merge(items[1], on=on, suffixes=("", "_now"))
        both = both[both["question_id"].isin(self.found.shared.questions) & (both["state"] != both["state_now"])]
        counts = both.groupby(["variant_id", "state", "state_now"], sort=False).size().sort_values(ascending=False)
        ended = counts.reset_index(name="n").itertuples(index=False)
        named = {**state_names(self.found.first.evidence), **state_names(self.found.second.evidence)}
        moved = tuple((str(v), named[a].name, named[b].name, f"{n:,}") for v, a, b, n in ended)
        first, metric = self.found.first, self.found.first.main_metric
        scores = self.found.scores[self.found.scores["metric"] == metric]
        wide = scores.pivot_table("value", "question_id", "variant_id", "mean")
        worst: list[tuple[str, ...]] = []
        for plan in first.variants:
            before, now = (f"{name}/{plan.variant_id}" for name in self.found.names)
            if before in wide and now in wide:
                both = wide[[before, now]].dropna()
                change = first.sign(metric or "") * (both[now] - both[before])
                for question in change[change < 0].sort_values(kind="stable").index[:_MOST_QUESTIONS]:
                    values = (plain(both.at[question, one]) for one in (before, now))
                    worst.append((plan.variant_id, str(question), *values))
        return [
            Table(f"{names[1]} minus {names[0]}", header, rows, names=2, words=1),
            Table("The questions that lost the most", ("variant", "question", *names), tuple(worst), names=2),
            Table("Evidence that ended elsewhere", ("variant", *names, "pieces"), moved, names=3),
        ]
