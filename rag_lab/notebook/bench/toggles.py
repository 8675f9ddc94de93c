"""How the toggles stand, where they started, and which settings stay beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.experiment.variant_id import variant_label
from rag_lab.notebook.bench.drawing import fields, problem_of_module, read
from rag_lab.runs.run_folder import RunFolder


class Toggles:
    """The setting as it is now, the two that were run last, and those that are pinned."""

    def __init__(self, start: PipelineConfig) -> None:
        self.start = self.now = start
        self.pinned: tuple[PipelineConfig, ...] = ()
        self._before = self._last = start

    @property
    def changes(self) -> dict[str, Any]:
        """The dotted keys whose value differs from the start."""
        return self.now.differing(self.start)

    def set(self, changes: Mapping[str, Any]) -> None:
        """Change toggles by their dotted keys.

        Raises:
            ConfigError: naming every unknown key and impossible value; then nothing has changed.
        """
        try:
            given = {key: read(fields()[key], value) if key in fields() else value for key, value in changes.items()}
        except ValueError as error:
            raise ConfigError(f"{', '.join(changes)}: {error}") from None
        config = self.now.override(given)
        values = config.flat()
        problems = [f"{key}: {problem}" for key in given if (problem := problem_of_module(key, values[key]))]
        if problems:
            raise ConfigError("; ".join(problems))
        self.now = config

    def load(self, run: Path | str, variant: str) -> str:
        """Stand as in a variant of a run folder; return what was loaded, in words.

        Raises:
            RagLabError: if the folder is no run, or has no such variant.
        """
        folder = RunFolder.open(run)
        names = [plan.variant_id for plan in folder.variants]
        if variant not in names:
            raise ConfigError(unknown_name("variant", variant, names))
        config = folder.config(variant)
        if config is None:
            raise ConfigError(f"The variant {variant} of {run} has not run yet, so nobody wrote down how it is set.")
        self.now = config
        return f"The toggles stand as in {variant} of {folder.name}."

    def ran(self, setting: PipelineConfig) -> None:
        """Take a setting, which came to its end, for the one that was run last."""
        if setting != self._last:
            self._before, self._last = self._last, setting

    @property
    def side_by_side(self) -> tuple[PipelineConfig, ...]:
        """The settings that belong side by side, each once: the pinned, the one that was run before, the newest."""
        before = self._before if self.now == self._last else self._last
        return _each_once((*self.pinned, before, self.now))

    def pin(self, config: PipelineConfig) -> None:
        """Keep a setting beside all that is run later; one that is pinned is let go."""
        kept = tuple(one for one in self.pinned if one != config)
        self.pinned = (*self.pinned, config) if len(kept) == len(self.pinned) else kept

    def go_on(self, last: Toggles) -> list[str]:
        """Take over where `last` stood; return a sentence for each toggle that a new start replaces."""
        before, now, replaced = last.start.flat(), self.start.flat(), []
        kept = {key: value for key, value in last.changes.items() if before[key] == now[key]}
        for key, toggled in last.changes.items():
            if key not in kept and toggled != now[key]:
                replaced.append(f"{key} starts as {now[key]} now, which replaces {toggled}.")
        self.now = self.start.override(kept)
        self.pinned, self._before, self._last = last.pinned, last._before, last._last
        return replaced

    def label(self, config: PipelineConfig) -> str:
        """Write a setting for people: what differs from the start."""
        return variant_label(config.differing(self.start)) or "as it started"


def _each_once(settings: Iterable[PipelineConfig]) -> tuple[PipelineConfig, ...]:
    return tuple({setting.identity: setting for setting in settings}.values())
