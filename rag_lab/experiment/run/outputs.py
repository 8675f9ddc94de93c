"""The run folder of a sweep: what a start writes before whatever can fail and at its end, what earlier ones have left.

Whole variants are not run again, and a finished sweep is left as it is.
"""

import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from rag_lab._kit import digest, home
from rag_lab.errors import ConfigError, DamagedFile, RagLabError
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.forecast import caveats, cost_estimate, work
from rag_lab.experiment.manifest import PACKAGE, VariantState, build_manifest, files_digest, package_versions
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.run import MADE_FILE
from rag_lab.memory import ledger, results
from rag_lab.models.remote.retries import open_breaker_sentences
from rag_lab.records import Trace
from rag_lab.redaction import hide_known
from rag_lab.report.plan_tree import TREE_FILE
from rag_lab.runs import human_input, run_manifest, variant_files
from rag_lab.runs import run_folder as files

_LOGGER = logging.getLogger(__name__)
_REPORT = PACKAGE / "report"
OUTPUTS = ("report.html", "report.md", files.SCORES_FILE, files.MANIFEST_FILE)
_INPUTS = (files.PLAN_FILE, "experiment.yaml")  # as the sweep has written them
_RESULTS = (files.CONFIG_FILE, files.TRACES_FILE, files.SCORES_FILE, files.PASSAGES_FILE, files.RECORD_FILE)
# By the report, beside what the variants left.
_READ = (files.BILL_FILE, human_input.PREFERENCES_FILE, run_manifest.RACE_FILE)
_DRAWN_BY = ("jinja2", "markupsafe", "matplotlib", "pandas", "pyarrow", "scipy")


def whole(run: files.RunFolder, variant_id: str, identity: str) -> VariantState | None:
    """Return the state of a variant that an earlier start finished with this identity, also if an attempt was killed.

    One of whose files any is missing or damaged runs again: what is remembered makes that cheap.
    """
    for place in (earlier(run), run):
        folder = place.variant_dir(variant_id)
        if not all((folder / name).is_file() for name in (*_RESULTS, files.DONE_FILE)):
            continue
        try:
            done, record = files.read_json(folder / files.DONE_FILE), files.read_json(folder / files.RECORD_FILE)
            if done.get("identity") != identity:
                continue
            if done.get("files") != _digests(folder, _RESULTS):  # else it need not be read to know that it is whole
                config = None  # what is left of one of which anything was cut may be a pipeline, too
                with suppress(ConfigError):
                    config = place.config(variant_id)
                if config is None or config.identity != record.get("config_identity"):
                    raise DamagedFile(folder / files.CONFIG_FILE, "it is not the pipeline that ran")
                place.traces(variant_id)
                variant_files.read_scores(folder / files.SCORES_FILE)
                files.read_json(folder / files.PASSAGES_FILE)
        except DamagedFile as error:
            _LOGGER.warning("Variant %s runs again: %s.", variant_id, error.what)
            continue
        return VariantState(variant_id, "ok", "", done["seconds"], resumed=True, record=record)
    return None


def whole_variants(run: files.RunFolder, identities: Mapping[str, str]) -> dict[str, VariantState]:
    """Return the states of the variants that are whole; see `whole`."""
    return {v: state for v, identity in identities.items() if (state := whole(run, v, identity))}


def keep_whole(run: files.RunFolder, variant_id: str, identity: str, seconds: float) -> None:
    """Say of a variant that it is whole, by what its results depend on, and what its files hold."""
    folder = run.variant_dir(variant_id)
    outcome = {"identity": identity, "seconds": seconds, "files": _digests(folder, _RESULTS)}
    files.write_json(folder / files.DONE_FILE, outcome)


def earlier(run: files.RunFolder) -> files.RunFolder:
    """Return where variants that are tried again have what they had before, until the attempt has ended."""
    return replace(run, path=run.path / "earlier")


def move_variant(variant_id: str, source: files.RunFolder, target: files.RunFolder) -> None:
    """Move what a variant has out of the way of another attempt, or back in place of that."""
    folder = target.variant_dir(variant_id)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    source.variant_dir(variant_id).replace(folder)


def put_back_all(run: files.RunFolder) -> None:
    """Put back what attempts that were killed have left."""
    for folder in sorted((earlier(run).path / "variants").glob("*")):
        if not (run.variant_dir(folder.name) / files.DONE_FILE).is_file():
            move_variant(folder.name, earlier(run), run)
    shutil.rmtree(earlier(run).path, ignore_errors=True)


