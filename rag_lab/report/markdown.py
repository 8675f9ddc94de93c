"""report.md: what a pull request needs to show."""

from __future__ import annotations

import re
from typing import Any

from rag_lab.report.compare import Comparison
from rag_lab.report.numbers import DASH, interval, plain, seconds
from rag_lab.report.sections import score_incidents, stage_incidents
from rag_lab.report.verdict import verdict


def to_markdown(comparison: Comparison) -> str:
    """Return question, verdict, main table, failures and how to reproduce, as GitHub's Markdown."""
    run = comparison.run
    parts = [
        f"# {_text(run.name)}",
        f"**{_text(run.question)}**" if run.question else "",
        "\n".join(f"- {_text(sentence)}" for sentence in verdict(comparison)),
        _scores(comparison),
        "▲ ▼: reliably above or below the baseline (A). Mean [95% interval] scored/asked.",
        _failures(comparison),
        _reproduce(comparison),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _scores(comparison: Comparison) -> str:
    metrics = comparison.quality_metrics
    seconds_of = comparison.latency.set_index("variant_id")["median_s"].to_dict()
    lines = [
        f"| Variant | {' | '.join(_text(metric) for metric in metrics)} | seconds per question (median) |",
        f"|:--|{'--:|' * (len(metrics) + 1)}",
    ]
    for plan in comparison.variants:
        name = f"{comparison.codes[plan.variant_id]} {_text(plan.label)}"
        cells = [_cell(comparison, plan.variant_id, metric) for metric in metrics]
        if plan.variant_id in comparison.failed:
            cells = ["failed", *[DASH] * (len(metrics) - 1)][: len(metrics)]
        lines.append(f"| {name} | {' | '.join(cells)} | {seconds(seconds_of.get(plan.variant_id))} |")
    return "\n".join(lines)


def _cell(comparison: Comparison, variant: str, metric: str) -> str:
    cell = comparison.cell(variant, metric)
    if cell is None:
        return DASH
    sign = {1: " ▲", -1: " ▼", 0: ""}[comparison.reliable(variant, metric)]
    between = f"[{interval(cell['low'], cell['high'])}]"
    return f"**{plain(cell['mean'])}**{sign} {between} {cell['scored']}/{cell['asked']}"


def _failures(comparison: Comparison) -> str:
    lines = [
        f"- variant {comparison.codes[variant]} {_text(comparison.label(variant))}: {_text(reason)}"
        for variant, reason in comparison.failed.items()
    ]
    for one in stage_incidents(comparison):
        did = "fell back" if one["status"] == "fallback" else "failed"
        lines.append(f"- stage {_text(one['stage'])} {did} {_where(one)}: {_reasons(one)}")
    lines += [f"- {_text(one['metric'])} failed {_where(one)}: {_reasons(one)}" for one in score_incidents(comparison)]
    problems = comparison.manifest.get("problems", [])
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines.append(f"- {count} in the input, the first: {_text(problems[0])}")
    return "## What failed\n\n" + ("\n".join(lines) or "Nothing.")


def _where(one: dict[str, Any]) -> str:
    counts = [f"{code} {count}" + (f"/{runs}" if runs else "") for code, count, runs in one["where"]]
    return f"({', '.join(counts)})"


def _reasons(one: dict[str, Any]) -> str:
    reasons = "; ".join(f"{_text(reason)} ({count}×)" for reason, count in one["reasons"])
    return reasons + (f"; {one['more']} for other reasons" if one["more"] else "")


def _reproduce(comparison: Comparison) -> str:
    manifest, run = comparison.manifest, comparison.run
    if not manifest:
        return "## How to reproduce\n\nThe run is not finished: it has no manifest yet."
    commit = str(manifest.get("commit") or "not known") + (" with uncommitted changes" if manifest.get("dirty") else "")
    digest = manifest.get("dataset", {}).get("digest", "digest not known")
    return (
        "## How to reproduce\n\n"
        "`rag-lab sweep experiment.yaml` with the `experiment.yaml` of this run folder, at commit "
        f"{_text(commit)}, dataset {_text(run.dataset)} ({_text(digest)}). "
        "Models, versions and seeds stand in `manifest.json`; every question in `report.html`."
    )


def _text(value: Any) -> str:
    """Write `value` on one line so that nothing in it is read as Markdown or HTML."""
    line = " ".join(str(value).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", line)
