"""`sweep`: every variant of an experiment, executed as a papermill notebook, scored, and compared in one report.

Designs that choose before they prove do so in one loop: each round is a sweep, the best is proven on other questions. A
race drops variants round by round by what they lost; its results so far are remembered, so that another start decides
every round anew, at once. A search stage by stage varies the factors of each, and carries the best on. For trials see
`trials.py`.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rag_lab._kit import digest, home, machine, wording
from rag_lab.errors import DamagedFile, RagLabError
from rag_lab.experiment import built_in_designs, config, manifest, race
from rag_lab.experiment.design import Changes, Expansion, first_values, settled
from rag_lab.experiment.executors import job_queue, launchers, local
from rag_lab.experiment.forecast.cost_estimate import estimate
from rag_lab.experiment.plan import Plan, plan
from rag_lab.experiment.run import outputs, run_options, run_variants, trials
from rag_lab.experiment.run.progress import say
from rag_lab.memory import ledger, results
from rag_lab.models.hosted import model_host
from rag_lab.runs import human_input, run_manifest, variant_files
from rag_lab.runs import run_folder as files

_LOGGER = logging.getLogger(__name__)
_PLAIN = run_options.RunOptions()


def sweep(
    experiment: config.Given,
    out: Path | str | None = None,
    jobs: run_options.Jobs = run_options.AUTO,
    progress: bool = True,
    *,
    executor: str = launchers.LOCAL,
    slurm: Mapping[str, Any] | None = None,
    cold: bool = False,
    cell_minutes: float = local.CELL_MINUTES,
    check: bool | None = None,
    keep_going: bool = False,
    retry_failed: bool = False,
) -> files.RunFolder:
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
    n_jobs = run_options.as_jobs(jobs, least=0 if executor == launchers.WORKERS else 1)
    options = run_options.RunOptions(
        n_jobs, executor, cold, cell_minutes, progress, slurm or {}, check, keep_going, retry_failed
    )
    return run_plan(plan(experiment), out, options)


def run_plan(checked: Plan, out: Path | str | None = None, options: run_options.RunOptions = _PLAIN) -> files.RunFolder:
    """Run a plan; see `sweep`. A race leaves a run folder for each round within that of its proof."""
    run = _run_folder(checked, out)
    files.refuse_links_out(run.path)
    # in the store, too, where other machines may sweep into the same folder
    is_shared = options.executor != launchers.LOCAL or bool(os.environ.get("RAG_LAB_STORE"))
    alone = alone_in_store(run.path) if is_shared else nullcontext("")
    with machine.room_on_disk(run.path), locked(run.path), alone as name, model_host() as shared_models:
        options = replace(options, environment={**options.environment, **shared_models}, run=name)
        if checked.rounds:
            return choose_then_prove(checked, run, options)
        run_variants.run_variants(checked, run, options)
    return run


def to_try_again(checked: Plan, out: Path | str | None = None) -> dict[str, run_manifest.Retryable]:
    """Return what a start of the sweep would try again of variants that are whole, by their ids; nothing runs."""
    notebook, found = config.checkout_file(config.NOTEBOOK), dict[str, run_manifest.Retryable]()
    run, ids = _run_folder(checked, out), [variant.variant_id for variant in checked.variants]
    parts = {run.path: checked}
    if checked.experiment.design == built_in_designs.RACING:  # else nobody knows the variants of a round before
        for number in range(1, len(checked.rounds) + 1):
            parts[run.path / run_manifest.ROUNDS_FOLDER / str(number)] = race.round_plan(checked, number, ids)
    for path, part in parts.items():
        identities = manifest.run_identities(part, notebook)
        for v, state in outputs.whole_variants(part.run_folder(path), identities).items():
            found[v] = found.get(v, run_manifest.Retryable()) + state.retryable
    return found


def post_hoc_margins(checked: Plan, out: Path | str | None = None) -> str:
    """Say which margins a start of the sweep would record as post hoc, or ''."""
    return human_input.post_hoc_sentence(human_input.dated(_run_folder(checked, out)))


def _run_folder(checked: Plan, out: Path | str | None) -> files.RunFolder:
    return checked.run_folder(Path(out) if out is not None else Path("results") / checked.experiment.name)


@contextmanager
def alone_in_store(path: Path) -> Iterator[str]:
    """Yield the name of the run in `path`, which is held in the store in this block."""
    name, memory = files.run_name(path), results.Memory(home.usable_home() / job_queue.FILE)
    key = f"sweep {name}"
    if not memory.claim([key], 1):
        others = ", ".join(map(str, memory.holders([key])))
        raise RagLabError(config.SAYS["held_in_store"].format(path=path, others=others))
    with memory.keeping([key]):
        yield name


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the run folder alone."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        others = {entry.name for entry in path.iterdir()} - {files.LOCK_FILE, variant_files.LIVE_FILE, files.NAME_FILE}
    except OSError as error:
        raise RagLabError(f"Cannot write to {path}: {error.strerror}; give another folder with --out.") from None
    if others and files.PLAN_FILE not in others:
        raise RagLabError(f"{path} holds something else than a run; give an empty or a new folder with --out.")
    try:
        with FileLock(path / files.LOCK_FILE, timeout=0):
            yield
    except Timeout:
        raise RagLabError(config.SAYS["held"].format(path=path)) from None


def choose_then_prove(checked: Plan, run: files.RunFolder, options: run_options.RunOptions) -> files.RunFolder:
    """Run the rounds of a design and its proof in the run folder, which the caller has locked, and return that."""
    run, design = human_input.dated(run), checked.experiment.design
    before: run_manifest.RaceRecord | None = None
    try:
        before = run_manifest.read_race(run.path)
    except DamagedFile as error:
        _LOGGER.warning("%s: the rounds are decided anew.", error.what)
    record = _new_record(checked, before)
    if before is not None and before.plan != record.plan:
        before = None
    rounds_folder = run.path / run_manifest.ROUNDS_FOLDER

    def work(folder: Path, plan: Plan, heading: str, *, has_report: bool = True) -> files.RunFolder:
        """Run a round or the proof; what was used of the limits in other folders counts for it."""
        if options.progress:
            counted, which = wording.counted, " that chose nothing" if folder == run.path else ""
            size = f"{counted(len(plan.variants), 'variant')} on {counted(len(plan.questions), 'question')}"
            say(f"{heading}: {size}{which}.")
        folder.mkdir(parents=True, exist_ok=True)
        others = (one / files.LEDGER_FILE for one in (run.path, *sorted(rounds_folder.glob("*"))) if one != folder)
        used, part = (
            sum((ledger.Ledger(one).used(elsewhere=False) for one in others), ledger.Used()),
            plan.run_folder(folder),
        )
        run_variants.run_variants(plan, part, options, used, has_report=has_report)
        return part

    if design == built_in_designs.RACING:
        rounds = _race_rounds(checked)
    elif design == built_in_designs.STAGED:
        rounds = _staged_rounds(checked, options)
    else:
        study = trials.open_study(checked, run)
        rounds = trials.trial_rounds(checked, run, options, partial(work, rounds_folder / "1", has_report=False), study)
    outputs.begin(checked, run, None)
    files.write_json(run.path / run_manifest.RACE_FILE, record)
    try:
        one = next(rounds)
        while True:
            part = work(rounds_folder / str(one.number), one.plan, one.heading)
            record = replace(record, rounds=(*record.rounds, _record_of(run.path, one, part)))
            record = replace(record, stopped=_why_stopped(design, record, part, before))
            files.write_json(run.path / run_manifest.RACE_FILE, record)
            if record.stopped:
                return run
            one = rounds.send(record.rounds[-1])
    except StopIteration as end:
        plan, winner = end.value
    files.write_json(run.path / run_manifest.RACE_FILE, replace(record, winner=winner))
    return work(run.path, race.with_variants(plan, [winner]), "Proof")


def _race_rounds(checked: Plan) -> race.Rounds:
    """Drop who is shown to be worse, until the rounds are over or nobody but one is left beside the baseline."""
    choose, baseline = partial(race.race_standings, looks=race.looks_of(checked)), checked.variants[0].variant_id
    left, n_rounds = [one.variant_id for one in checked.variants[1:]], len(checked.rounds)
    for number in range(1, n_rounds + 1):
        plan = race.round_plan(checked, number, left)
        done = yield race.Round(number, plan, f"Round {number} of {n_rounds}", choose)
        left = race.staying(done, baseline)
        if len(left) <= 1:
            break
    return checked, race.best_of(done, baseline)


def _staged_rounds(checked: Plan, options: run_options.RunOptions) -> race.Rounds:
    """Vary the factors of one stage after the other, beside what was chosen before."""
    baseline, factors = checked.expansion.baseline, checked.experiment.factors
    space, stages, given = trials.SearchVariants(checked), built_in_designs.stages_of(factors), checked.experiment
    carried, choices = first_values(factors), dict[str, Changes]()
    for number, (stage, keys) in enumerate(stages.items(), start=1):
        choices_of_stage = built_in_designs.stage_choices(factors, keys, carried)
        wanted = [settled(given.base.flat(), one, factors, given.only_if) for one in choices_of_stage]
        expansion, named = space.expansion(wanted)
        if len(expansion.variants) == 1:
            if options.progress:
                metric = checked.deciding_metric.name
                say(f"Stage {stage}: nothing in it can change {metric}, so that its first values stay.")
            continue
        choices |= named
        varied = replace(checked, expansion=expansion)
        plan = race.round_plan(varied, number, [v.variant_id for v in expansion.variants])
        choose = partial(race.standings, n_kept=0)
        done = yield race.Round(number, plan, f"Stage {stage}, {number} of {len(stages)}", choose, stage)
        carried = choices[done.standings[0].variant_id]  # the first by mean
    winner = space.variant(carried)
    if winner.variant_id == baseline.variant_id:
        winner = space.variant(choices[race.best_of(done, baseline.variant_id)])
    return replace(checked, expansion=Expansion((baseline, winner))), winner.variant_id


def _new_record(checked: Plan, before: run_manifest.RaceRecord | None) -> run_manifest.RaceRecord:
    """Return the record of a design that begins; what an earlier start of the same race has estimated stands."""
    given, whole = checked.experiment, race.full_plan(checked)
    is_race = given.design == built_in_designs.RACING
    identities = manifest.run_identities(whole if is_race else checked, config.checkout_file(config.NOTEBOOK))
    record = run_manifest.RaceRecord(
        plan=digest.digest([identities, checked.rounds, *([] if is_race else [given.design])]),
        metric=checked.deciding_metric.name,
        sizes=tuple(len(ids) for ids in (checked.rounds if is_race else checked.rounds[:1])),
        n_variants=len(checked.variants),
        n_proof=len(checked.questions),
        repeats=given.repeats,
        full=run_manifest.Cost(),
    )
    if not is_race:
        names = tuple(one.name for one in race.aims(checked)) if given.design == built_in_designs.OPTUNA else ()
        return replace(record, design=given.design, objectives=names)
    if before is not None and before.plan == record.plan:
        cost = before.full
    else:
        bill = estimate(whole)
        cost = run_manifest.Cost(bill.calls, sum(row.tokens for row in bill.rows), bill.cost_usd, bill.minutes, None)
    error = (given.race or built_in_designs.RaceConfig()).error
    return replace(record, baseline=checked.expansion.baseline.variant_id, error=error, full=cost)


def _record_of(folder: Path, one: race.Round, part: files.RunFolder) -> run_manifest.RoundRecord:
    """Return what a round that has run comes to."""
    metric, scores = one.plan.deciding_metric, part.scores()
    labels = {v.variant_id: v.label for v in one.plan.variants}
    found = one.standings(scores, metric.name, metric.info.scale, labels, part.baseline)
    closest = None
    if one.plan.experiment.design != built_in_designs.RACING:  # which drops by no nearness of means
        closest = race.closest_call(scores, metric.name, metric.info.scale, found, part.baseline)
    unsettled = sum(run_manifest.Retryable.of(state).total for state in part.manifest().get("variants", {}).values())
    path, cost = part.path.relative_to(folder).as_posix(), run_manifest.cost_of(part)
    return run_manifest.RoundRecord(path, len(one.plan.questions), found, cost, closest, unsettled, one.title)


def _why_stopped(
    design: str, record: run_manifest.RaceRecord, part: files.RunFolder, before: run_manifest.RaceRecord | None
) -> str:
    """Return why no other round can follow the last one, or ''; `before`: what an earlier start has recorded.

    A variant that a limit stopped, or of which an outage took questions, would be dropped for no fault of its own. What
    an earlier start has tried, too, and this one cured nothing of, counts as failed.
    """
    number, done = len(record.rounds), record.rounds[-1]
    what = "race" if design == built_in_designs.RACING else "search"
    states = part.manifest().get("variants", {}).values()
    if reasons := [str(state["reason"]) for state in states if state["status"] == "stopped"]:
        return f"The {what} stops in round {number}: {reasons[0]}."
    tried = before.rounds[number - 1].unsettled if before is not None and len(before.rounds) >= number else 0
    if done.unsettled and not 0 < tried <= done.unsettled:
        n_failures = wording.counted(done.unsettled, "failure")
        return config.SAYS["unsettled"].format(what=what, number=number, failures=n_failures)
    if not any(one.rank is not None for one in done.standings if one.variant_id != part.baseline):
        return f"The {what} stops after round {number}, as no variant beside the baseline has scores."
    return ""
