"""What `evaluate` returns: a list of scores that shows itself."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from tqdm.auto import tqdm

from rag_lab._kit.observability import span
from rag_lab.errors import ConfigError
from rag_lab.evaluation.judge_queue import JudgeReplies
from rag_lab.evaluation.metric import Tools, Visible
from rag_lab.evaluation.registry import AnyMetric, build_metric, parse_name, problems
from rag_lab.evaluation.remembered import TracesScored, score_metric
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatModel, Embedder
from rag_lab.models.shared import booked
from rag_lab.records import Score, Trace
from rag_lab.rich_display import rich_display


@rich_display("rag_lab.notebook.views.scores_view:scores_view")
class Scores(list[Score]):
    """A list; where it is shown, a row a metric with mean, interval and counts."""


def evaluate(
    traces: Sequence[Trace],
    metrics: Sequence[AnyMetric],
    *,
    judge: ChatModel | None = None,
    embedder: Embedder | None = None,
    memory: Path | str | None = None,
    language: str = "",
    visible: Visible | None = None,
    progress: bool = False,
) -> Scores:
    """Return one score for each metric and trace: in the order of `metrics`, and of `traces` within each.

    Args:
        traces: what the pipeline did; nothing else is read.
        metrics: names as in `metric_names()`, e.g. `retrieval.ndcg@10`; or your own: functions `(trace) -> float`,
            instances of a class with such a `__call__`, `module:function`.
        judge: the chat model that judged metrics ask.
        embedder: the model behind metrics that compare meanings.
        memory: a file (`home() / "scores.sqlite"`) that keeps scores and replies; None keeps nothing.
        language: put the examples in RAGAs' prompts into this language ("german"), translated by the judge.
        visible: tells whether the asker of a question may see a file, which `access.leak` asks; see `visible_in`.
        progress: show a progress bar.

    Raises:
        ConfigError: naming every unknown metric, impossible cut-off, missing model and missing language at once.
        ModelError: if a model cannot even tell its identity (its package or its weights are missing).
    """
    wrong = problems(metrics, judge is not None, embedder is not None, language)
    if wrong:
        raise ConfigError(" ".join(wrong))
    store = Memory(memory) if memory is not None else None
    tools = Tools(judge, embedder, JudgeReplies(judge, store) if judge is not None else None, language, visible)
    scores, scored = Scores(), TracesScored(traces)
    n_scores = len(metrics) * len(traces)
    bar = tqdm(total=n_scores, desc="scoring", unit="score", disable=not progress)
    with store.opened() if store else nullcontext(), bar:
        for metric in metrics:
            payer = booked(judge, parse_name(metric).name) if judge is not None else None
            built = build_metric(metric, replace(tools, judge=payer))
            with span(f"metric {built.name}", {"rag_lab.traces": len(traces)}):
                scores += score_metric(built, scored, store, bar.update)
            bar.update(len(scores) - bar.n)
    return scores
