"""What earlier starts left: whole variants are not run again, a finished sweep is left as it is."""

import hashlib
import logging
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import rag_lab
from rag_lab._kit.digest import digest
from rag_lab.errors import ConfigError, DamagedFile
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.manifest import VariantState, package_versions
from rag_lab.experiment.run import MADE_FILE
from rag_lab.experiment.run.limits import ledger_of
from rag_lab.runs import run_folder as files
from rag_lab.runs.preferences import PREFERENCES_FILE
from rag_lab.runs.race_record import RACE_FILE
from rag_lab.runs.score_file import read_scores

_LOGGER = logging.getLogger(__name__)
_RESULTS = (files.CONFIG_FILE, files.TRACES_FILE, files.SCORES_FILE, files.PASSAGES_FILE, files.RECORD_FILE)
_FILES = (*_RESULTS, files.DONE_FILE)

_FOLDER = "earlier"
_OUTPUTS = ("report.html", "report.md", files.SCORES_FILE, files.MANIFEST_FILE, "plan.json", "experiment.yaml")
_FOLDERS = ("learned_*.yaml", "questions/*")
_READ = (files.BILL_FILE, PREFERENCES_FILE, RACE_FILE)  # by the report, beside what the variants left
_DRAWN_BY = ("jinja2", "markupsafe", "matplotlib", "pandas", "pyarrow", "scipy")


def whole(run: files.RunFolder, variant_id: str, identity: str) -> VariantState | None:
    """Return the state of a variant that an earlier start of this sweep finished with the same identity.

    So it is also where a killed attempt replaced it. One of whose files any is missing or damaged runs again: what is
    remembered makes that cheap.
    """
    for place in (_earlier(run), run):
        folder = place.variant_dir(variant_id)
        if not all((folder / name).is_file() for name in _FILES):
            continue
        try:
            done, record = files.read_json(folder / files.DONE_FILE), files.read_json(folder / files.RECORD_FILE)
            if done.get("identity") != identity:
                continue
            if done.get("files") != _digests(folder):  # what is as it was written need not be read to know it is whole
                _check_files(place, variant_id, record)
        except DamagedFile as error:
            _LOGGER.warning("Variant %s runs again: %s.", variant_id, error.what)
            continue
        return VariantState(variant_id, "ok", "", done["seconds"], resumed=True, record=record)
    return None


def keep_whole(run: files.RunFolder, variant_id: str, identity: str, seconds: float) -> None:
    """Say of a variant that it is whole, by what its results depend on, and what its files hold."""
    outcome = {"identity": identity, "seconds": seconds, "files": _digests(run.variant_dir(variant_id))}
    files.write_json(run.variant_dir(variant_id) / files.DONE_FILE, outcome)


def set_aside(run: files.RunFolder, variant_id: str) -> None:
    """Move what the variant has out of the way of another attempt."""
    _move(run.variant_dir(variant_id), _earlier(run).variant_dir(variant_id))


def put_back(run: files.RunFolder, variant_id: str) -> None:
    """Replace another attempt by what the variant had before it."""
    _move(_earlier(run).variant_dir(variant_id), run.variant_dir(variant_id))


def forget(run: files.RunFolder) -> None:
    """Delete what variants had before attempts that have ended."""
    shutil.rmtree(_earlier(run).path, ignore_errors=True)


def put_back_all(run: files.RunFolder) -> None:
    """Put back what attempts that were killed have left."""
    for folder in sorted((_earlier(run).path / "variants").glob("*")):
        if not (run.variant_dir(folder.name) / files.DONE_FILE).is_file():
            put_back(run, folder.name)
    forget(run)


def better_of(run: files.RunFolder, state: VariantState, before: VariantState) -> VariantState:
    """Return how a variant stands that was tried again: `state`, unless what it had `before` is better and put back."""
    if state.status == "ok" and state.retryable.total <= before.retryable.total and state.failed <= before.failed:
        return state
    put_back(run, state.variant_id)
    why = state.reason or f"{state.retryable} failed in it"
    return replace(before, reason=f"what it had is kept, since another attempt was no better: {why}")


