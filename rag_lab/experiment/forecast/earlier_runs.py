"""The runs that a plan is forecast by: earlier ones of the experiment, its pilot, or those that were given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from rag_lab._kit.wording import counted, listing
from rag_lab.errors import RagLabError
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.plan import Plan
from rag_lab.runs.run_folder import RunFolder

RESULTS = Path("results")


def earlier_scores(plan: Plan, runs: Sequence[RunFolder], metrics: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """Return the scores of the plan's variants under their ids, and where they are from, or why there are none."""
    parts: dict[str, pd.DataFrame] = {}
    used: list[str] = []
    for run in runs:
        scores = run.scores()
        for variant_id, theirs in _same(plan, run).items():
            rows = scores[(scores["variant_id"] == theirs) & scores["metric"].isin(metrics)]
            if variant_id not in parts and (rows["status"] == "scored").any():
                parts[variant_id] = rows.assign(variant_id=variant_id)
                used.append(str(run.path))
    if not parts:
        looked = f"{listing([str(run.path) for run in runs])} holds no scores of these variants" if runs else ""
        return pd.DataFrame(), looked
    found = pd.concat(parts.values(), ignore_index=True)
    asked = counted(found["question_id"].nunique(), "question")
    missing = [variant.variant_id for variant in plan.variants if variant.variant_id not in parts]
    without = f", which has no scores of {listing(missing)}" if missing else ""
    return found, f"{listing(list(dict.fromkeys(used)))} ({asked}){without}"


def _same(plan: Plan, run: RunFolder) -> dict[str, str]:
    """Return which variant of a run is which of the plan's."""
    configs = {variant.variant_id: run.config(variant.variant_id) for variant in run.variants}
    by_config = {config.identity: name for name, config in configs.items() if config is not None}
    found = {v.variant_id: by_config.get(v.config.identity, v.variant_id) for v in plan.variants}
    return {ours: theirs for ours, theirs in found.items() if theirs in configs}


def runs_of(plan: Plan, given: Sequence[Path] = (), out: Path | None = None) -> list[RunFolder]:
    """Return the runs that were given, or else those of the experiment and of its pilot that hold scores.

    Args:
        plan: of the experiment.
        given: run folders, of which each must hold scores.
        out: the run folder of the experiment; `results/<name>` where None.

    Raises:
        RagLabError: if one that was given is no run folder.
    """
    if given:
        return [RunFolder.open(path) for path in given]
    found = []
    for path in (out or RESULTS / plan.experiment.name, RESULTS / pilot_name(plan.experiment.name)):
        try:
            run = RunFolder.open(path)
            run.scores()
        except RagLabError:
            continue
        found.append(run)
    return found


def pilot_of_experiment(experiment: ExperimentConfig, n_questions: int) -> ExperimentConfig:
    """Return the experiment on so few questions, under a name of its own, and without a margin: it proves nothing."""
    limits = experiment.limits.model_copy(update={"questions": n_questions})
    return experiment.model_copy(update={"name": pilot_name(experiment.name), "limits": limits, "margin": {}})


def pilot_name(name: str) -> str:
    """Return the name under which `results/` has the pilot of an experiment."""
    return f"{name[:58]}-pilot"
