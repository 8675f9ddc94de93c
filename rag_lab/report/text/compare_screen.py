"""What `rag-lab compare` shows on one screen: variants beside metrics, and the differences that can be told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rag_lab._kit.wording import DASH, interval, listing, p_value, plain, signed, signed_interval, some_of, text_table
from rag_lab.comparison.across import AcrossRuns
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.caveats import FEW, measures_cutting
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.comparison.findings.evidence_sentences import baseline_sentence
from rag_lab.comparison.findings.recommendation import recommendation
from rag_lab.comparison.findings.search_sentences import race_sentences
from rag_lab.redaction import shown
from rag_lab.report.tables.score_tables import CORRECTIONS
from rag_lab.runs.omissions import asked_sentence
from rag_lab.runs.race_record import cost_of

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 100  # columns
LINES = 34  # of tables of scores; what does not fit is named
MOST_DIFFERENCES = 12
_LONGEST_NAME = 30  # of a variant, beside its scores; longer ones are told by letter
_GAP = "  "
_MARKS = {"better": "▲", "worse": "▼"}


@dataclass(frozen=True)
class _Shown:
    """What a screen is made of: `names` by variant, and `summary` and `differences` as those of a `Comparison`."""

    names: dict[str, str]
    metrics: tuple[str, ...]
    directed: Callable[[str], str]
    summary: pd.DataFrame
    differences: pd.DataFrame
    baseline: str
    correction: str
    shallow: tuple[str, ...] = ()  # metrics with a cut-off that some rankings do not reach
    ranks: Callable[[str, str], int | None] = lambda *_: None  # that a metric sees of a variant, where they are fewer

    def cell(self, variant: str, metric: str) -> dict[str, Any] | None:
        return _first(self.summary, variant_id=variant, metric=metric)

    def mark(self, variant: str, metric: str) -> str:
        row = _first(self.differences, variant_id=variant, metric=metric, against=self.baseline)
        return _MARKS.get(str(row["verdict"]), " ") if row else " "

    def counts(self, metric: str) -> set[int]:
        return {int(row["scored"]) for variant in self.names if (row := self.cell(variant, metric))}


def screen(comparison: Comparison) -> str:
    """Return the scores of a run's variants by metric, and what differs, in lines of at most 100 columns."""
    run = comparison.run
    made = _Shown(
        names={plan.variant_id: comparison.name(plan.variant_id) for plan in comparison.variants},
        metrics=(*comparison.quality_metrics, *comparison.cost_metrics),
        directed=comparison.directed,
        summary=comparison.summary,
        differences=comparison.differences,
        baseline=run.baseline,
        correction=comparison.correction,
        shallow=tuple(comparison.shallow),
        ranks=comparison.ranks,
    )
    failed = [f"{comparison.name(variant)} has no scores: {reason}" for variant, reason in comparison.failed.items()]
    preferred = [one.sentence for one in comparison.preferences]
    found = recommendation(comparison)
    advised = [found.headline, *found.lines, *measures_cutting(comparison), *preferred]
    lost = [f"{sentence} --table evidence has every variant." for sentence in baseline_sentence(comparison)]
    told = conclusions(comparison) if comparison.is_unlabelled else [*advised, *lost]
    raced = race_sentences(comparison.race, cost_of(comparison.run))[:2] if comparison.race else []
    title = f"{run.name}: {run.question}" if run.question else run.name
    scored = f"The run is not finished: {len(run.scored())} of {len(run.variants)} variants have scores."
    unfinished = [] if comparison.manifest else [scored]
    return _text([title, asked_sentence(len(run.questions), run.left_out), *unfinished, *failed, *told, *raced], made)


def screen_across(found: AcrossRuns) -> str:
    """Return the same of two runs: every variant of both, against the first run's baseline, and what changed."""
    variants = dict.fromkeys(found.summary["variant_id"])
    scales = {**found.second.scales, **found.first.scales}
    made = _Shown(
        names={variant: found.label(variant) for variant in variants},
        metrics=tuple(dict.fromkeys(found.summary["metric"])),
        directed=lambda metric: scales[metric].named(metric) if metric in scales else metric,
        summary=found.summary,
        differences=found.differences,
        baseline=f"{found.names[0]}/{found.first.run.baseline}",
        correction=found.first.correction,
    )
    changed = [f"{change.what}: {change.first} → {change.second}" for change in found.changes]
    return _text([*found.sentences, *changed], made)


def _text(sentences: Sequence[str], made: _Shown) -> str:
    head = "\n".join(fill(" ".join(shown(sentence).split()), WIDTH) for sentence in sentences)
    thin = [metric for metric in made.metrics if max(made.counts(metric), default=0) < FEW]
    thick = [metric for metric in made.metrics if metric not in thin]
    legend, names = _names(made)
    tables, left = _tables(made, names, thick or list(made.metrics))
    notes = ["Mean [95% interval]; ▲ ▼: reliably better or worse than the baseline."]
    if thin and thick:
        counts = ", ".join(f"{metric} ({max(made.counts(metric), default=0)})" for metric in thin)
        notes.append(f"On fewer than {FEW} questions, in which hardly anything can be told: {counts}.")
    if made.shallow:
        notes.append(f"over n: the ranking holds n hits, fewer than the cut-off of {listing(made.shallow)}.")
    if left:
        notes.append(f"Not on this screen: {some_of(left, 20)}.")
    parts = [head, legend, *tables, "\n".join(fill(note, WIDTH) for note in notes), _differences(made, names)]
    return "\n\n".join(shown(part) for part in parts if part) + "\n"