def _earlier(run: files.RunFolder) -> files.RunFolder:
    return replace(run, path=run.path / _FOLDER)


def _move(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)


def _check_files(run: files.RunFolder, variant_id: str, record: Mapping[str, Any]) -> None:
    """Refuse files of which anything was cut: what is left of a configuration may be a pipeline, too."""
    folder = run.variant_dir(variant_id)
    config = None
    with suppress(ConfigError):
        config = run.config(variant_id)
    if config is None or config.identity != record.get("config_identity"):
        raise DamagedFile(folder / files.CONFIG_FILE, "it is not the pipeline that ran")
    run.traces(variant_id)
    read_scores(folder / files.SCORES_FILE)
    files.read_json(folder / files.PASSAGES_FILE)


def _digests(folder: Path) -> dict[str, str]:
    return {name: file_digest(folder / name) for name in _RESULTS}


def file_digest(path: Path) -> str:
    """Return the BLAKE2 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def is_finished(experiment: ExperimentConfig, run: files.RunFolder, identities: Mapping[str, str]) -> bool:
    """Tell whether a start would make all outputs of the sweep again as they are.

    So it is where each variant is whole, with nothing that another attempt may cure; where data, configurations, code,
    libraries, calls, preferences and margins are those that the outputs were made of; and where no output was touched.
    """
    try:
        kept = files.read_json(run.path / MADE_FILE) if (run.path / MADE_FILE).is_file() else {}
    except DamagedFile:
        return False
    if not kept or _earlier(run).path.exists() or kept.get("outputs") != _outputs(run.path):
        return False
    states = [whole(run, variant_id, identity) for variant_id, identity in identities.items()]
    is_whole = all(state is not None and not state.retryable.total for state in states)
    return is_whole and kept.get("inputs") == _inputs(experiment, run, identities)


def keep_finished(
    experiment: ExperimentConfig, run: files.RunFolder, identities: Mapping[str, str], states: Sequence[VariantState]
) -> None:
    """Remember what the outputs were made of, where nothing of them is missing that another start could bring."""
    (run.path / MADE_FILE).unlink(missing_ok=True)
    is_whole = all(state.status == "ok" and not state.reason and not state.retryable.total for state in states)
    if is_whole and "report_problem" not in run.manifest():
        _keep(experiment, run, identities)


def mark_resumed(experiment: ExperimentConfig, run: files.RunFolder, identities: Mapping[str, str]) -> None:
    """Say in the manifest that all variants were whole when the sweep was started again."""
    manifest = run.manifest()
    states = manifest["variants"].values()
    if all(state["resumed"] for state in states):
        return
    for state in states:
        state["resumed"] = True
    files.write_json(run.path / files.MANIFEST_FILE, manifest)
    _keep(experiment, run, identities)


def _keep(experiment: ExperimentConfig, run: files.RunFolder, identities: Mapping[str, str]) -> None:
    made_of = {"inputs": _inputs(experiment, run, identities), "outputs": _outputs(run.path)}
    files.write_json(run.path / MADE_FILE, made_of)


def _inputs(experiment: ExperimentConfig, run: files.RunFolder, identities: Mapping[str, str]) -> str:
    done = [file_digest(run.variant_dir(variant_id) / files.DONE_FILE) for variant_id in identities]
    read = {name: file_digest(run.path / name) for name in _READ if (run.path / name).is_file()}
    calls = [list(map(str, row)) for row in ledger_of(run).calls()]
    given = [experiment.to_yaml(), dict(identities), run.planned()]
    return digest([*given, done, read, calls, package_versions(_DRAWN_BY), _page_digest()])


def _page_digest() -> str:
    """Return a digest of what pages are made of beside code, which the identities of variants hold."""
    folder, found = Path(rag_lab.__file__).parent / "report", hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix not in {".py", ".pyc"} and path.is_file():
            found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def _outputs(folder: Path) -> dict[str, str]:
    named = (path for name in _OUTPUTS if (path := folder / name).is_file())
    found = (path for pattern in _FOLDERS for path in sorted(folder.glob(pattern)) if path.is_file())
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in (*named, *found)}
