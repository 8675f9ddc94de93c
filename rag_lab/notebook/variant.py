"""One variant, as the notebook `02_run_variant` runs it: parameters in, traces and scores out.

Stock papermill warns of a parameter's name that no cell knows, and runs with the default; here it is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_lab.config import PipelineConfig
from rag_lab.data.dataset import Dataset
from rag_lab.data.sampling import stratified
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.evaluation.registry import parse_name, split_names
from rag_lab.evaluation.registry import problems as metric_problems
from rag_lab.experiment.run.variant_work import NAMES, VariantWork, from_parameters, to_parameters
from rag_lab.notebook.views.pipeline_view import summary_table
from rag_lab.pipeline import Pipeline
from rag_lab.rich_display import rich_display
from rag_lab.runs.run_folder import MAX_REPEATS, RunFolder

if TYPE_CHECKING:
    import pandas as pd

PARAMETERS: dict[str, type] = {
    **{"DATASET": str, "CONFIG": str, "QUESTIONS": str, "METRICS": str, "METRIC_EMBEDDING": str},
    **{"JUDGE": str, "JUDGE_LANGUAGE": str, "REPEATS": int, "OUT": str},
    **{name: type(value) for name, value in to_parameters(PipelineConfig()).items()},
}


@rich_display("rag_lab.notebook.views.pipeline_view:variant_view")
@dataclass
class VariantRun(VariantWork):
    """A variant that is made of a notebook's parameters and shows itself."""

    @classmethod
    def from_parameters(cls, values: Mapping[str, Any]) -> VariantRun:
        """Read the parameters of `02_run_variant` out of `values`, the notebook's `globals()`."""
        values = parameters(values, PARAMETERS)
        base = PipelineConfig.load(Path(values["CONFIG"])) if values["CONFIG"] else PipelineConfig()
        config = from_parameters(base, {name: values[name] for name in NAMES if name in values})
        if not 1 <= values["REPEATS"] <= MAX_REPEATS:
            raise ConfigError(f"REPEATS must be a whole number from 1 to {MAX_REPEATS}, got {values['REPEATS']}.")
        metrics = split_names(values["METRICS"])
        if problems := metric_problems(metrics, bool(values["JUDGE"]), language=values["JUDGE_LANGUAGE"]):
            raise ConfigError("; ".join(problems))
        dataset, out = Dataset.load(values["DATASET"]), Path(values["OUT"]) if values["OUT"] else None
        wanted = values["QUESTIONS"]  # all, a stratified sample of a size, or those of a run folder's plan
        questions = answered = tuple(question.question_id for question in dataset.questions)
        if wanted.isdigit():
            if int(wanted) == 0:
                raise ConfigError("QUESTIONS must be at least one, got 0; leave it empty for all.")
            chosen = set(stratified(dataset.questions, int(wanted), seed=0))
            questions = answered = tuple(question_id for question_id in questions if question_id in chosen)
        elif wanted:
            run = RunFolder.open(Path(wanted).parent)
            missing = [question_id for question_id in run.questions if question_id not in set(questions)]
            if missing:
                unknown = ", ".join(missing[:5])
                raise ConfigError(f"{wanted} asks questions that {dataset.name} does not have: {unknown}.")
            questions, answered = run.questions, run.answered
        return cls(
            pipeline=Pipeline(dataset, config, progress=out is None),
            questions=questions,
            answered=answered,
            metrics=metrics,
            judge=values["JUDGE"] or None,
            judge_language=values["JUDGE_LANGUAGE"],
            metric_embedding=values["METRIC_EMBEDDING"] or config.models.embedding,
            repeats=values["REPEATS"],
            out=out,
        )

    def summary(self) -> pd.DataFrame:
        """Return the mean of each metric with its 95% interval, and how many were scored, failed or not applicable."""
        return summary_table([parse_name(metric).name for metric in self.metrics], self.scores)


_INJECTED = "# Parameters\n"  # how papermill begins the cell that it injects
_KINDS = {str: "text", int: "a whole number", bool: "true or false"}


def parameters(namespace: Mapping[str, Any], declared: Mapping[str, type]) -> dict[str, Any]:
    """Return the parameters of a notebook out of its `globals()`, in the order of `declared`: name to str, int or bool.

    A whole number given for text is its digits, because `papermill -p QUESTIONS 8` sends a number.
    """
    # The names that the last cell of papermill's sets, among the cells that IPython has run.
    source = next((cell for cell in reversed(namespace.get("In", ())) if cell.startswith(_INJECTED)), "")
    assigned = [target for line in ast.parse(source).body if isinstance(line, ast.Assign) for target in line.targets]
    injected = [one.id for one in assigned if isinstance(one, ast.Name) and one.id not in declared]
    problems = [unknown_name("parameter", name, declared) for name in injected]
    for name, value in namespace.items():
        # Classes and modules in capitals are no constants.
        is_constant = value is None or isinstance(value, str | int | float | list | dict)
        if name.isupper() and not name.startswith("_") and is_constant and name not in (*declared, *injected):
            sentence = unknown_name("parameter", name, declared)
            problems.append(f"{sentence} (Correct it, and `del {name}` in a notebook that stays open.)")
    missing = [name for name in declared if name not in namespace]
    if missing:
        problems.append(f"{', '.join(missing)} must be set: run the cell with the parameters first")
    values = {name: namespace[name] for name in declared if name in namespace}
    values |= {name: str(value) for name, value in values.items() if declared[name] is str and type(value) is int}
    problems += [
        f"{name} must be {_KINDS[kind]}, got {values[name]!r}"
        for name, kind in declared.items()
        if name in values and type(values[name]) is not kind
    ]
    if problems:
        raise ConfigError("; ".join(problems))
    return values
