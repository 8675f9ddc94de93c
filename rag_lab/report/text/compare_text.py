"""What `rag-lab compare` prints: the tables of a comparison in one of four formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

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
    correction: str = "holm",
    pairs: str = "baseline",
) -> str:
    """Return the comparison of a run's variants, or of two runs, in `form`.

    A CSV has one row a (variant, metric), or with all pairs a (variant, metric, against).

    Args:
        run: a run folder.
        other: another run of the same questions.
        form: `text`, `markdown`, `latex` or `csv`.
        correction: see `compare`.
        pairs: see `compare`.

    Raises:
        RagLabError: if a folder is no run or has no scores, the runs share no question, or an option is unknown.
    """
    from rag_lab.comparison.across import compare_runs
    from rag_lab.comparison.conclusions import conclusions
    from rag_lab.comparison.read_comparison import read_comparison
    from rag_lab.report.tables.comparison_tables import tables, tables_across
    from rag_lab.runs.asked import asked_told

    if form not in FORMATS:
        raise ConfigError(unknown_name("format", form, FORMATS))
    options: dict[str, Any] = {"correction": correction, "pairs": pairs}
    if other is None:
        one = read_comparison(run, **options)
        sentences = [asked_told(len(one.run.questions), one.run.left_out), *conclusions(one)]
        summary, differences, made = one.summary, one.differences, tables(one)
    else:
        two = compare_runs(run, other, **options)
        summary, differences, sentences, made = two.summary, two.differences, two.sentences, tables_across(two)
    if form == "csv":
        wide = summary.merge(differences, on=_SHARED, how="left", suffixes=("", "_of_difference"))
        return shown(str(wide.to_csv(index=False, lineterminator="\n")))
    return shown(write(sentences, made, form))


def write(sentences: list[str], made: list[Table], form: str) -> str:
    """Return sentences and tables as `text`, `markdown` or `latex`; tables without rows are left out."""
    made = [table for table in made if table.rows]
    if form == "latex":
        parts = [*(f"% {escape_latex(sentence)}" for sentence in sentences), *(table.to_latex() for table in made)]
    elif form == "markdown":
        told = "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)
        parts = [told, *(table.to_markdown() for table in made)]
    else:
        parts = ["\n".join(sentences), *(table.to_text() for table in made)]
    return "\n\n".join(parts) + "\n"
