"""The variants of a plan, each executed as a papermill notebook, scored, and compared in the report of a run folder."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rag_lab._kit.home import home
from rag_lab._kit.module_files import modules_from
from rag_lab._kit.tracing import span, trace_environment
from rag_lab.errors import RagLabError
from rag_lab.experiment.checkout import NOTEBOOK, checkout_file
from rag_lab.experiment.design import Variant
from rag_lab.experiment.executors.job import Done, Execute, Job, Origin, check_parameters
from rag_lab.experiment.executors.launchers import LOCAL, executor_of
from rag_lab.experiment.executors.local import preload, prepared
from rag_lab.experiment.forecast.cost_estimate import keep_rates, machine_rates
from rag_lab.experiment.forecast.spending import measured_rates, spent
from rag_lab.experiment.identity import run_identities
from rag_lab.experiment.manifest import VariantState, now
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.run.earlier import forget, judged, keep_whole, put_back_all, set_aside, whole
from rag_lab.experiment.run.finish import finish, keep_manifest, prepare_report
from rag_lab.experiment.run.finished import is_finished, keep_finished, say_resumed
from rag_lab.experiment.run.health_check import (
    check_run,
    check_variants,
    has_passed,
    is_worth_checking,
    keep_passed,
)
from rag_lab.experiment.run.limits import Brake
from rag_lab.experiment.run.model_order import in_model_order
from rag_lab.experiment.run.notebook_parameters import to_parameters
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.side_by_side import AUTO, side_by_side
from rag_lab.experiment.run.start_sweep import begin
from rag_lab.experiment.run.sweep_progress import SweepProgress
from rag_lab.experiment.run.sweep_told import SweepTold
from rag_lab.memory.checked_rows import tell_dropped
from rag_lab.memory.ledger import Used
from rag_lab.memory.sharing import RETRY_VARIABLE
from rag_lab.runs.live_file import LIVE_FILE
from rag_lab.runs.margins import dated
from rag_lab.runs.run_folder import (
    CONFIG_FILE,
    DONE_FILE,
    LOCK_FILE,
    NAME_FILE,
    NOTEBOOK_FILE,
    PLAN_FILE,
    RECORD_FILE,
    RunFolder,
    read_json,
)
from rag_lab.runs.run_manifest import retry_sentence


def run_variants(
    checked: Plan, run: RunFolder, options: RunOptions, elsewhere: Used | None = None, *, has_report: bool = True
) -> None:
    """Run a plan in its run folder, which the caller has locked; what was used `elsewhere` counts for its limits.

    A run that is finished, and whose outputs would be made again as they are, is left as it is. There is no report
    where more variants are to come.

    Raises:
        RagLabError: before anything of an earlier run in the folder is replaced, if the sweep cannot start.
    """
    notebook, started_s = checkout_file(NOTEBOOK), time.perf_counter()
    with modules_from(checked.folder), _prepared(checked, run, options):
        began, run = now(), dated(run)
        identities = run_identities(checked, notebook)
        if not options.retry_failed and is_finished(checked.experiment, run, identities):
            say_resumed(checked.experiment, run, identities)
            return
        preload(_imported(checked), len(checked.questions))
        check_parameters(notebook, _parameters(checked, run, checked.variants[0]))
        with SweepTold(run) as told, span(f"sweep {run.name}"):
            begin(checked, run, identities)
            put_back_all(run)
            brake = Brake(run, checked.experiment.limits, elsewhere)
            began_s = time.perf_counter()
            if has_report:
                prepare_report(len(checked.questions))
            states = _run_variants(checked, run, notebook, identities, brake, options, told)
            variants_s = time.perf_counter() - began_s
            told.enter("report")
            forget(run)
            tell_dropped(_damaged(states))
            keep_rates(home(), measured_rates(run))
            if not has_report:
                keep_manifest(checked, run, states, began)
                return
            finish(checked, run, states, began)
            others_s = time.perf_counter() - started_s - variants_s
            keep_rates(home(), machine_rates(checked, states, others_s, called=bool(spent(run))))
            keep_finished(checked.experiment, run, identities, states)


def _prepared(checked: Plan, run: RunFolder, options: RunOptions) -> AbstractContextManager[None]:
    """Let kernels be prepared while it is found out what there is to do, where it looks as if there is anything."""
    has_work = any(not (run.variant_dir(v.variant_id) / DONE_FILE).is_file() for v in checked.variants)
    return prepared() if has_work and options.executor == LOCAL and not options.cold else nullcontext()


def _imported(checked: Plan) -> list[str]:
    """Return what takes long to import of what the searches of these variants will."""
    by_words = {search for variant in checked.variants for search in variant.config.retrieval.weights}
    return ["sklearn.feature_extraction.text"] if "tfidf" in by_words else []


def whole_variants(checked: Plan, run: RunFolder) -> dict[str, VariantState]:
    """Return how the variants of a plan stand that an earlier start has finished, by their ids."""
    identities = run_identities(checked, checkout_file(NOTEBOOK))
    return {v: state for v, identity in identities.items() if (state := whole(run, v, identity))}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the run folder alone."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        others = {entry.name for entry in path.iterdir()} - {LOCK_FILE, LIVE_FILE, NAME_FILE}
    except OSError as error:
        raise RagLabError(f"Cannot write to {path}: {error.strerror}; give another folder with --out.") from None
    if others and PLAN_FILE not in others:
        raise RagLabError(f"{path} holds something else than a run; give an empty or a new folder with --out.")
    try:
        with FileLock(path / LOCK_FILE, timeout=0):
            yield
    except Timeout:
        raise RagLabError(
            f"Another sweep is running in {path}; wait for it, or give another folder with --out."
        ) from None


def _run_variants(
    checked: Plan,
    run: RunFolder,
    notebook: Path,
    identities: Mapping[str, str],
    brake: Brake,
    options: RunOptions,
    told: SweepTold,
) -> list[VariantState]:
    """Run what is not whole yet and return the state of every variant, in the order of the plan."""
    finished = {v: state for v, identity in identities.items() if (state := whole(run, v, identity))}
    before = {v: s for v, s in finished.items() if s.curable.total or (options.retry_failed and s.failed)}
    states = {v: state for v, state in finished.items() if v not in before}
    left = [variant for variant in checked.variants if variant.variant_id not in states]
    missing = in_model_order(left, checked.experiment.metrics)

    def jobs_of(folder: RunFolder) -> list[Job]:
        again = {RETRY_VARIABLE: "1"} if options.retry_failed else {}
        return [
            replace(
                _job(checked, folder, v, notebook),
                environment={**options.environment, **brake.environment(v.variant_id), **again, **trace_environment()},
                cold=options.cold,
                cell_minutes=options.cell_minutes,
                origin=_origin(checked, options.run, identities[v.variant_id]),
            )
            for v in missing
        ]

    with SweepProgress(len(identities), len(states), shown=options.progress) as shown:
        shown.tell(retry_sentence({v: state.curable for v, state in before.items()}))
        jobs = _jobs(checked, run, missing, options, shown)

        def execute(folder: RunFolder, todo: Sequence[Job], execute_by: Execute, n: int) -> Iterator[Done]:
            def poll(running: Sequence[str]) -> None:
                shown.look(folder, running)
                told.look(running)

            return execute_by(todo, n, poll=poll, veto=brake.veto)

        unchecked = {v.variant_id: identities[v.variant_id] for v in missing}
        by_itself = options.executor == LOCAL and not has_passed(run, unchecked) and is_worth_checking(run)
        if missing and (by_itself if options.check is None else options.check):
            told.enter("check", jobs)
            small = check_run(run)
            here = partial(execute, small, execute_by=executor_of(LOCAL), n=max(1, jobs))
            faults = check_variants(small, jobs_of(small), here, keep_going=options.keep_going)
            shown.tell("\n".join(faults))
            if not faults:
                keep_passed(run, unchecked)
        told.enter("variants", jobs)
        for variant_id in before:
            set_aside(run, variant_id)
        for done in execute(run, jobs_of(run), executor_of(options.executor, options.slurm), jobs):
            state = brake.stopped(done) or _state(run, checked, done)
            if state.variant_id in before:
                state = judged(run, state, before[state.variant_id])
            states[state.variant_id] = state
            if state.status == "ok" and not state.resumed:
                keep_whole(run, state.variant_id, identities[state.variant_id], state.seconds)
            shown.end(state)
            told.end(state)
    return [states[variant_id] for variant_id in identities]


def _jobs(checked: Plan, run: RunFolder, missing: Sequence[Variant], options: RunOptions, shown: SweepProgress) -> int:
    """Return how many variants run at a time; where that is left to the machine, it is told why."""
    if options.jobs != AUTO:
        return options.jobs
    found = side_by_side(missing, checked.experiment.metrics, run)
    shown.tell(found.why if len(missing) > 1 else "")
    return found.jobs


def _damaged(states: Sequence[VariantState]) -> int:
    """Return how many damaged results the kernels of this start met."""
    return sum(state.record.get("damaged_results", 0) for state in states if state.record and not state.resumed)


def _job(checked: Plan, run: RunFolder, variant: Variant, notebook: Path) -> Job:
    """Empty the variant's folder, so that nothing of an earlier start is taken for its result, and prepare its job."""
    folder = run.variant_dir(variant.variant_id).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / CONFIG_FILE).write_text(variant.config.to_yaml(), encoding="utf-8")
    parameters = _parameters(checked, run, variant)
    return Job(variant.variant_id, notebook, folder / NOTEBOOK_FILE, parameters, folder / "log.txt")


