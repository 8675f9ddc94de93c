"""What `rag-lab compare` prints: the tables of a comparison in one of four formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from rag_lab.comparison.across import AcrossRuns, compare_runs
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.read_comparison import read_comparison
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.redaction import shown
from rag_lab.report.tables.table import Table, escape_latex, escape_markdown

Format = Literal["text", "markdown", "latex", "csv"]
FORMATS: tuple[str, ...] = get_args(Format)
_SHARED = ["variant_id", "metric"]


def compare_text(
    run: Path | str,
    other: Path | str | None = None,
    form: str = "text",
    correction: str = "max_t",
    pairs: str = "baseline",
    only: Sequence[str] = (),
    margins: Mapping[str, float] | None = None,
    without_known: float | None = None,
) -> str:
    """Return the comparison of a run's variants, or of two runs, in `form`, with all of its tables.

    A CSV has one row a (variant, metric), or with all pairs a (variant, metric, against).

    Args:
        run: a run folder.
        other: another run of the same questions.
        form: `text`, `markdown`, `latex` or `csv`.
        correction: see `compare`.
        pairs: see `compare`.
        only: names of tables, without the sentences; all where empty.
        margins: by metric, given post hoc; of one run.
        without_known: see `compare`; of one run.

    Raises:
        RagLabError: if a folder is no run or has no scores, the runs share no question, or an option is unknown.
    """
    from rag_lab.comparison.findings.conclusions import conclusions
    from rag_lab.report.sections import named_tables
    from rag_lab.report.tables.score_tables import tables_across
    from rag_lab.runs.omissions import asked_sentence

    if form not in FORMATS:
        raise ConfigError(unknown_name("format", form, FORMATS))
    if form == "csv" and only:
        raise ConfigError("csv has scores and differences in one table; leave out --table, or take another format.")
    made: Mapping[str, Sequence[Table]]
    found = _read(run, other, correction, pairs, margins, without_known)
    if isinstance(found, AcrossRuns):
        sentences, made = found.sentences, tables_across(found)
    else:
        sentences = [asked_sentence(len(found.run.questions), found.run.left_out), *conclusions(found)]
        made = named_tables(found)
    if form == "csv":
        wide = found.summary.merge(found.differences, on=_SHARED, how="left", suffixes=("", "_of_difference"))
        return shown(str(wide.to_csv(index=False, lineterminator="\n")))
    if unknown := [name for name in only if name not in made]:
        raise ConfigError(unknown_name("table", unknown[0], made))
    chosen = [table for name in only or made for table in made[name]]
    if only and not any(table.rows for table in chosen):
        raise ConfigError(f"{', '.join(only)}: this run has nothing to say there; --all prints the tables that it has.")
    return shown(write([] if only else sentences, chosen, form))


def compare_screen(
    run: Path | str,
    other: Path | str | None = None,
    correction: str = "max_t",
    pairs: str = "baseline",
    margins: Mapping[str, float] | None = None,
    without_known: float | None = None,
) -> str:
    """Return what a run, or two, come to on one screen; see `compare_text`."""
    from rag_lab.report.text.compare_screen import screen, screen_across

    found = _read(run, other, correction, pairs, margins, without_known)
    return screen_across(found) if isinstance(found, AcrossRuns) else screen(found)


def _read(
    run: Path | str,
    other: Path | str | None,
    correction: str,
    pairs: str,
    margins: Mapping[str, float] | None,
    without_known: float | None,
) -> Comparison | AcrossRuns:
    options: dict[str, Any] = {"correction": correction, "pairs": pairs}
    if other is None:
        return read_comparison(run, margins=margins, without_known=without_known, **options)
    if margins:
        raise ConfigError("A margin is of one run, and two are given; leave out --margin, or the second run.")
    if without_known is not None:
        raise ConfigError("--without-known is of one run, and two are given; leave it out, or the second run.")
    return compare_runs(run, other, **options)


def write(sentences: list[str], made: list[Table], form: str) -> str:
    """Return sentences and tables as `text`, `markdown` or `latex`; tables without rows are left out."""
    made = [table for table in made if table.rows]
    if form == "latex":
        parts = [*(f"% {escape_latex(sentence)}" for sentence in sentences), *(table.to_latex() for table in made)]
    elif form == "markdown":
        told = "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)
        parts = [*([told] if told else []), *(table.to_markdown() for table in made)]
    else:
        parts = [*(["\n".join(sentences)] if sentences else []), *(table.to_text() for table in made)]
    return "\n\n".join(parts) + "\n"
