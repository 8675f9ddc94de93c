"""The report as one self-contained page that asks the network for nothing, as Markdown, and on paper.

Everything that came from documents, models or people is escaped; a content security policy lets no script run but the
page's own, named by its digest. Paper is printed by a Chromium that is found on the machine.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rag_lab._kit.digest import whole_file
from rag_lab._kit.machine import in_background
from rag_lab._kit.wording import DASH, counted, interval, plain, seconds
from rag_lab.comparison.by_question import cards
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.findings import verdict
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.comparison.tables import costs
from rag_lab.comparison.tables.studies import pair_numbers
from rag_lab.errors import RagLabError
from rag_lab.redaction import shown
from rag_lab.report import score_tables
from rag_lab.report.page import question_pages
from rag_lab.report.page.templates import asset, macro, render, script_digest
from rag_lab.report.sections import Section, VerdictBox, groups, sections, verdict_box
from rag_lab.report.study_tables import module_table
from rag_lab.report.table import escape_markdown, markdown_rows
from rag_lab.runs.omissions import asked_sentence
from rag_lab.runs.run_manifest import plain_text

if TYPE_CHECKING:
    from rag_lab.data.check import DatasetCheck
    from rag_lab.records import Trace

_ELSEWHERE = ("variants", "problems", "spent", "prompts")  # entries of the manifest that the report shows elsewhere

logger = logging.getLogger(__name__)

HTML_FILE = "report.html"
SCRIPTS = ("pair.js", "script.js", "baseline.js", "copy.js", "scrolling.js")
STYLES = ("card.css", "first_screen.css", "style.css", "questions.css", "print.css")
MARKDOWN_FILE = "report.md"


def write_report(
    run: Path | str | Comparison,
    *,
    one_file: bool = False,
    margins: Mapping[str, float] | None = None,
    without_known: float | None = None,
    traces: Mapping[str, list[Trace]] | None = None,
) -> Path:
    """Write report.html, report.md and the learned routing rules into the run folder and return the page's path.

    Where the questions are too many for one page, each has a page of its own in `questions/`, unless `one_file`. Those
    of an earlier report are removed. `margins` by metric are given post hoc, `without_known` as to `compare`; a run
    that was compared already is not read again, nor are the `traces` of variants.
    """
    read = partial(read_comparison, margins=margins, without_known=without_known, read=traces)
    comparison = run if isinstance(run, Comparison) else read(run)
    folder = comparison.run.path
    most_chars = None if one_file else question_pages.MOST_CHARS
    with in_background(
        partial(question_pages.bodies_or_pages, comparison, folder / question_pages.FOLDER, HTML_FILE, most_chars)
    ) as bodies:
        for study in comparison.routing:
            if study.learned is not None:
                question_pages.write_text(folder / study.file_name, shown(study.yaml))
        box = verdict_box(comparison)
        question_pages.write_text(folder / MARKDOWN_FILE, shown(to_markdown(comparison, box)))
        question_pages.write_text(folder / HTML_FILE, shown(_page(comparison, bodies, box)))
    logger.info("wrote %s", folder / HTML_FILE)
    return folder / HTML_FILE


def to_html(comparison: Comparison) -> str:
    """Return the whole page, with all that the variants did with every question."""
    body, metrics = macro("card.html", "body"), comparison.quality_metrics
    every = cards(comparison, comparison.why_failed)
    bodies = {one.question.question_id: body(one, metrics, asked=False) for one in every}
    return _page(comparison, lambda: bodies, verdict_box(comparison))


def _page(comparison: Comparison, bodies: Callable[[], Mapping[str, str]], box: VerdictBox) -> str:
    """Return the page; `bodies`, which may wait, are asked for when nearly all else is made."""
    script = Markup("").join(map(asset, SCRIPTS))
    parts, pairs = sections(comparison, "page"), comparison.differences
    if comparison.pairs != "all":
        pairs = pairs[pairs["against"] != comparison.run.baseline]
    return render(
        "template.html",
        c=comparison,
        box=box,
        linked=True,
        sections=[(part, part.figures(comparison)) for part in parts],
        groups=groups(parts),
        style=Markup("").join(map(asset, STYLES)),
        script=script,
        script_digest=script_digest(script),
        correction=score_tables.CORRECTIONS[comparison.correction],
        other_pairs=score_tables.differences_of(comparison, pairs),
        pairs=pair_numbers(comparison) if len(comparison.variants) > 2 else [],
        facts=[
            fact
            for name, entry in comparison.manifest.items()
            if name not in _ELSEWHERE
            for fact in _facts(name, entry)
        ],
        bodies=lambda: {name: Markup(body) for name, body in bodies().items()},  # noqa: S704 -- escaped where made
        **question_pages.question_list(comparison),
    )


def overview_html(comparison: Comparison) -> str:
    """Return conclusions, scores, effects, routing, noise and complete cases, for a notebook."""
    return render(
        "overview.html",
        c=comparison,
        box=verdict_box(comparison),
        sections=sections(comparison, "notebook"),
        style=asset("card.css") + asset("first_screen.css"),
        script=asset("sort.js"),
    )


def differences_html(comparison: Comparison) -> str:
    """Return the differences for a notebook: a row a comparison, a column a metric, with each verdict in full."""
    rows = comparison.differences.to_dict("records")
    return render(
        "differences.html",
        c=comparison,
        title=score_tables.differences_title(comparison),
        pairs=list(dict.fromkeys((row["variant_id"], row["against"]) for row in rows)),
        found={(row["variant_id"], row["against"], row["metric"]): row for row in rows},
        style=asset("card.css"),
        script=asset("sort.js"),
    )


def question_html(comparison: Comparison, question_id: str) -> str:
    """Return what every variant did with one question, for a notebook; empty where it was not asked."""
    card = next(cards(comparison, comparison.why_failed, [question_id]), None)
    return render("question.html", c=comparison, style=asset("card.css"), card=card) if card else ""


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
    classes, tags = (  # name, count and the width of its bar in percent of the largest
        [(name, count, 100 * count / max(counts.values())) for name, count in counts.items()]
        for counts in (check.by_class, check.by_tag)
    )
    return render("dataset.html", check=check, facts=facts, classes=classes, tags=tags)


def to_markdown(comparison: Comparison, box: VerdictBox | None = None) -> str:
    """Return question, verdict, sections, what went wrong and how to reproduce, as GitHub's Markdown."""
    run, box = comparison.run, box or verdict_box(comparison)
    shown = [(section, section.sentences(comparison)) for section in sections(comparison, "markdown")]
    in_sections = {sentence for _, sentences in shown for sentence in sentences}
    others = (f"- **{term}**: {escape_markdown(' '.join(sentences))}" for term, sentences in box.lines[1:])
    incidents = [
        f"- variant {comparison.codes[variant]} {escape_markdown(comparison.label(variant))}: {escape_markdown(reason)}"
        for variant, reason in comparison.failed.items()
    ]
    for one in costs.stage_incidents(comparison):
        did = "fell back" if one["status"] == "fallback" else "failed"
        incidents.append(f"- stage {escape_markdown(one['stage'])} {did} {_where_and_why(one)}")
    failed = costs.score_incidents(comparison)
    incidents += [f"- {escape_markdown(one['metric'])} failed {_where_and_why(one)}" for one in failed]
    problems = comparison.manifest.get("problems", [])
    if problems:
        incidents.append(
            f"- {counted(len(problems), 'problem')} in the input, the first: {escape_markdown(problems[0])}"
        )
    parts = [
        f"# {escape_markdown(run.name)}",
        f"**{escape_markdown(run.question)}**" if run.question else "",
        f"**{escape_markdown(box.found.headline)}**",
        "\n".join(others),
        escape_markdown(" ".join(box.reasons)),
        module_table(comparison, box.rows).to_markdown() if box.rows else "",
        escape_markdown(asked_sentence(len(run.questions), run.left_out)),
        _list(
            [*(one for one in conclusions(comparison) if one not in in_sections), verdict.families_sentence(comparison)]
        ),
        *(_section(comparison, section, sentences) for section, sentences in shown),
        "## Not as planned\n\n" + ("\n".join(incidents) or "Nothing."),
        _reproduce(comparison),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(comparison: Comparison, section: Section, sentences: Sequence[str]) -> str:
    """Return a section with its sentences and its first table; nothing where it has none."""
    title = escape_markdown(section.title.format(c=comparison))
    if section.id == "scores":
        sparse = verdict.sparse_metrics(comparison)
        parts = [
            _scores(comparison, [metric for metric in comparison.quality_metrics if metric not in sparse]),
            "▲ ▼: reliably better or worse than the baseline (A). Mean [95% interval] scored/asked. Seconds are "
            "medians, of answers over the questions that are answered; chunks, minutes and MB are what embedding the "
            "index took.",
        ]
        if sparse:
            parts += ["Measured on few of the questions:", _list(verdict.sparse_metric_sentences(sparse))]
            parts.append(_scores(comparison, list(sparse)))
    else:
        tables = (t.to_markdown() for found in section.tables(comparison).values() for t in found if t.rows)
        # A table that is named as its section is not named again.
        parts = [_list(sentences), next(tables, "").removeprefix(f"**{title}**\n\n")]
    parts = list(filter(None, parts))
    return "\n\n".join([f"## {title}", *parts]) if parts else ""


def _scores(comparison: Comparison, metrics: Sequence[str]) -> str:
    took = comparison.latency.set_index("variant_id").to_dict("index")
    index = costs.index_cells(comparison)
    names = (escape_markdown(comparison.column(metric)) for metric in metrics)
    rows = [["Variant", *names, "search, s", "answer, s", "chunks", "minutes", "MB"]]
    for plan in comparison.variants:
        truncated = comparison.truncation[plan.variant_id].mark
        name = f"{comparison.codes[plan.variant_id]} {escape_markdown(plan.label)}"
        name += f" ({truncated})" if truncated else ""
        cells = []
        for metric in metrics:
            cell, ranks = comparison.cell(plan.variant_id, metric), comparison.ranks(plan.variant_id, metric)
            if cell is None:
                cells.append(DASH)
                continue
            sign = {1: " ▲", -1: " ▼", 0: ""}[comparison.reliable(plan.variant_id, metric)]
            between = f"[{interval(cell['low'], cell['high'])}] {cell['scored']}/{cell['asked']}"
            over = "" if ranks is None else f", over {counted(ranks, 'rank')}"
            cells.append(f"**{plain(cell['mean'])}**{sign} {between}{over}")
        if plan.variant_id in comparison.failed:
            cells = [comparison.state(plan.variant_id), *[DASH] * (len(metrics) - 1)][: len(metrics)]
        of_variant = took.get(plan.variant_id, {})
        cells += [seconds(of_variant.get("search_s")), seconds(of_variant.get("answer_s")), *index[plan.variant_id]]
        rows.append([name, *cells])
    return markdown_rows(rows, [False, *[True] * (len(metrics) + 5)])


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)


