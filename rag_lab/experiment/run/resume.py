"""What earlier starts of a sweep have left: whole variants are not run again, a finished sweep is left as it is."""

import hashlib
import logging
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import rag_lab
from rag_lab._kit import digest
from rag_lab.errors import ConfigError, DamagedFile
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.manifest import VariantState, package_versions
from rag_lab.experiment.run import MADE_FILE
from rag_lab.memory import ledger
from rag_lab.runs import human_input, run_manifest, variant_files
from rag_lab.runs import run_folder as files

_LOGGER = logging.getLogger(__name__)
OUTPUTS = ("report.html", "report.md", files.SCORES_FILE, files.MANIFEST_FILE)
_INPUTS = (files.PLAN_FILE, "experiment.yaml")  # as the sweep has written them
_RESULTS = (files.CONFIG_FILE, files.TRACES_FILE, files.SCORES_FILE, files.PASSAGES_FILE, files.RECORD_FILE)
# By the report, beside what the variants left.
_READ = (files.BILL_FILE, human_input.PREFERENCES_FILE, run_manifest.RACE_FILE)
_DRAWN_BY = ("jinja2", "markupsafe", "matplotlib", "pandas", "pyarrow", "scipy")


def whole(run: files.RunFolder, variant_id: str, identity: str) -> VariantState | None:
    """Return the state of a variant that an earlier start of this sweep finished with the same identity.

    So it is also where a killed attempt replaced it. One of whose files any is missing or damaged runs again: what is
    remembered makes that cheap.
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
                _check_files(place, variant_id, record)
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


def _check_files(run: files.RunFolder, variant_id: str, record: Mapping[str, Any]) -> None:
    """Refuse files of which anything was cut: what is left of a configuration may be a pipeline, too."""
    folder = run.variant_dir(variant_id)
    config = None
    with suppress(ConfigError):
        config = run.config(variant_id)
    if config is None or config.identity != record.get("config_identity"):
        raise DamagedFile(folder / files.CONFIG_FILE, "it is not the pipeline that ran")
    run.traces(variant_id)
    variant_files.read_scores(folder / files.SCORES_FILE)
    files.read_json(folder / files.PASSAGES_FILE)


def _digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the BLAKE2 of those of the files that are there."""
    found = {}
    for name in names:
        if (folder / name).is_file():
            with (folder / name).open("rb") as file:
                found[name] = hashlib.file_digest(file, "blake2b").hexdigest()
    return found


def is_finished(experiment: ExperimentConfig, run: files.RunFolder, identities: Mapping[str, str]) -> bool:
    """Tell whether a start would make all outputs of the sweep again as they are.

    So it is where each variant is whole, with nothing that another attempt may cure; where data, configurations, code,
    libraries, calls, preferences and margins are those that the outputs were made of; and where no output was touched.
    """
    try:
        kept = files.read_json(run.path / MADE_FILE) if (run.path / MADE_FILE).is_file() else {}
    except DamagedFile:
        return False
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
    states = manifest["variants"].values()
    if all(state["resumed"] for state in states):
        return
    for state in states:
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
    inputs = digest.digest([*given, read, calls, package_versions(_DRAWN_BY), _page_digest()])
    return {"inputs": inputs, "outputs": _digests(run.path, names)}


def _page_digest() -> str:
    """Return a digest of what pages are made of beside code, which the identities of variants hold."""
    folder, found = Path(rag_lab.__file__).parent / "report", hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix not in {".py", ".pyc"} and path.is_file():
            found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