def _origin(checked: Plan, run: str, identity: str) -> Origin:
    dataset = checked.dataset
    return Origin(run, identity, dataset.name, str(dataset.location.resolve()), dataset.digest)


def _parameters(checked: Plan, run: RunFolder, variant: Variant) -> dict[str, Any]:
    folder = run.variant_dir(variant.variant_id).resolve()
    return to_parameters(variant.config) | {
        "DATASET": str(checked.dataset.location.resolve()),
        "CONFIG": str(folder / CONFIG_FILE),
        "OUT": str(folder),
        "QUESTIONS": str((run.path / PLAN_FILE).resolve()),
        "METRICS": ",".join(checked.experiment.metrics),
        "METRIC_EMBEDDING": checked.expansion.baseline.config.models.embedding,
        "JUDGE": checked.experiment.judge or "",
        "JUDGE_LANGUAGE": checked.experiment.judge_language,
        "REPEATS": run.repeats,
    }


def _state(run: RunFolder, checked: Plan, done: Done) -> VariantState:
    """Return how a job ended; what the notebook says it ran must be what was asked."""
    folder = run.variant_dir(done.job.name)
    record = read_json(folder / RECORD_FILE) if (folder / RECORD_FILE).is_file() else None
    asked = next(v.config.identity for v in checked.variants if v.variant_id == done.job.name)
    reason = done.reason
    if not reason and record is None:
        reason = f"The notebook saved nothing; see {done.job.output}."
    elif not reason and record is not None and record["config_identity"] != asked:
        reason = f"The notebook ran another configuration than it was given; see {done.job.output}."
    return VariantState(done.job.name, "failed" if reason else "ok", reason, done.seconds, record=record)
