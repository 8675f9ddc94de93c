"""One question through a pipeline, stage by stage, so that each result can be shown as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rag_lab.pipeline import Pipeline
from rag_lab.records import Question, Trace
from rag_lab.stages.run_stage import run_stage

OPENING = "documents"  # the step before all stages
Enter = Callable[[str, int, int], None]  # a step that begins, its number, and how many there are


def ask_in_steps(pipeline: Pipeline, question: Question, enter: Enter) -> Iterator[Trace]:
    """Yield the trace after each stage, as `Pipeline.run` makes it: what was remembered is not computed again.

    Args:
        pipeline: what is asked; its index is opened, and built where it is missing.
        question: one of the data set's, or one's own.
        enter: called before each step; what it raises ends the walk.
    """
    enter(OPENING, 0, 1)
    pipeline.prepare([question])
    (located,), _ = pipeline.locate([question])
    trace = Trace(located)
    stages = [stage for stage, _ in pipeline.steps([located])]
    for n, stage in enumerate(stages):
        enter(stage.name, n, len(stages))
        (trace,) = run_stage(stage, [trace], pipeline.memory, replayed=pipeline.parts.replayed)
        yield trace
