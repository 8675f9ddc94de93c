"""The start of a sweep: whatever can fail is tried before anything of an earlier run in the folder is replaced."""

from __future__ import annotations

from collections.abc import Mapping

from rag_lab._kit.digest import digest
from rag_lab._kit.home import usable_home
from rag_lab.errors import RagLabError
from rag_lab.experiment.forecast.cost_estimate import estimate
from rag_lab.experiment.forecast.spending import keep_estimate, kept_estimate
from rag_lab.experiment.forecast.truncation import refusals, truncations_of
from rag_lab.experiment.forecast.work import WorkTree
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.run.limits import ledger_of
from rag_lab.memory.results import Memory
from rag_lab.redaction import hide_known
from rag_lab.runs.plan_tree import write_tree
from rag_lab.runs.run_folder import DRAFT_FILE, MANIFEST_FILE, SCORES_FILE, RunFolder

_OUTPUTS = ("report.html", "report.md", SCORES_FILE, DRAFT_FILE, MANIFEST_FILE)


def begin(checked: Plan, run: RunFolder, identities: Mapping[str, str]) -> None:
    """Write the plan and its bill to the run folder, in place of what an earlier run has left there.

    Args:
        checked: what is to run.
        run: its run folder.
        identities: what each variant's results depend on, by its id.

    Raises:
        RagLabError: before anything is replaced, if the home folder, what it remembers or the ledger cannot be used, or
            models would cut what a variant refuses to have cut.
    """
    _try_home()
    _refuse_unread(checked)
    grown = WorkTree()
    bill = kept_estimate(run, digest(identities), lambda: estimate(checked, tree=grown))
    _replace_plan(checked, run)
    keep_estimate(run, bill)
    if tree := grown.tree():  # else that of the first start stands, as its bill does
        write_tree(run.path, tree)


def begin_race(checked: Plan, run: RunFolder) -> None:
    """Write the plan of a race in place of what an earlier run has left: until its proof, of all its variants.

    Raises:
        RagLabError: as `begin`.
    """
    _try_home()
    _replace_plan(checked, run)


def _refuse_unread(checked: Plan) -> None:
    refuses = any(variant.config.on_truncation == "refuse" for variant in checked.variants)
    if refuses and (told := refusals(truncations_of(checked), checked)):
        raise RagLabError(" ".join(told))


def _replace_plan(checked: Plan, run: RunFolder) -> None:
    ledger_of(run).calls()  # one that is damaged is told before anything is replaced
    _remove_outputs(run)
    run.write_plan()
    (run.path / "experiment.yaml").write_text(hide_known(checked.experiment.to_yaml()), encoding="utf-8")


def _try_home() -> None:
    """Open what the kernels will open, which an estimate that was made earlier has no need to."""
    folder = usable_home()
    for name in ("stages.sqlite", "scores.sqlite"):
        Memory(folder / name).recall([])


def _remove_outputs(run: RunFolder) -> None:
    outputs = [path for name in _OUTPUTS if (path := run.path / name).exists()]
    for path in outputs:
        if path.is_dir():
            raise RagLabError(f"{path} is a folder, where the sweep writes a file; move it away.")
    for path in outputs:
        path.unlink()
