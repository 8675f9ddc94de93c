"""What earlier starts and attempts left: whole variants are not run again, others kept until an attempt is as good.

It lies in a run folder of the same shape within the run folder, so it is read as every other result is. One that is
there when a sweep starts is what a killed attempt has left, and is put back.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_lab.errors import ConfigError, DamagedFile
from rag_lab.experiment.manifest import VariantState
from rag_lab.runs.run_folder import (
    CONFIG_FILE,
    DONE_FILE,
    PASSAGES_FILE,
    RECORD_FILE,
    SCORES_FILE,
    TRACES_FILE,
    RunFolder,
    read_json,
    write_json,
)
from rag_lab.runs.score_file import read_scores

_LOGGER = logging.getLogger(__name__)
_RESULTS = (CONFIG_FILE, TRACES_FILE, SCORES_FILE, PASSAGES_FILE, RECORD_FILE)
_FILES = (*_RESULTS, DONE_FILE)

_FOLDER = "earlier"


def whole(run: RunFolder, variant_id: str, identity: str) -> VariantState | None:
    """Return the state of a variant that an earlier start has finished, also where a killed attempt replaced it."""
    return resumed(_earlier(run), variant_id, identity) or resumed(run, variant_id, identity)


def keep_whole(run: RunFolder, variant_id: str, identity: str, seconds: float) -> None:
    """Say of a variant that it is whole, by what its results depend on, and what its files hold."""
    outcome = {"identity": identity, "seconds": seconds, "files": _digests(run.variant_dir(variant_id))}
    write_json(run.variant_dir(variant_id) / DONE_FILE, outcome)


def has_earlier(run: RunFolder) -> bool:
    """Tell whether an attempt that was killed has left what variants had before it."""
    return _earlier(run).path.exists()


def set_aside(run: RunFolder, variant_id: str) -> None:
    """Move what the variant has out of the way of another attempt."""
    _move(run.variant_dir(variant_id), _earlier(run).variant_dir(variant_id))


def put_back(run: RunFolder, variant_id: str) -> None:
    """Replace another attempt by what the variant had before it."""
    _move(_earlier(run).variant_dir(variant_id), run.variant_dir(variant_id))


def forget(run: RunFolder) -> None:
    """Delete what variants had before attempts that have ended."""
    shutil.rmtree(_earlier(run).path, ignore_errors=True)


def put_back_all(run: RunFolder) -> None:
    """Put back what attempts that were killed have left."""
    for folder in sorted((_earlier(run).path / "variants").glob("*")):
        if not (run.variant_dir(folder.name) / DONE_FILE).is_file():
            put_back(run, folder.name)
    forget(run)


def judged(run: RunFolder, state: VariantState, before: VariantState) -> VariantState:
    """Return how a variant stands that was tried again: `state`, unless what it had `before` is better and put back."""
    if state.status == "ok" and state.curable.total <= before.curable.total and state.failed <= before.failed:
        return state
    put_back(run, state.variant_id)
    why = state.reason or f"{state.curable} failed in it"
    return replace(before, reason=f"what it had is kept, since another attempt was no better: {why}")


def _earlier(run: RunFolder) -> RunFolder:
    return replace(run, path=run.path / _FOLDER)


def _move(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)


def resumed(run: RunFolder, variant_id: str, identity: str) -> VariantState | None:
    """Return the state of a variant that an earlier start of this sweep finished with the same identity.

    One of whose files any is missing or damaged runs again: what is remembered makes that cheap.
    """
    folder = run.variant_dir(variant_id)
    if not all((folder / name).is_file() for name in _FILES):
        return None
    try:
        return _whole(run, variant_id, identity)
    except DamagedFile as error:
        _LOGGER.warning("Variant %s runs again: %s.", variant_id, error.what)
        return None


def _whole(run: RunFolder, variant_id: str, identity: str) -> VariantState | None:
    folder = run.variant_dir(variant_id)
    done, record = read_json(folder / DONE_FILE), read_json(folder / RECORD_FILE)
    if done.get("identity") != identity:
        return None
    if done.get("files") != _digests(folder):  # what is as it was written need not be read to know that it is whole
        _check_files(run, variant_id, record)
    return VariantState(variant_id, "ok", "", done["seconds"], resumed=True, record=record)


def _check_files(run: RunFolder, variant_id: str, record: Mapping[str, Any]) -> None:
    """Refuse files of which anything was cut."""
    folder = run.variant_dir(variant_id)
    _check_config(run, variant_id, record)
    run.traces(variant_id)
    read_scores(folder / SCORES_FILE)
    read_json(folder / PASSAGES_FILE)


def _digests(folder: Path) -> dict[str, str]:
    return {name: file_digest(folder / name) for name in _RESULTS}


def file_digest(path: Path) -> str:
    """Return the BLAKE2 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _check_config(run: RunFolder, variant_id: str, record: Mapping[str, Any]) -> None:
    """Refuse a configuration that was cut: what is left of it may be a pipeline, too, an empty one the default's."""
    try:
        config = run.config(variant_id)
    except ConfigError:
        config = None
    if config is None or config.identity != record.get("config_identity"):
        raise DamagedFile(run.variant_dir(variant_id) / CONFIG_FILE, "it is not the pipeline that ran")
