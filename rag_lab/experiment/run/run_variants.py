"""The variants of a plan, each executed as a papermill notebook, scored, and compared in the report of a run folder."""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rag_lab._kit.home import home
from rag_lab._kit.observability import span, trace_environment
from rag_lab._kit.registry import modules_from
from rag_lab.experiment.config import NOTEBOOK, checkout_file
from rag_lab.experiment.design import Variant
from rag_lab.experiment.executors.job import Done, Execute, Job, Origin, check_parameters
from rag_lab.experiment.executors.launchers import LOCAL, executor_of
from rag_lab.experiment.executors.local import prepared
from rag_lab.experiment.forecast.cost_estimate import keep_rates, machine_rates
from rag_lab.experiment.forecast.spending import measured_rates, spent
from rag_lab.experiment.manifest import VariantState, now, run_identities
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.run import health_check, resume
from rag_lab.experiment.run.limits import BudgetGuard
from rag_lab.experiment.run.notebook_parameters import to_parameters
from rag_lab.experiment.run.outputs import begin, finish, prepare_report
from rag_lab.experiment.run.progress import SweepProgress, SweepStatusWriter
from rag_lab.experiment.run.run_options import AUTO, RunOptions, in_model_order, side_by_side
from rag_lab.memory.ledger import Used
from rag_lab.memory.results import RETRY_VARIABLE, tell_dropped
from rag_lab.runs import run_folder as files
from rag_lab.runs.margins import dated
from rag_lab.runs.run_manifest import retry_sentence


def run_variants(
    checked: Plan, run: files.RunFolder, options: RunOptions, elsewhere: Used | None = None, *, has_report: bool = True
) -> None:
    """Run a plan in its run folder, which the caller has locked; what was used `elsewhere` counts for its limits.

    A run that is finished, and whose outputs would be made again as they are, is left as it is. There is no report
    where more variants are to come.
    """
    notebook, started_s = checkout_file(NOTEBOOK), time.perf_counter()
    has_work = any(not (run.variant_dir(v.variant_id) / files.DONE_FILE).is_file() for v in checked.variants)
    prepares = has_work and options.executor == LOCAL and not options.cold
    with modules_from(checked.folder), prepared() if prepares else nullcontext() as starter:
        began, run = now(), dated(run)
        identities = run_identities(checked, notebook)
        if not options.retry_failed and resume.is_finished(checked.experiment, run, identities):
            resume.mark_resumed(checked.experiment, run, identities)
            return
        if starter is not None:
            by_words = any("tfidf" in variant.config.retrieval.weights for variant in checked.variants)
            slow = ["sklearn.feature_extraction.text"] if by_words else []  # to import
            starter.preload(slow, len(checked.questions))
        check_parameters(notebook, _parameters(checked, run, checked.variants[0]))
        with SweepStatusWriter(run) as status, span(f"sweep {run.name}"):
            begin(checked, run, identities)
            resume.put_back_all(run)
            guard = BudgetGuard(run, checked.experiment.limits, elsewhere)
            began_s = time.perf_counter()
            if has_report:
                prepare_report(len(checked.questions))
            states = Runner(checked, run, notebook, identities, guard, options, status).run()
            variants_s = time.perf_counter() - began_s
            status.enter("report")
            resume.forget(run)
            computed = [state.record for state in states if state.record and not state.resumed]
            tell_dropped(sum(record.get("damaged_results", 0) for record in computed))
            keep_rates(home(), measured_rates(run))
            finish(checked, run, states, began, has_report=has_report)
            if not has_report:
                return
            others_s = time.perf_counter() - started_s - variants_s
            keep_rates(home(), machine_rates(checked, states, others_s, called=bool(spent(run))))
            resume.keep_finished(checked.experiment, run, identities, states)


