"""`sweep`: every variant of an experiment, executed as a papermill notebook, scored, and compared in one report."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_lab._kit.machine import room_on_disk
from rag_lab.experiment.built_in_designs import RACING
from rag_lab.experiment.config import Given
from rag_lab.experiment.executors.job import CELL_MINUTES
from rag_lab.experiment.executors.launchers import LOCAL, WORKERS
from rag_lab.experiment.plan import Plan, plan
from rag_lab.experiment.race import round_plan
from rag_lab.experiment.run.limits import alone_in_store, locked
from rag_lab.experiment.run.run_options import AUTO, Jobs, RunOptions, as_jobs
from rag_lab.experiment.run.run_variants import run_variants, whole_variants
from rag_lab.models.host.address import model_host
from rag_lab.runs.margins import dated, post_hoc_sentence
from rag_lab.runs.race_record import ROUNDS_FOLDER
from rag_lab.runs.run_folder import RunFolder, refuse_links_out
from rag_lab.runs.run_manifest import Retryable

_PLAIN = RunOptions()


def sweep(
    experiment: Given,
    out: Path | str | None = None,
    jobs: Jobs = AUTO,
    progress: bool = True,
    *,
    executor: str = LOCAL,
    slurm: Mapping[str, Any] | None = None,
    cold: bool = False,
    cell_minutes: float = CELL_MINUTES,
    check: bool | None = None,
    keep_going: bool = False,
    retry_failed: bool = False,
) -> RunFolder:
    """Run an experiment and return its run folder; whatever failed in it is in the manifest.

    A sweep that was stopped, by hand or by one of its limits, goes on where it was when it is called again: variants
    that are whole are kept, and of the others the memory holds every stage result and score that was paid for. What
    failed for a reason that another attempt may cure, such as an outage, is tried again.

    Args:
        experiment: its file, the mapping that would stand in it, or an `ExperimentConfig`.
        out: the run folder; `results/<name>` where None.
        jobs: variants that run at the same time; as many as the machine has room for where `auto`.
        progress: show a progress bar, or a line for each variant where no one watches.
        executor: where they run, by the name of an executor.
        slurm: what the scheduler is asked for with the executor `slurm`.
        cold: start a new process for each notebook, instead of one that is prepared.
        cell_minutes: for which a cell of a notebook may run; it is ended then.
        check: ask each variant two questions first; where None, if that costs little beside the rest.
        keep_going: run the rest whatever that check finds.
        retry_failed: try again, too, what another attempt will not obviously cure; what was is kept until then.

    Raises:
        RagLabError: before anything runs, naming everything that is wrong with the experiment at once; after two
            questions, if a variant would fail in all of them.
    """
    n_jobs = as_jobs(jobs, least=0 if executor == WORKERS else 1)
    options = RunOptions(
        n_jobs,
        executor,
        cold,
        cell_minutes,
        progress,
        slurm=slurm or {},
        check=check,
        keep_going=keep_going,
        retry_failed=retry_failed,
    )
    return run_plan(plan(experiment), out, options)


def run_plan(checked: Plan, out: Path | str | None = None, options: RunOptions = _PLAIN) -> RunFolder:
    """Run a plan; see `sweep`. A race leaves a run folder for each round within that of its proof."""
    run = _run_folder(checked, out)
    refuse_links_out(run.path)
    # in the store, too, where other machines may sweep into the same folder
    is_shared = options.executor != LOCAL or bool(os.environ.get("RAG_LAB_STORE"))
    alone = alone_in_store(run.path) if is_shared else nullcontext("")
    with room_on_disk(run.path), locked(run.path), alone as name, model_host() as shared_models:
        options = replace(options, environment={**options.environment, **shared_models}, run=name)
        if checked.rounds:
            # which imports tables that a plain sweep may not need
            from rag_lab.experiment.run.choose_then_prove import choose_then_prove

            return choose_then_prove(checked, run, options)
        run_variants(checked, run, options)
    return run


def to_try_again(checked: Plan, out: Path | str | None = None) -> dict[str, Retryable]:
    """Return what a start of the sweep would try again of variants that are whole, by their ids; nothing runs."""
    run = _run_folder(checked, out)
    found = {v: state.retryable for v, state in whole_variants(checked, run).items()}
    ids = [variant.variant_id for variant in checked.variants]
    is_race = checked.experiment.design == RACING  # else nobody knows the variants of a round before
    for number in range(1, len(checked.rounds) + 1 if is_race else 1):
        part = round_plan(checked, number, ids)
        for v, state in whole_variants(part, part.run_folder(run.path / ROUNDS_FOLDER / str(number))).items():
            found[v] = found.get(v, Retryable()) + state.retryable
    return found


def post_hoc_margins(checked: Plan, out: Path | str | None = None) -> str:
    """Say which margins a start of the sweep would record as post hoc, or ''."""
    return post_hoc_sentence(dated(_run_folder(checked, out)))


def _run_folder(checked: Plan, out: Path | str | None) -> RunFolder:
    return checked.run_folder(Path(out) if out is not None else Path("results") / checked.experiment.name)
