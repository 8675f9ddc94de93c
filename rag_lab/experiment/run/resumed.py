"""What an earlier start of a sweep has finished, so that it is kept and not run again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from rag_lab.errors import ConfigError, DamagedFile
from rag_lab.experiment.manifest import VariantState
from rag_lab.runs.run_folder import (
    CONFIG_FILE,
    DONE_FILE,
    EXCERPTS_FILE,
    RECORD_FILE,
    SCORES_FILE,
    TRACES_FILE,
    RunFolder,
    read_json,
)
from rag_lab.runs.score_file import read_scores

_LOGGER = logging.getLogger(__name__)
_FILES = (CONFIG_FILE, TRACES_FILE, SCORES_FILE, EXCERPTS_FILE, RECORD_FILE, DONE_FILE)


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
    _check_config(run, variant_id, record)
    run.traces(variant_id)
    read_scores(folder / SCORES_FILE)
    read_json(folder / EXCERPTS_FILE)
    return VariantState(variant_id, "ok", "", done["seconds"], resumed=True, record=record)


def _check_config(run: RunFolder, variant_id: str, record: Mapping[str, Any]) -> None:
    """Refuse a configuration that was cut: what is left of it may be a pipeline, too, an empty one the default's."""
    try:
        config = run.config(variant_id)
    except ConfigError:
        config = None
    if config is None or config.identity != record.get("config_identity"):
        raise DamagedFile(run.variant_dir(variant_id) / CONFIG_FILE, "it is not the pipeline that ran")