def _where_and_why(one: dict[str, Any]) -> str:
    counts = [f"{code} {count}" + (f"/{runs}" if runs else "") for code, count, runs in one["where"]]
    return f"({', '.join(counts)}): {escape_markdown(one['reasons'])}"


def _reproduce(comparison: Comparison) -> str:
    manifest, run = comparison.manifest, comparison.run
    if not manifest:
        return "## How to reproduce\n\nThe run is not finished: it has no manifest yet."
    commit = str(manifest.get("commit") or "not known") + (" with uncommitted changes" if manifest.get("dirty") else "")
    digest = manifest.get("dataset", {}).get("digest", "digest not known")
    return (
        "## How to reproduce\n\n"
        "`rag-lab sweep experiment.yaml` with the `experiment.yaml` of this run folder, at commit "
        f"{escape_markdown(commit)}, dataset {escape_markdown(run.dataset)} ({escape_markdown(digest)}). "
        "Models, versions and seeds stand in `manifest.json`; every question in `report.html`."
    )


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge", "microsoft-edge")
_OFF_PATH = (  # where installers put it without a name on PATH
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
_PATIENCE_S = 300


def find_browser() -> str | None:
    """Return the Chromium, Chrome or Edge of this machine, or None."""
    named = [path for name in NAMES if (path := shutil.which(name))]
    return next(iter([*named, *(path for path in _OFF_PATH if Path(path).is_file())]), None)


def write_pdf(page: Path) -> Path:
    """Print `page`, the report of a run, into report.pdf beside it and return that path."""
    browser = find_browser()
    if browser is None:
        raise RagLabError(
            f"No browser that prints without a window was found ({', '.join(NAMES[:3])} or another Chromium); install "
            f"one, or open {page} in any browser and print it."
        )
    target = page.with_name("report.pdf")
    with tempfile.TemporaryDirectory() as profile, whole_file(target) as partial:
        # Chromium has no sandbox for root; the page loads nothing and its policy lets no foreign script run.
        root = ["--no-sandbox"] if sys.platform != "win32" and os.geteuid() == 0 else []
        flags = ["--headless", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
        flags += ["--no-pdf-header-footer", *root, f"--print-to-pdf={partial.resolve()}", page.resolve().as_uri()]
        reason = ""
        try:
            done = subprocess.run([browser, *flags], capture_output=True, timeout=_PATIENCE_S, check=False)  # noqa: S603 -- fixed
            if done.returncode:
                reason = f"it ended with {done.returncode}"
        except OSError as error:
            reason = str(error.strerror)
        except subprocess.TimeoutExpired:
            reason = f"it was not done after {_PATIENCE_S} seconds"
        if reason or not partial.is_file() or not partial.stat().st_size:
            raise RagLabError(
                f"{browser} did not print {page}{f': {reason}' if reason else ''}; open it in a browser and print it."
            )
    return target