def _names(made: _Shown) -> tuple[str, dict[str, str]]:
    """Return the variants in full where they are too long for a table, and what they are called in one."""
    if max(map(len, made.names.values()), default=0) <= _LONGEST_NAME:
        return "", made.names
    codes = {variant: name.split(" ")[0] for variant, name in made.names.items()}
    if len(set(codes.values())) < len(codes):  # variants of two runs have no letters
        codes = {variant: f"{number}" for number, variant in enumerate(codes, start=1)}
        told = [f"{codes[variant]}  {name}" for variant, name in made.names.items()]
    else:
        told = list(made.names.values())
    return "\n".join(fill(line, WIDTH, subsequent_indent="   ") for line in told), codes


def _tables(made: _Shown, names: dict[str, str], metrics: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return tables of as many metrics side by side as fit, and the metrics that stand in none."""
    columns = {metric: _column(made, metric) for metric in metrics}
    first = ["", "", *names.values()]
    tables: list[str] = []
    waiting, lines = list(metrics), 0
    while waiting and (not tables or lines + len(first) < LINES):
        chosen: list[str] = []
        width = max(map(len, first))
        while waiting and (not chosen or width + len(_GAP) + _width(columns[waiting[0]]) <= WIDTH):
            width += len(_GAP) + _width(columns[waiting[0]])
            chosen.append(waiting.pop(0))
        padded = [[cell.ljust(_width(one)) for cell in one] for one in (first, *(columns[name] for name in chosen))]
        tables.append("\n".join(_GAP.join(line).rstrip() for line in zip(*padded, strict=True)))
        lines += len(first) + 1
    return tables, waiting


def _column(made: _Shown, metric: str) -> list[str]:
    """Return a metric's name, how many questions were scored, and a line a variant; counts that differ stand there."""
    counts = made.counts(metric)
    below = made.directed(metric).removeprefix(metric).strip(" ()")
    same = f"n {counts.copy().pop()}" if len(counts) == 1 else ""
    cells = []
    for variant in made.names:
        row = made.cell(variant, metric)
        n = f" n {row['scored']}" if row and not same else ""
        n += f" over {ranks}" if (ranks := made.ranks(variant, metric)) is not None else ""
        cells.append(f"{_mean(row)}{n} {made.mark(variant, metric)}".rstrip() if row else DASH)
    return [metric, ", ".join(filter(None, (same, below))), *cells]


def _mean(row: dict[str, Any]) -> str:
    """Return a mean and its interval with as few characters as can be read."""
    between = interval(row["low"], row["high"])
    return f"{plain(row['mean'])} [{between if ',' in between else between.replace(' to ', ', ')}]"


def _width(column: Sequence[str]) -> int:
    return max(map(len, column))


def _differences(made: _Shown, names: dict[str, str]) -> str:
    """Return the differences from the baseline that are called such, those of the metric that decides first."""
    table = made.differences
    if table.empty:
        return ""
    against = table[table["against"] == made.baseline]
    found = against[against["verdict"].isin(list(_MARKS))].to_dict("records")
    rows = [row for metric in made.metrics for row in found if row["metric"] == metric]
    # In a grid effects are primary, and no pair of variants.
    is_primary = (against["family"] == "primary").any()
    families = f"primary: {made.metrics[0]}; all others secondary" if is_primary else "all secondary"
    family = f"{families}; correction: {CORRECTIONS[made.correction]}"
    if not rows:
        return fill(f"No difference from the baseline can be told from chance ({family}).", WIDTH)
    cells = [
        (
            f"{_MARKS[row['verdict']]} {names[row['variant_id']]}",
            row["metric"],
            signed(row["difference"]),
            signed_interval(row["low"], row["high"]),
            row["n"],
            p_value(row["p_corrected"]),
        )
        for row in rows[:MOST_DIFFERENCES]
    ]
    more = f"\nand {len(rows) - MOST_DIFFERENCES} more: --table differences" if len(rows) > MOST_DIFFERENCES else ""
    header = ("", "", "difference", "95% interval", "n", "corrected p")
    title = fill(f"Differences from the baseline that can be told from chance ({family})", WIDTH)
    return f"{title}\n{text_table(header, cells)}{more}"


def _first(table: pd.DataFrame, **values: str) -> dict[str, Any] | None:
    for column, value in values.items():
        table = table[table[column] == value]
    return None if table.empty else {str(key): value for key, value in table.iloc[0].items()}
