"""Margins: how much worse a variant may be in a metric and still be left out; who declared them, and when.

A margin counts where it was declared before anything was scored. One that came later, when the scores could be looked
at, is *post hoc*, and stays so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from rag_lab._kit.wording import listing
from rag_lab.errors import ConfigError, RagLabError, unknown_name
from rag_lab.evaluation.metric import MetricInfo
from rag_lab.redaction import redact_value
from rag_lab.runs.run_folder import DONE_FILE, MANIFEST_FILE, RunFolder

NOTHING_MEASURED = "Labels, or a metric of quality, were added after a first run, which had none"


def margin_problems(margins: Mapping[str, float], infos: Mapping[str, MetricInfo | None]) -> list[str]:
    """Return a sentence for each margin that cannot be.

    Args:
        margins: by metric.
        infos: the metrics that there are; None for one of whose range nobody knows anything.
    """
    problems = []
    for metric, margin in margins.items():
        if metric not in infos:
            problems.append(f"margin: {unknown_name('metric', metric, infos)}")
        elif problem := _problem(margin, infos[metric]):
            problems.append(f"margin: {metric} = {margin:g} {problem}")
    return problems


def _problem(margin: float, info: MetricInfo | None) -> str:
    low, high = (info.low, info.high) if info else (None, None)
    width = None if low is None or high is None else high - low
    allowed = "a number above 0" + ("" if width is None else f" and at most {width:g}")
    if not math.isfinite(margin) or margin <= 0:
        return f"is no loss that could be borne; give {allowed}."
    if width is not None and margin > width:
        return f"is wider than the metric's range, {low:g} to {high:g}, so that nothing could fail it; give {allowed}."
    return ""


def parse_margins(given: Iterable[str]) -> dict[str, float]:
    """Return the margins written as `METRIC=VALUE`.

    Raises:
        ConfigError: naming each that is not written so.
    """
    margins, problems = {}, []
    for text in given:
        metric, _, value = text.rpartition("=")
        try:
            margins[metric.strip()] = float(value)
        except ValueError:
            metric = ""
        if not metric.strip():
            problems.append(f"--margin takes METRIC=VALUE, as in retrieval.ndcg@5=0.05, got {redact_value(text)!r}")
    if problems:
        raise ConfigError("; ".join(problems) + ".")
    return margins


def with_margins(run: RunFolder, margins: Mapping[str, float]) -> RunFolder:
    """Return the run with margins that somebody gave when it had been run; nothing is recorded.

    Raises:
        ConfigError: naming every one that cannot be.
    """
    if problems := margin_problems(margins, {metric: run.metric(metric) for metric in run.metrics}):
        raise ConfigError(" ".join(problems))
    late = [metric for metric, margin in margins.items() if run.margins.get(metric) != margin]
    known = tuple(dict.fromkeys([*run.post_hoc_margins, *late]))
    return replace(run, margins={**run.margins, **margins}, post_hoc_margins=known)


def dated(run: RunFolder) -> RunFolder:
    """Return the plan of a sweep that is to start in a folder, with what is post hoc in it marked.

    That are margins that the folder has no record of, or another value, though a variant in it is whole; what else
    decides what is concluded and was changed then (the primary metric, the pairs of variants that were there, whether
    it is strict); and what was post hoc before.
    """
    if not any(run.path.glob(f"variants/*/{DONE_FILE}")) and not any(run.path.glob(f"*/variants/*/{DONE_FILE}")):
        return run
    return _since(_recorded(run), run)


def dated_after(run: RunFolder, path: Path) -> RunFolder:
    """Return the plan of a run that is to replace the finished one in `path`, with what is post hoc in it marked."""
    if not (path / MANIFEST_FILE).is_file():
        return run
    return _since(_recorded(replace(run, path=path)), run)


def _since(before: RunFolder | None, run: RunFolder) -> RunFolder:
    margins, post_hoc = ({}, ()) if before is None else (before.margins, before.post_hoc_margins)
    is_measured = before is None or _primary(before) is not None
    late = (
        metric
        for metric, margin in run.margins.items()
        if metric in post_hoc or (is_measured and margins.get(metric) != margin)
    )
    changed = () if before is None else tuple(dict.fromkeys([*before.changed_late, *_changed(before, run)]))
    return replace(run, post_hoc_margins=tuple(late), changed_late=changed)


def _recorded(run: RunFolder) -> RunFolder | None:
    try:
        return RunFolder.open(run.path)
    except RagLabError:  # what was declared cannot be known any more
        return None


def _changed(before: RunFolder, now: RunFolder) -> Iterable[str]:
    was, decides = _primary(before), _primary(now)
    if was != decides:
        yield "the primary metric" if was else NOTHING_MEASURED
    known = {one.variant_id for one in before.variants} & {one.variant_id for one in now.variants}
    declared = ({pair for pair in one.pairs if known.issuperset(pair)} for one in (before, now))
    if len(set(map(frozenset, declared))) > 1:
        yield "the pairs"
    if before.strict != now.strict:
        yield "strict"


def _primary(run: RunFolder) -> str | None:
    """Return the first metric that is no cost: without labels there may be none."""
    infos = {metric: run.metric(metric) for metric in run.metrics}
    return next((metric for metric, info in infos.items() if info is None or not info.is_cost), None)


def post_hoc_sentence(run: RunFolder) -> str:
    """Say which margins, and what else, are post hoc, or ''."""
    told = [f"the margin of {metric}" for metric in run.post_hoc_margins]
    told += [one for one in run.changed_late if one != NOTHING_MEASURED]
    if told:
        are = f"{listing(told)} {'is' if len(told) == 1 else 'are'}"
        return f"{are[:1].upper()}{are[1:]} post hoc: declared or changed when variants of this run had been scored."
    if NOTHING_MEASURED in run.changed_late:
        return f"{NOTHING_MEASURED}. That is fine for exploring; confirm on new questions."
    return ""
