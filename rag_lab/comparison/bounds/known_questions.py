"""Questions that are answered without any context: they tell nothing of retrieval, and are left out on request.

They should go before retrieval is compared, since every variant answers them (arXiv 2501.01880).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from rag_lab._kit.wording import plain
from rag_lab.comparison.bounds.bound_arms import FLOOR
from rag_lab.errors import ConfigError
from rag_lab.records import Trace
from rag_lab.runs.run_folder import RunFolder
from rag_lab.statistics.per_question import per_question
from rag_lab.statistics.scales import Scale


@dataclass(frozen=True)
class Read:
    """What a run left on disk, as far as it is compared."""

    run: RunFolder
    traces: Mapping[str, list[Trace]]
    scores: pd.DataFrame


def without_known(read: Read, enough: float) -> Read:
    """Return a run without the questions that a closed book answers with a score of `enough` or better.

    The score is of the first metric of the run that reads answers, and of the variant that reads nothing; the better
    one, where several do. Which questions are left out depends on no variant that retrieves.

    Raises:
        ConfigError: if no variant closes the book, none of its scores is of an answer, `enough` cannot be reached, or
            no question would be left.
    """
    run = read.run
    metric, scale = _metric(run, enough)
    arms = [plan.variant_id for plan in run.variants if _is_closed(run, plan.variant_id)]
    if not arms:
        raise ConfigError(
            "Which questions are answered without any context is not known: no variant of this run closes the book; "
            "add one with answer.context=none to the experiment."
        )
    scores = per_question(read.scores[read.scores["variant_id"].isin(arms)], [metric])
    known = set(scores.loc[scale.sign * (scores["mean"] - enough) >= 0, "question_id"])
    if known >= set(run.questions):
        raise ConfigError(
            f"All {len(run.questions)} questions are answered without any context by {metric} = {enough:g}, so none is "
            "left to compare on; give a stricter score."
        )
    if not known:
        return read
    better = "at least" if scale.sign > 0 else "at most"
    reason = f"which a closed book answers ({metric} {better} {plain(enough)})"
    asked = tuple(name for name in run.questions if name not in known)
    kept = replace(
        run,
        questions=asked,
        answered=tuple(name for name in run.answered if name not in known),
        left_out={**run.left_out, reason: len(run.questions) - len(asked)},
    )
    traces = {
        variant: [trace for trace in some if trace.question.question_id not in known]
        for variant, some in read.traces.items()
    }
    return Read(kept, traces, read.scores[~read.scores["question_id"].isin(known)].reset_index(drop=True))


def _metric(run: RunFolder, enough: float) -> tuple[str, Scale]:
    infos = {metric: info for metric in run.metrics if (info := run.metric(metric)) is not None}
    found = [metric for metric, info in infos.items() if info.reads_answers and not info.is_cost]
    if not found:
        raise ConfigError(
            "Which questions are answered without any context is not known: no metric of this run reads answers; "
            "name one that does, as ragas.semantic_similarity."
        )
    scale = infos[found[0]].scale
    low, high = scale.low, scale.high
    if (low is not None and enough < low) or (high is not None and enough > high):
        allowed = f"{'any' if low is None else f'{low:g}'} to {'any' if high is None else f'{high:g}'}"
        raise ConfigError(f"{found[0]} is never {enough:g}; give a score from {allowed}.")
    return found[0], scale


def _is_closed(run: RunFolder, variant_id: str) -> bool:
    config = run.config(variant_id)
    return config is not None and config.answer.context == FLOOR
