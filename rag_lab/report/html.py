"""The report as one self-contained page that asks the network for nothing.

Everything that came from documents, models or people is escaped; a content security policy lets no script run but the
page's own, named by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from pathlib import Path

from markupsafe import Markup

from rag_lab.report import figures, sections
from rag_lab.report.compare import Comparison, compare
from rag_lab.report.figure_style import to_svg
from rag_lab.report.questions import QuestionCard, cards
from rag_lab.report.redact import redact
from rag_lab.report.templates import asset, render
from rag_lab.report.verdict import verdict

logger = logging.getLogger(__name__)

HTML_FILE = "report.html"
MARKDOWN_FILE = "report.md"


def write_report(run_dir: Path | str) -> Path:
    """Write report.html and report.md into the run folder and return the page's path.

    Raises:
        RagLabError: if the folder is no run, or has no scores yet.
    """
    comparison = compare(run_dir)
    folder = comparison.run.path
    _write(folder / MARKDOWN_FILE, redact(comparison.to_markdown()))
    _write(folder / HTML_FILE, redact(to_html(comparison)))
    logger.info("wrote %s", folder / HTML_FILE)
    return folder / HTML_FILE


def to_html(comparison: Comparison) -> str:
    """Return the whole page."""
    script = asset("script.js")
    main = comparison.main_metric
    return render(
        "template.html",
        c=comparison,
        main=main,
        style=asset("card.css") + asset("style.css"),
        script=script,
        script_digest=_digest(script),
        verdict=verdict(comparison),
        keys=sections.changed_keys(comparison),
        base=sections.baseline_values(comparison),
        quality_figures=_quality_figures(comparison),
        class_figure=_class_figure(comparison, main),
        latency_figure=_latency_figure(comparison, main),
        by_class=comparison.by_class.to_dict("records"),
        latency=comparison.latency.set_index("variant_id")["median_s"].to_dict(),
        stage_names=sections.stage_names(comparison),
        stage_cells=sections.stage_cells(comparison),
        incidents=sections.stage_incidents(comparison),
        incidents_of_scores=sections.score_incidents(comparison),
        classes=[name for name in dict.fromkeys(comparison.questions["query_class"]) if name],
        cards=cards(comparison),
        strip=_strip,
        facts=sections.provenance(comparison.manifest),
        problems=comparison.manifest.get("problems", []),
    )


def overview_html(comparison: Comparison) -> str:
    """Return verdict and table of scores, for a notebook."""
    return render("overview.html", c=comparison, style=asset("card.css"), verdict=verdict(comparison))


def question_html(comparison: Comparison, question_id: str) -> str:
    """Return what every variant did with one question, for a notebook; empty where it was not asked."""
    found = cards(comparison, [question_id])
    return render("question.html", c=comparison, style=asset("card.css"), card=found[0]) if found else ""


def _quality_figures(comparison: Comparison) -> list[tuple[str, Markup]]:
    result = []
    scored = set(comparison.summary[comparison.summary["scored"] > 0]["metric"])
    for number, metric in enumerate(metric for metric in comparison.quality_metrics if metric in scored):
        title = f"Mean and 95% interval of {metric} for each variant; the numbers stand in the table of scores."
        figure = figures.quality_figure(comparison, metric)
        result.append((metric, Markup(to_svg(figure, f"quality{number}", title))))  # noqa: S704 -- matplotlib escapes
    return result


def _class_figure(comparison: Comparison, main: str | None) -> Markup | None:
    if main is None or comparison.by_class.empty:
        return None
    title = f"Mean of {main} by variant and query class; the numbers stand in the table below."
    return Markup(to_svg(figures.class_figure(comparison, main), "classes", title))  # noqa: S704 -- matplotlib escapes


def _latency_figure(comparison: Comparison, main: str | None) -> Markup | None:
    if main is None or comparison.latency.empty:
        return None
    title = f"Mean of {main} against median seconds per question, one mark for each variant."
    return Markup(to_svg(figures.latency_figure(comparison, main), "latency", title))  # noqa: S704 -- matplotlib escapes


def _strip(card: QuestionCard) -> Markup:
    """Return the bars of a question's line: one a variant, its height the main metric, hatched where not scored."""
    bars = "".join(
        '<i class="n"></i>' if v is None else f'<i style="--v:{max(0, min(1, v)):.2f}"></i>' for _, v in card.strip
    )
    values = ", ".join(f"{code} {'not scored' if v is None else format(v, '.2f')}" for code, v in card.strip)
    frame = Markup('<span class="strip" role="img" title="{0}" aria-label="{0}">{1}</span>')
    return frame.format(values, Markup(bars))  # noqa: S704 -- numbers only


def _digest(script: str) -> str:
    """Return the script's digest in the form that a content security policy wants."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _write(path: Path, text: str) -> None:
    """Write `text`, replacing `path` at the end: a file that is there is whole."""
    partial = path.with_suffix(path.suffix + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
