"""What a sweep writes to its run folder at its start, before which whatever can fail is tried, and at its end."""

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab._kit.home import usable_home
from rag_lab.errors import RagLabError
from rag_lab.experiment.forecast.cost_estimate import estimate
from rag_lab.experiment.forecast.spending import keep_estimate, kept_estimate, spending_rows
from rag_lab.experiment.forecast.truncation import refusals, truncations_of
from rag_lab.experiment.forecast.work import WorkTree
from rag_lab.experiment.manifest import VariantState, build_manifest
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.run.limits import ledger_of, limits_used
from rag_lab.memory.results import Memory
from rag_lab.models.remote.requests import open_breaker_sentences
from rag_lab.redaction import hide_known
from rag_lab.report.figures.plan_tree import TREE_FILE
from rag_lab.runs.race_record import read_race
from rag_lab.runs.run_folder import DRAFT_FILE, MANIFEST_FILE, SCORES_FILE, RunFolder, write_json
from rag_lab.runs.run_manifest import Retryable, retryable_sentence

_OUTPUTS = ("report.html", "report.md", SCORES_FILE, DRAFT_FILE, MANIFEST_FILE)


def begin(checked: Plan, run: RunFolder, identities: Mapping[str, str] | None) -> None:
    """Write the plan and its bill to the run folder, in place of what an earlier run has left there.

    Without identities it is that of a race, until its proof of all its variants, and a bill is that of each round.

    Raises:
        RagLabError: before anything is replaced, if the home folder, what it remembers or the ledger cannot be used, or
            models would cut what a variant refuses to have cut.
    """
    folder = usable_home()
    for name in ("stages.sqlite", "scores.sqlite"):  # which the kernels will open, and not every start of a sweep
        Memory(folder / name).recall([])
    grown, bill = WorkTree(), None
    if identities is not None:
        refuses = any(variant.config.on_truncation == "refuse" for variant in checked.variants)
        if refuses and (sentences := refusals(truncations_of(checked), checked)):
            raise RagLabError(" ".join(sentences))
        bill = kept_estimate(run, digest(identities), lambda: estimate(checked, tree=grown))
    ledger_of(run).calls()  # one that is damaged is told before anything is replaced
    outputs = [path for name in _OUTPUTS if (path := run.path / name).exists()]
    if folders := [path for path in outputs if path.is_dir()]:
        raise RagLabError(f"{folders[0]} is a folder, where the sweep writes a file; move it away.")
    for path in outputs:
        path.unlink()
    run.write_plan()
    (run.path / "experiment.yaml").write_text(hide_known(checked.experiment.to_yaml()), encoding="utf-8")
    if bill is not None:
        keep_estimate(run, bill)
    if tree := grown.tree():  # else that of the first start stands, as its bill does
        write_json(run.path / TREE_FILE, tree)


def prepare_report(questions: int) -> None:
    """Import what makes a report of so many questions, and draw for it, while kernels run and this process waits."""

    def prepare() -> None:
        import_module("rag_lab.report.page.report_page")
        from rag_lab.statistics.bootstrap import draw_ahead

        draw_ahead(questions)

    threading.Thread(target=prepare, daemon=True).start()


def finish(
    plan: Plan, run: RunFolder, states: Sequence[VariantState], start: datetime, *, has_report: bool = True
) -> None:
    """Write `scores.parquet`, `report.html`, `report.md` and `manifest.json`.

    Without a report, that is made where somebody asks for it.
    """
    spent = {"limits": limits_used(plan.experiment.limits, run), "spent": spending_rows(run)}
    counts = merge_scores(run, [state.variant_id for state in states if state.status == "ok"])
    manifest = build_manifest(plan, states, counts, start) | spent
    write_json(run.path / DRAFT_FILE, manifest)
    if has_report:
        from rag_lab.report.page.report_page import write_report

        try:
            write_report(run.path)
        except RagLabError as error:
            write_json(run.path / DRAFT_FILE, manifest | {"report_problem": str(error)})
    (run.path / DRAFT_FILE).replace(run.path / MANIFEST_FILE)


def merge_scores(run: RunFolder, variant_ids: Sequence[str]) -> dict[str, int]:
    """Write the scores of these variants to one file and return how many there are of each status."""
    from rag_lab.runs.score_file import read_scores, write_scores

    path = run.path / SCORES_FILE
    if not variant_ids:
        write_scores(path, {})
        return {}
    merged = read_scores(*(run.variant_dir(variant_id) / SCORES_FILE for variant_id in variant_ids))
    write_scores(path, merged)
    return {str(status): int(count) for status, count in merged["status"].value_counts().items()}


def failures(run: RunFolder) -> list[str]:
    """Return one sentence for each thing that failed in a run: variants, questions, scores, the report.

    A race tells what failed in its rounds and why it stopped, too.
    """
    race = read_race(run.path)
    told = [
        f"{done.folder}: {sentence}"
        for done in (race.rounds if race else ())
        for sentence in _failures(RunFolder.open(run.path / done.folder))
    ]
    return [*told, *([race.stopped] if race and race.stopped else []), *_failures(run)]


def _failures(run: RunFolder) -> list[str]:
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
    sentences += open_breaker_sentences(ledger_of(run))
    if sentence := retryable_sentence({name: Retryable.of(state) for name, state in variants.items()}):
        sentences.append(sentence)
    if "report_problem" in manifest:
        sentences.append(f"There is no report: {manifest['report_problem']}")
    return sentences
