"""The report as one self-contained page that asks the network for nothing.

Everything that came from documents, models or people is escaped; a content security policy lets no script run but the
page's own, named by its digest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rag_lab._kit.machine import in_background
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.questions.question_cards import cards
from rag_lab.redaction import shown
from rag_lab.report.markdown import to_markdown
from rag_lab.report.page.question_pages import (
    FOLDER,
    MOST_CHARS,
    bodies_or_pages,
    card_body,
    question_list,
    write_text,
)
from rag_lab.report.page.templates import asset, render, script_digest
from rag_lab.report.sections import groups, sections
from rag_lab.report.tables.score_tables import CORRECTIONS, differences_of, differences_title
from rag_lab.runs.run_manifest import plain_text

if TYPE_CHECKING:
    from rag_lab.data.check import DatasetCheck


_ELSEWHERE = ("variants", "problems", "spent", "prompts")  # entries of the manifest that the report shows elsewhere

logger = logging.getLogger(__name__)

HTML_FILE = "report.html"
SCRIPTS = ("pair.js", "script.js", "copy.js", "scrolling.js")
STYLES = ("card.css", "first_screen.css", "style.css", "questions.css", "print.css")
MARKDOWN_FILE = "report.md"


def write_report(
    run_dir: Path | str,
    *,
    one_file: bool = False,
    margins: Mapping[str, float] | None = None,
    without_known: float | None = None,
) -> Path:
    """Write report.html, report.md and the learned routing rules into the run folder and return the page's path.

    Where the questions are too many for one page, each has a page of its own in `questions/`, unless `one_file`. Those
    of an earlier report are removed. `margins` by metric are given post hoc, `without_known` as to `compare`.
    """
    comparison = read_comparison(run_dir, margins=margins, without_known=without_known)
    folder = comparison.run.path
    most_chars = None if one_file else MOST_CHARS
    with in_background(partial(bodies_or_pages, comparison, folder / FOLDER, HTML_FILE, most_chars)) as bodies:
        for study in comparison.routing:
            if study.learned is not None:
                write_text(folder / study.file_name, shown(study.yaml))
        write_text(folder / MARKDOWN_FILE, shown(to_markdown(comparison)))
        write_text(folder / HTML_FILE, shown(_page(comparison, bodies)))
    logger.info("wrote %s", folder / HTML_FILE)
    return folder / HTML_FILE


def to_html(comparison: Comparison) -> str:
    """Return the whole page, with all that the variants did with every question."""
    metrics = comparison.quality_metrics
    return _page(comparison, lambda: {c.question.question_id: card_body(c, metrics) for c in cards(comparison)})


def _page(comparison: Comparison, bodies: Callable[[], Mapping[str, str]]) -> str:
    """Return the page; `bodies`, which may wait, are asked for when all else is made."""
    script = Markup("").join(map(asset, SCRIPTS))
    parts, pairs = sections(comparison, "page"), comparison.differences
    if comparison.pairs != "all":
        pairs = pairs[pairs["against"] != comparison.run.baseline]
    return render(
        "template.html",
        c=comparison,
        linked=True,
        sections=parts,
        groups=groups(parts),
        style=Markup("").join(map(asset, STYLES)),
        script=script,
        script_digest=script_digest(script),
        correction=CORRECTIONS[comparison.correction],
        other_pairs=differences_of(comparison, pairs),
        facts=provenance(comparison.manifest),
        **question_list(comparison, bodies()),
    )


def overview_html(comparison: Comparison) -> str:
    """Return conclusions, scores, effects, routing, noise and complete cases, for a notebook."""
    return render(
        "overview.html",
        c=comparison,
        sections=sections(comparison, "notebook"),
        style=asset("card.css") + asset("first_screen.css"),
        script=asset("sort.js"),
    )


def scores_html(comparison: Comparison) -> str:
    """Return the scores for a notebook: a row a variant, a column a metric."""
    return render("scores.html", c=comparison, style=asset("card.css"), script=asset("sort.js"))


def differences_html(comparison: Comparison) -> str:
    """Return the differences for a notebook: a row a comparison, a column a metric, with each verdict in full."""
    rows = comparison.differences.to_dict("records")
    return render(
        "differences.html",
        c=comparison,
        title=differences_title(comparison),
        pairs=list(dict.fromkeys((row["variant_id"], row["against"]) for row in rows)),
        found={(row["variant_id"], row["against"], row["metric"]): row for row in rows},
        style=asset("card.css"),
        script=asset("sort.js"),
    )


def question_html(comparison: Comparison, question_id: str) -> str:
    """Return what every variant did with one question, for a notebook; empty where it was not asked."""
    card = next(cards(comparison, [question_id]), None)
    return render("question.html", c=comparison, style=asset("card.css"), card=card) if card else ""


def provenance(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the manifest says as (name, text) pairs; what has a section of its own is left out."""
    return [fact for key, value in manifest.items() if key not in _ELSEWHERE for fact in _facts(key, value)]


def _facts(name: str, value: Any) -> list[tuple[str, str]]:
    """Flatten one entry: a mapping of plain values is one line, deeper ones are a line each."""
    if isinstance(value, Mapping) and any(isinstance(inner, Mapping | list) for inner in value.values()):
        return [fact for key, inner in value.items() for fact in _facts(f"{name}: {key}", inner)]
    return [(name, plain_text(value, "not known"))]


def dataset_page(check: DatasetCheck) -> str:
    """Return the HTML page; every value is escaped."""
    n_unanswerable = check.n_questions - check.n_answerable
    share = "" if check.unanswerable_share is None else f" ({check.unanswerable_share:.0%})"
    facts = {
        "files": str(check.n_files),
        "questions": str(check.n_questions),
        "unanswerable": f"{n_unanswerable}{share}",
        "evidence items": str(check.n_evidence),
        "found in the corpus": f"{check.n_found} of {check.n_evidence}",
        "with page": str(check.n_with_page),
        "with quote": str(check.n_with_quote),
        **({"grades": check.grades} if check.grades else {}),
        "answerable questions without evidence": str(check.n_without_evidence),
        **{f"missing ({number})": part for number, part in enumerate(check.missing, start=1)},
    }
    return render("dataset.html", check=check, facts=facts, classes=_shares(check.by_class), tags=_shares(check.by_tag))


def _shares(counts: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """Return name, count and the width of its bar in percent of the largest."""
    most = max(counts.values(), default=1)
    return [(name, count, 100 * count / most) for name, count in counts.items()]
