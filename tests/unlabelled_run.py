"""The run of `run_folder_fixture` as it would be if nobody knew the answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from run_folder_fixture import COSTS, build_run

from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.score_file import write_frame
from rag_lab.runs.trace_file import write_traces


def build_unlabelled(path: Path, questions: int = 12, variants: int = 4) -> RunFolder:
    """Write the run at `path` without evidence, answers and classes, measured by what it costs alone."""
    run = replace(build_run(path, questions, variants), metrics=COSTS)
    run.write_plan()
    for plan in run.variants:
        if run.has_traces(plan.variant_id):
            traces = [
                replace(
                    trace,
                    question=replace(trace.question, evidence=(), answers=(), answerable=True, query_class=None),
                )
                for trace in run.traces(plan.variant_id)
            ]
            write_traces(run.variant_dir(plan.variant_id) / "traces.jsonl", traces)
    scores = run.scores()
    write_frame(path / "scores.parquet", scores[scores["metric"].isin(COSTS)])
    return RunFolder.open(path)
