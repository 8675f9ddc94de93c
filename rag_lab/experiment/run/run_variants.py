"""The variants of a plan, each executed as a papermill notebook, scored, and compared in the report of a run folder.

A check asks each of them two of the questions first, by the very notebook: what would fail in all of them is found
before hours are spent. What it computes is remembered, so that nothing is done twice.
"""

import json
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Any

from rag_lab._kit import home, observability, registry, wording
from rag_lab.data.dataset import STATES_VARIABLE
from rag_lab.errors import DamagedFile, RagLabError
from rag_lab.experiment.config import NOTEBOOK, SAYS, checkout_file
from rag_lab.experiment.design import Variant
from rag_lab.experiment.executors import launchers, local
from rag_lab.experiment.forecast import cost_estimate
from rag_lab.experiment.manifest import VariantState, now, run_identities
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.run import outputs, run_options, variant_work
from rag_lab.experiment.run.progress import SweepProgress
from rag_lab.experiment.stage_identities import models_used
from rag_lab.experiment.sweep_status import calls_left
from rag_lab.memory import ledger, results
from rag_lab.memory.open_store import is_there
from rag_lab.models import providers, shared
from rag_lab.models.hosted import HOST_VARIABLE, load_ahead
from rag_lab.records import Trace
from rag_lab.runs import human_input, run_manifest, variant_files
from rag_lab.runs import run_folder as files

N_QUESTIONS = 2  # of a check
CHECKED_FILE = "checked.json"  # in the run folder: what has passed a check
_WORTH_S = 120.0
_MOST_NAMED = 3  # variants with faults


def run_variants(
    checked: Plan,
    run: files.RunFolder,
    options: run_options.RunOptions,
    elsewhere: ledger.Used | None = None,
    *,
    has_report: bool = True,
) -> None:
    """Run a plan in its run folder, which the caller has locked; what was used `elsewhere` counts for its limits.

    A run that is finished, and whose outputs would be made again as they are, is left as it is. There is no report
    where more variants are to come.
    """
    notebook, started_s = checkout_file(NOTEBOOK), time.perf_counter()
    has_work = any(not (run.variant_dir(v.variant_id) / files.DONE_FILE).is_file() for v in checked.variants)
    prepares = has_work and options.executor == launchers.LOCAL and not options.cold
    with registry.modules_from(checked.folder), local.prepared() if prepares else nullcontext() as starter:
        began, run = now(), human_input.dated(run)
        identities = run_identities(checked, notebook)
        if not options.retry_failed and outputs.is_finished(checked.experiment, run, identities):
            outputs.mark_resumed(checked.experiment, run, identities)
            return
        embedders = filter(None, (models_used(one.config).get("embedding") for one in checked.variants))
        if prepares and not is_there(home.usable_home() / "vectors.sqlite") and (name := next(embedders, "")):
            # The first index would wait for it.
            given = (options.environment.get(HOST_VARIABLE, ""), providers.EMBEDDERS, name, shared.embedder(name))
            Thread(target=load_ahead, args=given, daemon=True).start()
        if starter is not None and starter.fork_server is not None:
            starter.fork_server.draw_ahead(len(checked.questions))
        local.check_parameters(notebook, _parameters(checked, run, checked.variants[0]))
        with SweepProgress(run, shown=options.progress) as progress, observability.span(f"sweep {run.name}"):
            outputs.begin(checked, run, identities)
            outputs.put_back_all(run)
            guard = run_options.BudgetGuard(run, checked.experiment.limits, elsewhere)
            began_s = time.perf_counter()
            if has_report:
                Thread(target=outputs.prepare_report, args=(len(checked.questions),), daemon=True).start()
            runner = Runner(checked, run, notebook, identities, guard, options, progress, has_report=has_report)
            states = runner.run()
            variants_s = time.perf_counter() - began_s
            progress.tell(step="report", jobs=1)
            shutil.rmtree(outputs.earlier(run).path, ignore_errors=True)
            computed = (state.record for state in states if state.record and not state.resumed)
            results.tell_dropped(sum(record.get("damaged_results", 0) for record in computed))
            cost_estimate.keep_rates(home.home(), cost_estimate.measured_rates(run))
            outputs.finish(checked, run, states, began, has_report=has_report, traces=runner.traces)
            if not has_report:
                return
            others_s, called = time.perf_counter() - started_s - variants_s, bool(cost_estimate.spent(run))
            measured = cost_estimate.machine_rates(checked, states, others_s, called=called)
            cost_estimate.keep_rates(home.home(), measured)
            outputs.keep_finished(checked.experiment, run, identities, states)


