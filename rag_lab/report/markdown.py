"""report.md: what a pull request needs to show."""

from collections.abc import Sequence
from typing import Any

from rag_lab._kit.wording import DASH, counted, interval, plain, seconds
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.caveats import families_sentence, sparse_metric_sentences, sparse_metrics
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.comparison.tables.prices import index_cells
from rag_lab.comparison.tables.stage_tables import score_incidents, stage_incidents
from rag_lab.report.sections import Section, sections
from rag_lab.report.tables.study_tables import module_table
from rag_lab.report.tables.table import escape_markdown
from rag_lab.report.verdict_box import verdict_box
from rag_lab.runs.omissions import asked_sentence


def to_markdown(comparison: Comparison) -> str:
    """Return question, verdict, sections, what went wrong and how to reproduce, as GitHub's Markdown."""
    run, box = comparison.run, verdict_box(comparison)
    shown = [(section, section.sentences(comparison)) for section in sections(comparison, "markdown")]
    in_sections = {sentence for _, sentences in shown for sentence in sentences}
    others = (f"- **{term}**: {escape_markdown(' '.join(sentences))}" for term, sentences in box.lines[1:])
    incidents = [
        f"- variant {comparison.codes[variant]} {escape_markdown(comparison.label(variant))}: {escape_markdown(reason)}"
        for variant, reason in comparison.failed.items()
    ]
    for one in stage_incidents(comparison):
        did = "fell back" if one["status"] == "fallback" else "failed"
        incidents.append(f"- stage {escape_markdown(one['stage'])} {did} {_where_and_why(one)}")
    failed = score_incidents(comparison)
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
        _list([*(one for one in conclusions(comparison) if one not in in_sections), families_sentence(comparison)]),
        *(_section(comparison, section, sentences) for section, sentences in shown),
        "## Not as planned\n\n" + ("\n".join(incidents) or "Nothing."),
        _reproduce(comparison),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(comparison: Comparison, section: Section, sentences: Sequence[str]) -> str:
    """Return a section with its sentences and its first table; nothing where it has none."""
    title = escape_markdown(section.title.format(c=comparison))
    if section.id == "scores":
        sparse = sparse_metrics(comparison)
        parts = [
            _scores(comparison, [metric for metric in comparison.quality_metrics if metric not in sparse]),
            "▲ ▼: reliably better or worse than the baseline (A). Mean [95% interval] scored/asked. Seconds are "
            "medians, of answers over the questions that are answered; chunks, minutes and MB are what embedding the "
            "index took.",
        ]
        if sparse:
            parts += ["Measured on few of the questions:", _list(sparse_metric_sentences(sparse))]
            parts.append(_scores(comparison, list(sparse)))
    else:
        tables = (t.to_markdown() for found in section.tables(comparison).values() for t in found if t.rows)
        # A table that is named as its section is not named again.
        parts = [_list(sentences), next(tables, "").removeprefix(f"**{title}**\n\n")]
    parts = list(filter(None, parts))
    return "\n\n".join([f"## {title}", *parts]) if parts else ""


def _scores(comparison: Comparison, metrics: Sequence[str]) -> str:
    names = [escape_markdown(comparison.column(metric)) for metric in metrics]
    took = comparison.latency.set_index("variant_id").to_dict("index")
    index = index_cells(comparison)
    lines = [
        f"| Variant | {' | '.join(names)} | search, s | answer, s | chunks | minutes | MB |",
        f"|:--|{'--:|' * (len(metrics) + 5)}",
    ]
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
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


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
