"""What `rag-lab compare` prints: one screen, or the tables of a comparison in one of four formats."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, get_args

import pandas as pd

from rag_lab._kit.wording import DASH, interval, listing, p_value, plain, signed, signed_interval, some_of, text_table
from rag_lab.comparison.across import AcrossRuns, compare_runs
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.findings import conclusions, recommendation, search_sentences, trace_findings, verdict
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.redaction import shown
from rag_lab.report.score_tables import CORRECTIONS, tables_across
from rag_lab.report.table import Table, escape_latex, escape_markdown
from rag_lab.runs.omissions import asked_sentence
from rag_lab.runs.run_manifest import cost_of

Format = Literal["text", "markdown", "latex", "csv"]
FORMATS: tuple[str, ...] = get_args(Format)
WIDTH = 100  # columns
LINES = 34  # of tables of scores; what does not fit is named
MOST_DIFFERENCES = 12
_LONGEST_NAME = 30  # of a variant, beside its scores; longer ones are shown by letter
_GAP = "  "
_MARKS = {"better": "▲", "worse": "▼"}


def compare_text(
    run: Path | str, other: Path | str | None = None, form: str = "text", only: Sequence[str] = (), **options: Any
) -> str:
    """Return the comparison of a run's variants, or of two runs of the same questions, with all of its tables.

    `only` names tables, without the sentences; `options` are correction, pairs, and of one run margins and
    without_known, see `read_comparison`. A CSV has one row a (variant, metric), or with all pairs a (variant, metric,
    against).
    """
    from rag_lab.report.sections import named_tables  # which loads what draws figures

    if form not in FORMATS:
        raise ConfigError(unknown_name("format", form, FORMATS))
    if form == "csv" and only:
        raise ConfigError("csv has scores and differences in one table; leave out --table, or take another format.")
    tables: Mapping[str, Sequence[Table]]
    found = _read(run, other, **options)
    if isinstance(found, AcrossRuns):
        sentences, tables = found.sentences, tables_across(found)
    else:
        sentences = [asked_sentence(len(found.run.questions), found.run.left_out), *conclusions.conclusions(found)]
        tables = named_tables(found)
    if form == "csv":
        on = ["variant_id", "metric"]
        wide = found.summary.merge(found.differences, on=on, how="left", suffixes=("", "_of_difference"))
        return shown(str(wide.to_csv(index=False, lineterminator="\n")))
    if unknown := [name for name in only if name not in tables]:
        raise ConfigError(unknown_name("table", unknown[0], tables))
    chosen = [table for name in only or tables for table in tables[name] if table.rows]
    if only and not chosen:
        raise ConfigError(f"{', '.join(only)}: this run has nothing to say there; --all prints the tables that it has.")
    sentences = [] if only else sentences
    if form == "latex":
        parts = [*(f"% {escape_latex(sentence)}" for sentence in sentences), *(table.to_latex() for table in chosen)]
    elif form == "markdown":
        listed = "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)
        parts = [*filter(None, [listed]), *(table.to_markdown() for table in chosen)]
    else:
        parts = [*filter(None, ["\n".join(sentences)]), *(table.to_text() for table in chosen)]
    return shown("\n\n".join(parts) + "\n")


def compare_screen(run: Path | str, other: Path | str | None = None, **options: Any) -> str:
    """Return what a run, or two, come to on one screen; see `compare_text`."""
    found = _read(run, other, **options)
    if not isinstance(found, AcrossRuns):
        return screen(found)
    scales = {**found.second.scales, **found.first.scales}
    parts = _Shown(  # every variant of both, against the first run's baseline
        names={variant: found.label(variant) for variant in dict.fromkeys(found.summary["variant_id"])},
        metrics=tuple(dict.fromkeys(found.summary["metric"])),
        directed=lambda metric: scales[metric].named(metric) if metric in scales else metric,
        summary=found.summary,
        differences=found.differences,
        baseline=f"{found.names[0]}/{found.first.run.baseline}",
        correction=found.first.correction,
    )
    changed = [f"{change.what}: {change.first} → {change.second}" for change in found.changes]
    return _screen([*found.sentences, *changed], parts)


def _read(
    run: Path | str,
    other: Path | str | None,
    margins: Mapping[str, float] | None = None,
    without_known: float | None = None,
    **options: Any,
) -> Comparison | AcrossRuns:
    if other is None:
        return read_comparison(run, margins=margins, without_known=without_known, **options)
    if margins:
        raise ConfigError("A margin is of one run, and two are given; leave out --margin, or the second run.")
    if without_known is not None:
        raise ConfigError("--without-known is of one run, and two are given; leave it out, or the second run.")
    return compare_runs(run, other, **options)


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


def screen(comparison: Comparison) -> str:
    """Return the scores of a run's variants by metric, and what differs, in lines of at most 100 columns."""
    run = comparison.run
    parts = _Shown(
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
    sentences = [f"{run.name}: {run.question}" if run.question else run.name]
    sentences.append(asked_sentence(len(run.questions), run.left_out))
    if not comparison.manifest:
        n_scored = f"{len(run.scored())} of {len(run.variants)} variants have scores"
        sentences.append(f"The run is not finished: {n_scored}.")
    failed = comparison.failed.items()
    sentences += [f"{comparison.name(variant)} has no scores: {reason}" for variant, reason in failed]
    if comparison.is_unlabelled:
        sentences += conclusions.conclusions(comparison)
    else:
        found = recommendation.recommendation(comparison)
        answers = f"Answers: {found.answers}" if found.answers else ""
        sentences += [found.headline, *filter(None, (answers, found.first)), *found.labels]
        sentences += verdict.measures_cutting(comparison)
        sentences += [one.sentence for one in comparison.preferences]
        sentences += [
            f"{sentence} --table evidence has every variant."
            for sentence in trace_findings.baseline_sentence(comparison)
        ]
    sentences += search_sentences.race_sentences(comparison.race, cost_of(run))[:2] if comparison.race else []
    following = recommendation.next_command(comparison)
    return _screen(sentences, parts) + (
        f"\n{fill(shown(following), WIDTH, break_long_words=False)}\n" if following else ""
    )


def _screen(sentences: Sequence[str], parts: _Shown) -> str:
    head = "\n".join(fill(" ".join(shown(sentence).split()), WIDTH) for sentence in sentences)
    columns, n_most = {}, {}
    for metric in parts.metrics:
        columns[metric], n_most[metric] = _column(parts, metric)
    thin = [metric for metric in parts.metrics if n_most[metric] < verdict.FEW]
    thick = [metric for metric in parts.metrics if metric not in thin]
    legend, names = _names(parts)
    first = ["", "", *names.values()]
    tables: list[str] = []
    waiting, lines = list(thick or parts.metrics), 0
    while waiting and (not tables or lines + len(first) < LINES):
        chosen = [first]
        width = max(map(len, first))
        while waiting:  # as many metrics side by side as fit, one at least
            width += len(_GAP) + max(map(len, columns[waiting[0]]))
            if len(chosen) > 1 and width > WIDTH:
                break
            chosen.append(columns[waiting.pop(0)])
        padded = [[cell.ljust(max(map(len, one))) for cell in one] for one in chosen]
        tables.append("\n".join(_GAP.join(line).rstrip() for line in zip(*padded, strict=True)))
        lines += len(first) + 1
    notes = ["Mean [95% interval]; ▲ ▼: reliably better or worse than the baseline."]
    if thin and thick:
        counts = ", ".join(f"{metric} ({n_most[metric]})" for metric in thin)
        notes.append(f"On fewer than {verdict.FEW} questions, in which hardly anything can be told: {counts}.")
    if parts.shallow:
        notes.append(f"over n: the ranking holds n hits, fewer than the cut-off of {listing(parts.shallow)}.")
    if waiting:
        notes.append(f"Not on this screen: {some_of(waiting, 20)}.")
    blocks = [head, legend, *tables, "\n".join(fill(note, WIDTH) for note in notes), _differences(parts, names)]
    return "\n\n".join(shown(block) for block in blocks if block) + "\n"


def _names(parts: _Shown) -> tuple[str, dict[str, str]]:
    """Return the variants in full where they are too long for a table, and what they are called in one."""
    if max(map(len, parts.names.values()), default=0) <= _LONGEST_NAME:
        return "", parts.names
    codes = {variant: name.split(" ")[0] for variant, name in parts.names.items()}
    lines = list(parts.names.values())
    if len(set(codes.values())) < len(codes):  # variants of two runs have no letters
        codes = {variant: f"{number}" for number, variant in enumerate(codes, start=1)}
        lines = [f"{codes[variant]}  {name}" for variant, name in parts.names.items()]
    return "\n".join(fill(line, WIDTH, subsequent_indent="   ") for line in lines), codes


def _column(parts: _Shown, metric: str) -> tuple[list[str], int]:
    """Return a metric's column and on how many questions a variant was scored at most."""
    cells = {row["variant_id"]: row for row in parts.summary[parts.summary["metric"] == metric].to_dict("records")}
    differences = parts.differences
    against = differences[(differences["metric"] == metric) & (differences["against"] == parts.baseline)]
    verdicts = dict(zip(against["variant_id"], against["verdict"], strict=True))
    counts = {int(cells[variant]["scored"]) for variant in parts.names if variant in cells}
    same = f"n {next(iter(counts))}" if len(counts) == 1 else ""
    below = parts.directed(metric).removeprefix(metric).strip(" ()")
    column = [metric, ", ".join(filter(None, (same, below)))]
    for variant in parts.names:
        if variant not in cells:
            column.append(DASH)
            continue
        row = cells[variant]
        between = interval(row["low"], row["high"])  # with as few characters as can be read
        text = f"{plain(row['mean'])} [{between if ',' in between else between.replace(' to ', ', ')}]"
        text += "" if same else f" n {row['scored']}"
        text += f" over {ranks}" if (ranks := parts.ranks(variant, metric)) is not None else ""
        column.append(f"{text} {_MARKS.get(str(verdicts.get(variant)), '')}".rstrip())
    return column, max(counts, default=0)


def _differences(parts: _Shown, names: dict[str, str]) -> str:
    """Return the differences from the baseline that are called such, those of the metric that decides first."""
    table = parts.differences
    if table.empty:
        return ""
    against = table[table["against"] == parts.baseline]
    found = against[against["verdict"].isin(list(_MARKS))].to_dict("records")
    rows = [row for metric in parts.metrics for row in found if row["metric"] == metric]
    # In a grid effects are primary, and no pair of variants.
    is_primary = (against["family"] == "primary").any()
    families = f"primary: {parts.metrics[0]}; all others secondary" if is_primary else "all secondary"
    family = f"{families}; correction: {CORRECTIONS[parts.correction]}"
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
