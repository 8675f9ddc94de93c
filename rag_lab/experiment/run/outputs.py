"""What a sweep writes to its run folder at its start, before which whatever can fail is tried, and at its end."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import Any

from rag_lab._kit import digest, home
from rag_lab.errors import RagLabError
from rag_lab.experiment.forecast import caveats, cost_estimate, work
from rag_lab.experiment.manifest import VariantState, build_manifest
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.run.resume import OUTPUTS
from rag_lab.memory import ledger, results
from rag_lab.models.remote.retries import open_breaker_sentences
from rag_lab.redaction import hide_known
from rag_lab.report.plan_tree import TREE_FILE
from rag_lab.runs import run_folder as files
from rag_lab.runs import run_manifest, variant_files


def begin(checked: Plan, run: files.RunFolder, identities: Mapping[str, str] | None) -> None:
    """Write the plan and its bill to the run folder, in place of what an earlier run has left there.

    Without identities it is that of a race, until its proof of all its variants, and a bill is that of each round.

    Raises:
        RagLabError: before anything is replaced, if the home folder, what it remembers or the ledger cannot be used, or
            models would cut what a variant refuses to have cut.
    """
    folder = home.usable_home()
    for name in ("stages.sqlite", "scores.sqlite"):  # which the kernels will open, and not every start of a sweep
        results.Memory(folder / name).recall([])
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
        cost_estimate.keep_estimate(run, bill)
    if paths:  # else that of the first start stands, as its bill does
        files.write_json(run.path / TREE_FILE, work.branch_of([*paths.values()]))


def prepare_report(questions: int) -> None:
    """Import what makes a report of so many questions, and draw for it, while kernels run and this process waits."""
    import_module("rag_lab.report.page.report_page")
    from rag_lab.statistics.intervals import draw_ahead

    draw_ahead(questions)


def finish(
    plan: Plan, run: files.RunFolder, states: Sequence[VariantState], start: datetime, *, has_report: bool = True
) -> None:
    """Write `scores.parquet`, `report.html`, `report.md` and `manifest.json`.

    Without a report, that is made where somebody asks for it.
    """
    used, limits = ledger.Ledger(run.path / files.LEDGER_FILE).used(), {}
    for name in ("cost_usd", "calls", "minutes"):  # by all starts of the sweep
        limit = getattr(plan.experiment.limits, name)
        limits[name] = {"limit": limit, "used": round(getattr(used, name), 6)}
    paths = [run.variant_dir(state.variant_id) / files.SCORES_FILE for state in states if state.status == "ok"]
    merged = variant_files.read_scores(*paths) if paths else None
    variant_files.write_scores(run.path / files.SCORES_FILE, {} if merged is None else merged)
    counts = {} if merged is None else dict(Counter(map(str, merged["status"])))
    manifest = build_manifest(plan, states, counts, start) | {
        "limits": limits,
        "spent": cost_estimate.spending_rows(run),
    }
    files.write_json(run.path / files.DRAFT_FILE, manifest)
    if has_report:
        from rag_lab.report.page.report_page import write_report

        try:
            write_report(run.path)
        except RagLabError as error:
            files.write_json(run.path / files.DRAFT_FILE, manifest | {"report_problem": str(error)})
    (run.path / files.DRAFT_FILE).replace(run.path / files.MANIFEST_FILE)


def failures(run: files.RunFolder) -> list[str]:
    """Return one sentence for each thing that failed in a run: variants, questions, scores, the report.

    A race tells what failed in its rounds and why it stopped, too.
    """
    race, sentences = run_manifest.read_race(run.path), list[str]()
    for done in race.rounds if race else ():
        of_round = files.RunFolder.open(run.path / done.folder)
        sentences += [f"{done.folder}: {sentence}" for sentence in _failures(of_round)]
    if race and race.stopped:
        sentences.append(race.stopped)
    return [*sentences, *_failures(run)]


def _failures(run: files.RunFolder) -> list[str]:
    manifest = run.manifest()
    variants: dict[str, dict[str, Any]] = manifest.get("variants", {})
    failed, others, questions = list[str](), list[str](), list[str]()
    for name, state in variants.items():
        reason = state["reason"]
        if state["status"] == "failed":
            notebook = run.variant_dir(name) / "notebook.ipynb"
            failed.append(f"Variant {name} failed: {reason} Its notebook is {notebook}.")
        elif reason:
            others.append(f"Variant {name}: {reason.rstrip('.')}.")
        for stage, n in state.get("failed_stages", {}).items():
            questions.append(f"Variant {name}: {n} of {state['traces']} questions failed at {stage}.")
    sentences = [*failed, *others, *questions]
    if n_missing := manifest.get("counts", {}).get("failed", 0):
        sentences.append(f"{n_missing} scores are missing because something failed; the report gives the reasons.")
    sentences += open_breaker_sentences(ledger.Ledger(run.path / files.LEDGER_FILE))
    retryable = {name: run_manifest.Retryable.of(state) for name, state in variants.items()}
    if sentence := run_manifest.retry_sentence(retryable, is_left=True):
        sentences.append(sentence)
    if "report_problem" in manifest:
        sentences.append(f"There is no report: {manifest['report_problem']}")
    return sentences
