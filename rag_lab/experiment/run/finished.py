"""A finished sweep that is started again is left as it is, where nothing has changed that its outputs are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import rag_lab
from rag_lab._kit.digest import digest
from rag_lab.errors import DamagedFile
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.manifest import VariantState, package_versions
from rag_lab.experiment.run.earlier import file_digest, has_earlier, whole
from rag_lab.experiment.run.limits import ledger_of
from rag_lab.experiment.run.made_file import MADE_FILE, looks_finished
from rag_lab.runs.preferences import PREFERENCES_FILE
from rag_lab.runs.race_record import RACE_FILE
from rag_lab.runs.run_folder import BILL_FILE, DONE_FILE, MANIFEST_FILE, SCORES_FILE, RunFolder, read_json, write_json

_OUTPUTS = ("report.html", "report.md", SCORES_FILE, MANIFEST_FILE, "plan.json", "experiment.yaml")
_FOLDERS = ("learned_*.yaml", "questions/*")
_READ = (BILL_FILE, PREFERENCES_FILE, RACE_FILE)  # by the report, beside what the variants left
_DRAWN_BY = ("jinja2", "markupsafe", "matplotlib", "pandas", "pyarrow", "scipy")


def is_finished(experiment: ExperimentConfig, run: RunFolder, identities: Mapping[str, str]) -> bool:
    """Tell whether a start would make all outputs of the sweep again as they are.

    So it is where each variant is whole, with nothing that another attempt may cure; where data, configurations, code,
    libraries, calls, preferences and margins are those that the outputs were made of; and where no output was touched.

    Args:
        experiment: what is asked for.
        run: the plan that is to start, dated.
        identities: what each variant's results depend on, by its id.
    """
    try:
        kept = read_json(run.path / MADE_FILE) if looks_finished(run.path) else {}
    except DamagedFile:
        return False
    if not kept or has_earlier(run) or kept.get("outputs") != _outputs(run.path):
        return False
    states = [whole(run, variant_id, identity) for variant_id, identity in identities.items()]
    is_whole = all(state is not None and not state.curable.total for state in states)
    return is_whole and kept.get("inputs") == _inputs(experiment, run, identities)


def keep_finished(
    experiment: ExperimentConfig, run: RunFolder, identities: Mapping[str, str], states: Sequence[VariantState]
) -> None:
    """Remember what the outputs were made of, where nothing of them is missing that another start could bring."""
    (run.path / MADE_FILE).unlink(missing_ok=True)
    is_whole = all(state.status == "ok" and not state.reason and not state.curable.total for state in states)
    if is_whole and "report_problem" not in run.manifest():
        _keep(experiment, run, identities)


def say_resumed(experiment: ExperimentConfig, run: RunFolder, identities: Mapping[str, str]) -> None:
    """Say in the manifest that all variants were whole when the sweep was started again."""
    manifest = run.manifest()
    states = manifest["variants"].values()
    if all(state["resumed"] for state in states):
        return
    for state in states:
        state["resumed"] = True
    write_json(run.path / MANIFEST_FILE, manifest)
    _keep(experiment, run, identities)


def _keep(experiment: ExperimentConfig, run: RunFolder, identities: Mapping[str, str]) -> None:
    made_of = {"inputs": _inputs(experiment, run, identities), "outputs": _outputs(run.path)}
    write_json(run.path / MADE_FILE, made_of)


def _inputs(experiment: ExperimentConfig, run: RunFolder, identities: Mapping[str, str]) -> str:
    done = [file_digest(run.variant_dir(variant_id) / DONE_FILE) for variant_id in identities]
    read = {name: file_digest(run.path / name) for name in _READ if (run.path / name).is_file()}
    calls = [list(map(str, row)) for row in ledger_of(run).calls()]
    given = [experiment.to_yaml(), dict(identities), run.planned()]
    return digest([*given, done, read, calls, package_versions(_DRAWN_BY), _page_digest()])


def _outputs(folder: Path) -> dict[str, str]:
    named = (path for name in _OUTPUTS if (path := folder / name).is_file())
    found = (path for pattern in _FOLDERS for path in sorted(folder.glob(pattern)) if path.is_file())
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in (*named, *found)}


def _page_digest() -> str:
    """Return a digest of what pages are made of beside code, which the identities of variants hold."""
    folder = Path(rag_lab.__file__).parent / "report"
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix not in {".py", ".pyc"} and path.is_file():
            found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
