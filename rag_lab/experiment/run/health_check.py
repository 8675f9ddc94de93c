"""Two questions through each variant first: what would fail in all of them is found before hours are spent.

They are two of those that are asked, by the very notebook: what is computed is remembered, nothing is done twice.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from rag_lab._kit.wording import listing
from rag_lab.errors import DamagedFile, RagLabError
from rag_lab.experiment.executors.job import Done, Job
from rag_lab.experiment.sweep_status import calls_left
from rag_lab.records import Trace
from rag_lab.runs.run_folder import RECORD_FILE, SCORES_FILE, RunFolder, read_json, write_json
from rag_lab.runs.run_manifest import Retryable
from rag_lab.runs.score_file import read_scores

N_QUESTIONS = 2
CHECK_FOLDER = "check"  # in the run folder; kept where the check failed
CHECKED_FILE = "checked.json"  # in the run folder: what has passed
_WORTH_S = 120.0
_MOST_NAMED = 3  # variants with faults

Executed = Callable[[Sequence[Job]], Iterable[Done]]


def is_worth_checking(run: RunFolder) -> bool:
    """Tell whether so many questions are asked, and so long, that a check of two costs little beside it.

    That is where calls of models are left to do, for more than two minutes or for nobody knows how long.
    """
    n, seconds = calls_left(run)
    return len(run.questions) > 5 * N_QUESTIONS and n > 0 and (seconds is None or seconds > _WORTH_S)


def has_passed(run: RunFolder, identities: Mapping[str, str]) -> bool:
    """Tell whether an earlier start of the sweep has checked these variants as they are."""
    try:
        passed = read_json(run.path / CHECKED_FILE)
    except (DamagedFile, FileNotFoundError):
        return False
    return identities.items() <= passed.items()


def keep_passed(run: RunFolder, identities: Mapping[str, str]) -> None:
    """Record that these variants have passed, so that a sweep that goes on does not check them again."""
    write_json(run.path / CHECKED_FILE, dict(identities))


def check_run(run: RunFolder) -> RunFolder:
    """Return the run folder of the check, empty but for its plan: two questions, which are answered if any are."""
    order = dict.fromkeys([*run.answered, *run.questions])
    chosen = set(list(order)[:N_QUESTIONS])
    asked = tuple(one for one in run.questions if one in chosen)
    answered = tuple(one for one in run.answered if one in chosen)
    path = run.path / CHECK_FOLDER
    shutil.rmtree(path, ignore_errors=True)
    found = replace(run, path=path, questions=asked, answered=answered, repeats=1)
    found.write_plan()
    return found


def check_variants(run: RunFolder, jobs: Sequence[Job], execute: Executed, *, keep_going: bool) -> list[str]:
    """Execute the jobs of a check, one a variant; return a sentence for each fault, where it goes on all the same."""
    faults = []
    for done in execute(jobs):
        name = done.job.name
        where, reason = "its notebook", done.reason
        if done.vetoed:  # a limit: the variant itself meets it, too
            continue
        if not reason:
            try:
                where, reason = _of_traces(run.traces(name)) or _of_scores(run, name)
            except DamagedFile as error:
                reason = str(error)
        if where:
            faults.append(f"{name} fails at {where}: {reason.rstrip('.')}")
    if not faults:
        shutil.rmtree(run.path, ignore_errors=True)
    elif not keep_going:
        more = [f"{len(faults) - _MOST_NAMED} more variants"] if len(faults) > _MOST_NAMED else []
        raise RagLabError(
            f"Nothing was run beyond a check of {listing(run.questions)}: {'; '.join([*faults[:_MOST_NAMED], *more])}. "
            f"Mend it and start the same command again, or give --keep-going; the notebooks of the check are in "
            f"{run.path}."
        )
    return [f"The check of two questions found: {fault}." for fault in faults]


def _of_traces(traces: Sequence[Trace]) -> tuple[str, str] | None:
    """Return the stage at which all questions failed for one reason, or fell back since a model could not be asked."""
    records = [[one for one in trace.stages if one.status == "failed" or one.curable] for trace in traces]
    alike = {(one.stage, one.reason) for one in chain.from_iterable(records)}
    for found in sorted(alike):
        if all(any((one.stage, one.reason) == found for one in some) for some in records):
            return found
    stages = [{one.stage for one in some if one.curable} for some in records]
    if traces and (same := set.intersection(*stages)):  # what servers say may differ from call to call
        stage = min(same)
        return stage, next(one.reason for one in records[0] if one.stage == stage)
    return None


def _of_scores(run: RunFolder, name: str) -> tuple[str, str]:
    """Return a metric that failed for every question to which it applies, where the outage of a model is why; or ''."""
    if Retryable.of(read_json(run.variant_dir(name) / RECORD_FILE)).scores:
        scores = read_scores(run.variant_dir(name) / SCORES_FILE)
        scores = scores[scores["status"] != "not_applicable"]
        for metric, rows in scores.groupby("metric", sort=True):
            if (rows["status"] == "failed").all():
                return str(metric), str(rows["reason"].iloc[0])
    return "", ""