@dataclass(frozen=True)
class Runner:
    """Runs the variants of a plan that are not whole yet: a check with two questions where it is worth it, then all."""

    plan: Plan
    folder: files.RunFolder
    notebook: Path
    identities: Mapping[str, str]
    guard: run_options.BudgetGuard
    options: run_options.RunOptions
    progress: SweepProgress
    has_report: bool = True
    traces: dict[str, list[Trace]] = field(default_factory=dict)  # for the report, read while others run

    def run(self) -> list[VariantState]:
        """Run what is not whole yet and return the state of every variant, in the order of the plan."""
        options, run, progress = self.options, self.folder, self.progress
        finished = outputs.whole_variants(run, self.identities)
        before = {v: s for v, s in finished.items() if s.retryable.total or (options.retry_failed and s.failed)}
        states = {v: state for v, state in finished.items() if v not in before}
        left = [variant for variant in self.plan.variants if variant.variant_id not in states]
        missing = run_options.in_model_order(left, self.plan.experiment.metrics)
        with progress.variants(len(self.identities), len(states)):
            progress.write(run_manifest.retry_sentence({v: state.retryable for v, state in before.items()}))
            if (n_jobs := options.jobs) == run_options.AUTO:
                n_jobs, why = run_options.side_by_side(missing, self.plan.experiment.metrics, run)
                progress.write(why if len(missing) > 1 else "")
            self.check(missing, n_jobs)
            progress.tell(step="variants", jobs=n_jobs)
            for variant_id in before:
                outputs.move_variant(variant_id, run, outputs.earlier(run))
            execute, poll = launchers.executor_of(options.executor, options.slurm), partial(progress.look, run)
            readers, known = list[Thread](), variant_files.Questions()
            for done in execute(self._jobs(run, missing), n_jobs, poll=poll, veto=self.guard.veto):
                state = self.guard.stopped(done) or _state(run, self.plan, done)
                if state.variant_id in before:
                    state = outputs.better_of(run, state, before[state.variant_id])
                states[state.variant_id] = state
                if state.status == "ok" and not state.resumed:
                    outputs.keep_whole(run, state.variant_id, self.identities[state.variant_id], state.seconds)
                    if self.has_report:
                        readers += [Thread(target=self._read, args=(state.variant_id, known), daemon=True)]
                        readers[-1].start()
                progress.end(state)
            for reader in readers:
                reader.join()
        return [states[variant_id] for variant_id in self.identities]

    def _read(self, variant_id: str, known: variant_files.Questions) -> None:
        with suppress(DamagedFile, OSError):  # which the report meets again
            self.traces[variant_id] = self.folder.traces(variant_id, known)

    def check(self, missing: Sequence[Variant], n_jobs: int) -> None:
        """Ask each of the variants two questions first, where that is asked for, or costs little beside the rest."""
        options, unchecked = self.options, {v.variant_id: self.identities[v.variant_id] for v in missing}
        if (is_due := options.check) is None:
            is_due = options.executor == launchers.LOCAL and is_worth_checking(self.folder, unchecked)
        if not missing or not is_due:
            return
        self.progress.tell(step="check", jobs=n_jobs)
        small = check_run(self.folder)
        poll, jobs = partial(self.progress.look, small), self._jobs(small, missing)
        done = launchers.executor_of(launchers.LOCAL)(jobs, max(1, n_jobs), poll=poll, veto=self.guard.veto)
        faults = check_variants(small, done, keep_going=options.keep_going)
        self.progress.write("\n".join(faults))
        if not faults:  # a sweep that goes on does not check them again
            files.write_json(self.folder.path / CHECKED_FILE, unchecked)

    def _jobs(self, run: files.RunFolder, variants: Sequence[Variant]) -> list[local.Job]:
        """Empty the variants' folders, so that nothing of an earlier start is taken for a result, and prepare jobs."""
        options, dataset, metrics, jobs = self.options, self.plan.dataset, self.plan.experiment.metrics, []
        again = {results.RETRY_VARIABLE: "1"} if options.retry_failed else {}
        states = json.dumps({str(folder): str(state.path.resolve()) for folder, state in self.plan.states.items()})
        for variant in variants:
            name = variant.variant_id
            folder = run.variant_dir(name).resolve()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / files.CONFIG_FILE).write_text(variant.config.to_yaml(), encoding="utf-8")
            booked = {ledger.LEDGER_VARIABLE: str(self.guard.ledger.path.resolve()), ledger.PAYER_VARIABLE: name}
            booked[STATES_VARIABLE] = states
            location = str(dataset.location.resolve())
            job = local.Job(
                name,
                self.notebook,
                folder / files.NOTEBOOK_FILE,
                _parameters(self.plan, run, variant),
                folder / "log.txt",
                {**options.environment, **booked, **again, **observability.trace_environment()},
                options.cold,
                options.cell_minutes,
                ", ".join(sorted(run_options.models_of(variant, metrics, served=True))),
                local.Origin(options.run, self.identities[name], dataset.name, location, dataset.digest),
            )
            jobs.append(job)
        return jobs