def better_of(run: files.RunFolder, state: VariantState, before: VariantState) -> VariantState:
    """Return how a variant stands that was tried again: `state`, unless what it had `before` is better and put back."""
    if state.status == "ok" and state.retryable.total <= before.retryable.total and state.failed <= before.failed:
        return state
    move_variant(state.variant_id, earlier(run), run)
    why = state.reason or f"{state.retryable} failed in it"
    return replace(before, reason=f"what it had is kept, since another attempt was no better: {why}")


def _digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the digests of those of the files that are there."""
    return {name: digest.file_digest(folder / name) for name in names if (folder / name).is_file()}


def is_finished(experiment: ExperimentConfig, run: files.RunFolder, identities: Mapping[str, str]) -> bool:
    """Tell whether a start would make all outputs of the sweep again as they are.

    So it is where each variant is whole, with nothing that another attempt may cure; where data, configurations, code,
    libraries, calls, preferences and margins are those that the outputs were made of; and where no output was touched.
    """
    kept = None
    with suppress(DamagedFile, FileNotFoundError, IsADirectoryError):
        kept = files.read_json(run.path / MADE_FILE)
    if not kept or earlier(run).path.exists():
        return False
    states = whole_variants(run, identities)
    is_whole = states.keys() == identities.keys() and not any(state.retryable.total for state in states.values())
    return is_whole and kept == _made_of(experiment, run, identities)


def keep_finished(
    experiment: ExperimentConfig, run: files.RunFolder, identities: Mapping[str, str], states: Sequence[VariantState]
) -> None:
    """Remember what the outputs were made of, where nothing of them is missing that another start could bring."""
    (run.path / MADE_FILE).unlink(missing_ok=True)
    is_whole = all(state.status == "ok" and not state.reason and not state.retryable.total for state in states)
    if is_whole and "report_problem" not in run.manifest():
        files.write_json(run.path / MADE_FILE, _made_of(experiment, run, identities))


def mark_resumed(experiment: ExperimentConfig, run: files.RunFolder, identities: Mapping[str, str]) -> None:
    """Say in the manifest that all variants were whole when the sweep was started again."""
    manifest = run.manifest()
    if not all(state["resumed"] for state in manifest["variants"].values()):
        for state in manifest["variants"].values():
            state["resumed"] = True
        files.write_json(run.path / files.MANIFEST_FILE, manifest)
        files.write_json(run.path / MADE_FILE, _made_of(experiment, run, identities))


def _made_of(experiment: ExperimentConfig, run: files.RunFolder, identities: Mapping[str, str]) -> dict[str, Any]:
    """Return a digest of what the outputs of a sweep are made of, and those of their bytes."""
    read = [_digests(run.path, _READ), *(_digests(run.variant_dir(v), [files.DONE_FILE]) for v in identities)]
    calls = [list(map(str, row)) for row in ledger.Ledger(run.path / files.LEDGER_FILE).calls()]
    given = [experiment.to_yaml(), dict(identities), run.planned()]
    learned = (path for pattern in ("learned_*.yaml", "questions/*") for path in sorted(run.path.glob(pattern)))
    names = (*OUTPUTS, *_INPUTS, *(path.relative_to(run.path).as_posix() for path in learned))
    # What pages are made of beside code, which the identities of variants hold.
    drawn = [one for one in _REPORT.rglob("*") if one.suffix not in {".py", ".pyc"} and one.is_file()]
    inputs = digest.digest([*given, read, calls, package_versions(_DRAWN_BY), files_digest(_REPORT, drawn)])
    return {"inputs": inputs, "outputs": _digests(run.path, names)}


def begin(checked: Plan, run: files.RunFolder, identities: Mapping[str, str] | None) -> None:
    """Write the plan and its bill to the run folder, in place of what an earlier run has left there.

    Without identities it is that of a race, until its proof of all its variants, and a bill is that of each round.
    Before anything is replaced, a RagLabError says that the home folder, what it remembers or the ledger cannot be
    used, or that models would cut what a variant refuses to have cut.
    """
    for name in ("stages.sqlite", "scores.sqlite"):  # which the kernels will open, and not every start of a sweep
        results.Memory(home.usable_home() / name).recall([])
    paths, bill = work.PlanTree(), None
    if identities is not None:
        refuses = any(variant.config.on_truncation == "refuse" for variant in checked.variants)
        if refuses and (sentences := caveats.refusals(caveats.truncations_of(checked), checked)):
            raise RagLabError(" ".join(sentences))
        estimate = partial(cost_estimate.estimate, checked, tree=paths)
        bill = cost_estimate.kept_estimate(run, digest.digest(identities), estimate)
    ledger.Ledger(run.path / files.LEDGER_FILE).calls()  # one that is damaged is told before anything is replaced
    outputs = [path for name in (*OUTPUTS, files.DRAFT_FILE) if (path := run.path / name).exists()]
    if folders := [path for path in outputs if path.is_dir()]:
        raise RagLabError(f"{folders[0]} is a folder, where the sweep writes a file; move it away.")
    for path in outputs:
        path.unlink()
    run.write_plan()
    (run.path / "experiment.yaml").write_text(hide_known(checked.experiment.to_yaml()), encoding="utf-8")
    if bill is not None:
        files.write_json(run.path / files.BILL_FILE, bill)
    if paths:  # else that of the first start stands, as its bill does
        files.write_json(run.path / TREE_FILE, work.branch_of([*paths.values()]))


def prepare_report(questions: int) -> None:
    """Import what makes a report of so many questions, and draw for it, while kernels run and this process waits."""
    import_module("rag_lab.report.page.report_page")
    from rag_lab.statistics.intervals import draw_ahead

    draw_ahead(questions)


def finish(
    plan: Plan,
    run: files.RunFolder,
    states: Sequence[VariantState],
    start: datetime,
    *,
    has_report: bool = True,
    traces: Mapping[str, list[Trace]] | None = None,
) -> None:
    """Write `scores.parquet`, `report.html`, `report.md` and `manifest.json`; see `write_report` for `traces`."""
    used, limits = ledger.Ledger(run.path / files.LEDGER_FILE).used(), {}
    for name in ("cost_usd", "calls", "minutes"):  # by all starts of the sweep
        limit = getattr(plan.experiment.limits, name)
        limits[name] = {"limit": limit, "used": round(getattr(used, name), 6)}
    paths = [run.variant_dir(state.variant_id) / files.SCORES_FILE for state in states if state.status == "ok"]
    merged = variant_files.read_scores(*paths) if paths else None
    variant_files.write_scores(run.path / files.SCORES_FILE, {} if merged is None else merged)
    counts = {} if merged is None else dict(Counter(map(str, merged["status"])))
    manifest = build_manifest(plan, states, counts, start)
    manifest |= {"limits": limits, "spent": cost_estimate.spending_rows(run)}
    files.write_json(run.path / files.DRAFT_FILE, manifest)
    if has_report:
        from rag_lab.report.page.report_page import write_report

        try:
            write_report(run.path, traces=traces)
        except RagLabError as error:
            files.write_json(run.path / files.DRAFT_FILE, manifest | {"report_problem": str(error)})
    (run.path / files.DRAFT_FILE).replace(run.path / files.MANIFEST_FILE)


def failures(run: files.RunFolder) -> list[str]:
    """Return one sentence for each thing that failed in a run: variants, questions, scores, the report."""
    race, manifest = run_manifest.read_race(run.path), run.manifest()
    of_race = list[str]()
    for name in (done.folder for done in race.rounds) if race else ():
        of_race += [f"{name}: {sentence}" for sentence in failures(files.RunFolder.open(run.path / name))]
    of_race += [race.stopped] if race else []
    variants: dict[str, dict[str, Any]] = manifest.get("variants", {})
    failed, others, questions = list[str](), list[str](), list[str]()
    for name, state in variants.items():
        reason, notebook = state["reason"], run.variant_dir(name) / "notebook.ipynb"
        if state["status"] == "failed":
            failed.append(f"Variant {name} failed: {reason} Its notebook is {notebook}.")
        elif reason:
            others.append(f"Variant {name}: {reason.rstrip('.')}.")
        for stage, n in state.get("failed_stages", {}).items():
            questions.append(f"Variant {name}: {n} of {state['traces']} questions failed at {stage}.")
    sentences = [*of_race, *failed, *others, *questions]
    if n_missing := manifest.get("counts", {}).get("failed", 0):
        sentences.append(f"{n_missing} scores are missing because something failed; the report gives the reasons.")
    sentences += open_breaker_sentences(ledger.Ledger(run.path / files.LEDGER_FILE))
    retryable = {name: run_manifest.Retryable.of(state) for name, state in variants.items()}
    sentences.append(run_manifest.retry_sentence(retryable, is_left=True))
    if "report_problem" in manifest:
        sentences.append(f"There is no report: {manifest['report_problem']}")
    return list(filter(None, sentences))