@dataclass(frozen=True)
class Runner:
    """Runs the variants of a plan that are not whole yet: a check with two questions where it is worth it, then all."""

    plan: Plan
    folder: files.RunFolder
    notebook: Path
    identities: Mapping[str, str]
    guard: BudgetGuard
    options: RunOptions
    status: SweepStatusWriter

    def run(self) -> list[VariantState]:
        """Run what is not whole yet and return the state of every variant, in the order of the plan."""
        options, run = self.options, self.folder
        finished = {v: state for v, identity in self.identities.items() if (state := resume.whole(run, v, identity))}
        before = {v: s for v, s in finished.items() if s.retryable.total or (options.retry_failed and s.failed)}
        states = {v: state for v, state in finished.items() if v not in before}
        left = [variant for variant in self.plan.variants if variant.variant_id not in states]
        missing = in_model_order(left, self.plan.experiment.metrics)
        with SweepProgress(len(self.identities), len(states), shown=options.progress) as progress:
            progress.write(retry_sentence({v: state.retryable for v, state in before.items()}))
            n_jobs = options.jobs
            if n_jobs == AUTO:
                n_jobs, why = side_by_side(missing, self.plan.experiment.metrics, run)
                progress.write(why if len(missing) > 1 else "")
            self.check(missing, n_jobs, progress)
            self.status.enter("variants", n_jobs)
            for variant_id in before:
                resume.set_aside(run, variant_id)
            executor = executor_of(options.executor, options.slurm)
            for done in self._execute(run, self._jobs(run, missing), executor, n_jobs, progress):
                state = self.guard.stopped(done) or _state(run, self.plan, done)
                if state.variant_id in before:
                    state = resume.better_of(run, state, before[state.variant_id])
                states[state.variant_id] = state
                if state.status == "ok" and not state.resumed:
                    resume.keep_whole(run, state.variant_id, self.identities[state.variant_id], state.seconds)
                progress.end(state)
                self.status.end(state)
        return [states[variant_id] for variant_id in self.identities]

    def check(self, missing: Sequence[Variant], n_jobs: int, progress: SweepProgress) -> None:
        """Ask each of the variants two questions first, where that is asked for, or costs little beside the rest."""
        options, unchecked = self.options, {v.variant_id: self.identities[v.variant_id] for v in missing}
        is_due = options.check
        if is_due is None:
            is_local = options.executor == LOCAL
            is_due = (
                is_local
                and not health_check.has_passed(self.folder, unchecked)
                and health_check.is_worth_checking(self.folder)
            )
        if not missing or not is_due:
            return
        self.status.enter("check", n_jobs)
        small = health_check.check_run(self.folder)
        execute = partial(self._execute, small, execute=executor_of(LOCAL), n_jobs=max(1, n_jobs), progress=progress)
        faults = health_check.check_variants(small, self._jobs(small, missing), execute, keep_going=options.keep_going)
        progress.write("\n".join(faults))
        if not faults:
            health_check.keep_passed(self.folder, unchecked)

    def _execute(
        self, folder: files.RunFolder, jobs: Sequence[Job], execute: Execute, n_jobs: int, progress: SweepProgress
    ) -> Iterator[Done]:
        def poll(running: Sequence[str]) -> None:
            progress.look(folder, running)
            self.status.look(running)

        return execute(jobs, n_jobs, poll=poll, veto=self.guard.veto)

    def _jobs(self, run: files.RunFolder, variants: Sequence[Variant]) -> list[Job]:
        """Empty the variants' folders, so that nothing of an earlier start is taken for a result, and prepare jobs."""
        options, dataset, jobs = self.options, self.plan.dataset, []
        again = {RETRY_VARIABLE: "1"} if options.retry_failed else {}
        for variant in variants:
            name = variant.variant_id
            folder = run.variant_dir(name).resolve()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / files.CONFIG_FILE).write_text(variant.config.to_yaml(), encoding="utf-8")
            job = Job(
                name,
                self.notebook,
                folder / files.NOTEBOOK_FILE,
                _parameters(self.plan, run, variant),
                folder / "log.txt",
                {**options.environment, **self.guard.environment(name), **again, **trace_environment()},
                options.cold,
                options.cell_minutes,
                Origin(
                    options.run, self.identities[name], dataset.name, str(dataset.location.resolve()), dataset.digest
                ),
            )
            jobs.append(job)
        return jobs


def whole_variants(checked: Plan, run: files.RunFolder) -> dict[str, VariantState]:
    """Return how the variants of a plan stand that an earlier start has finished, by their ids."""
    identities = run_identities(checked, checkout_file(NOTEBOOK))
    return {v: state for v, identity in identities.items() if (state := resume.whole(run, v, identity))}


def _parameters(checked: Plan, run: files.RunFolder, variant: Variant) -> dict[str, Any]:
    folder = run.variant_dir(variant.variant_id).resolve()
    return to_parameters(variant.config) | {
        "DATASET": str(checked.dataset.location.resolve()),
        "CONFIG": str(folder / files.CONFIG_FILE),
        "OUT": str(folder),
        "QUESTIONS": str((run.path / files.PLAN_FILE).resolve()),
        "METRICS": ",".join(checked.experiment.metrics),
        "METRIC_EMBEDDING": checked.expansion.baseline.config.models.embedding,
        "JUDGE": checked.experiment.judge or "",
        "JUDGE_LANGUAGE": checked.experiment.judge_language,
        "REPEATS": run.repeats,
    }


def _state(run: files.RunFolder, checked: Plan, done: Done) -> VariantState:
    """Return how a job ended; what the notebook says it ran must be what was asked."""
    folder = run.variant_dir(done.job.name)
    record = files.read_json(folder / files.RECORD_FILE) if (folder / files.RECORD_FILE).is_file() else None
    asked = next(v.config.identity for v in checked.variants if v.variant_id == done.job.name)
    reason = done.reason
    if not reason and record is None:
        reason = f"The notebook saved nothing; see {done.job.output}."
    elif not reason and record is not None and record["config_identity"] != asked:
        reason = f"The notebook ran another configuration than it was given; see {done.job.output}."
    return VariantState(done.job.name, "failed" if reason else "ok", reason, done.seconds, record=record)