def _parameters(checked: Plan, run: files.RunFolder, variant: Variant) -> dict[str, Any]:
    folder = run.variant_dir(variant.variant_id).resolve()
    return variant_work.to_parameters(variant.config) | {
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


def _state(run: files.RunFolder, checked: Plan, done: local.Done) -> VariantState:
    """Return how a job ended; what the notebook says it ran must be what was asked."""
    path, reason = run.variant_dir(done.job.name) / files.RECORD_FILE, done.reason
    record = files.read_json(path) if path.is_file() else None
    asked = next(v.config.identity for v in checked.variants if v.variant_id == done.job.name)
    if not reason and record is None:
        reason = f"The notebook saved nothing; see {done.job.output}."
    elif not reason and record is not None and record["config_identity"] != asked:
        reason = f"The notebook ran another configuration than it was given; see {done.job.output}."
    return VariantState(done.job.name, "failed" if reason else "ok", reason, done.seconds, record=record)


def is_worth_checking(run: files.RunFolder, identities: Mapping[str, str]) -> bool:
    """Tell whether so many questions are asked, and so long, that a check of two costs little beside it.

    That is where calls of models are left to do, for more than two minutes or for nobody knows how long, and no earlier
    start of the sweep has checked these variants as they are.
    """
    with suppress(DamagedFile, FileNotFoundError):
        if identities.items() <= files.read_json(run.path / CHECKED_FILE).items():
            return False
    n, seconds = calls_left(run)
    return len(run.questions) > 5 * N_QUESTIONS and n > 0 and (seconds is None or seconds > _WORTH_S)


def check_run(run: files.RunFolder) -> files.RunFolder:
    """Return the run folder of the check, empty but for its plan: two questions, which are answered if any are."""
    chosen = [*dict.fromkeys([*run.answered, *run.questions])][:N_QUESTIONS]
    asked, answered = (tuple(one for one in some if one in chosen) for some in (run.questions, run.answered))
    path = run.path / "check"  # kept where the check fails
    shutil.rmtree(path, ignore_errors=True)
    found = replace(run, path=path, questions=asked, answered=answered, repeats=1)
    found.write_plan()
    return found


def check_variants(run: files.RunFolder, jobs: Iterable[local.Done], *, keep_going: bool) -> list[str]:
    """Look at the jobs of a check, one a variant; return a sentence for each fault, where it goes on all the same."""
    faults = []
    for done in jobs:
        name, where, reason = done.job.name, "its notebook", done.reason
        if done.vetoed:  # a limit: the variant itself meets it, too
            continue
        if not reason:
            try:
                where, reason = _fault(run, name)
            except DamagedFile as error:
                reason = str(error)
        if where:
            faults.append(f"{name} fails at {where}: {reason.rstrip('.')}")
    if not faults:
        shutil.rmtree(run.path, ignore_errors=True)
    elif not keep_going:
        more = [f"{len(faults) - _MOST_NAMED} more variants"] if len(faults) > _MOST_NAMED else []
        named = "; ".join([*faults[:_MOST_NAMED], *more])
        raise RagLabError(SAYS["check"].format(questions=wording.listing(run.questions), faults=named, path=run.path))
    return [f"The check of two questions found: {fault}." for fault in faults]


def _fault(run: files.RunFolder, name: str) -> tuple[str, str]:
    """Return at what all questions of a variant failed, and why, or ''.

    That is a stage at which they failed for one reason, or fell back since a model could not be asked; or a metric that
    failed wherever it applies, since a model could not be asked.
    """
    traces = run.traces(name)
    records = [[one for one in trace.stages if one.status == "failed" or one.curable] for trace in traces]
    for found in sorted({(one.stage, one.reason) for one in chain.from_iterable(records)}):
        if all(any((one.stage, one.reason) == found for one in some) for some in records):
            return found
    stages = [{one.stage for one in some if one.curable} for some in records]
    if traces and (same := set.intersection(*stages)):  # what servers say may differ from call to call
        stage = min(same)
        return stage, next(one.reason for one in records[0] if one.stage == stage)
    if run_manifest.Retryable.of(files.read_json(run.variant_dir(name) / files.RECORD_FILE)).scores:
        scores = variant_files.read_scores(run.variant_dir(name) / files.SCORES_FILE)
        scores = scores[scores["status"] != "not_applicable"]
        for metric, rows in scores.groupby("metric", sort=True):
            if (rows["status"] == "failed").all():
                return str(metric), str(rows["reason"].iloc[0])
    return "", ""
