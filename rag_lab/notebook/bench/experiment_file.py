"""Settings of the bench as variants of an experiment file, which `rag-lab sweep` runs.

A file that is there is extended, its comments and order kept: lines are added to its `variants`, and what comes of it
is read before it takes the place of the old one.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rag_lab._kit.config_file import read_mapping
from rag_lab._kit.digest import whole_file
from rag_lab.config import PipelineConfig, nested
from rag_lab.errors import ConfigError
from rag_lab.experiment.config import read_experiment
from rag_lab.experiment.design import ExperimentError, variant_id

BASELINE = "start"
_UNSAFE = re.compile(r"[^a-z0-9_-]+")


def add_variants(
    path: Path, settings: Sequence[PipelineConfig], dataset: str, metrics: Sequence[str], question: str
) -> list[str]:
    """Write the settings into the experiment file at `path` as variants of a list; return the names of those added.

    What is a variant there already is not added again. A new file has the first setting as its base and its baseline,
    and names `dataset`, `metrics` and `question`. A file that cannot be extended stays as it was.
    """
    if path.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"An experiment is a YAML file, got {str(path)!r}; name one that ends in .yaml.")
    base, known = _read(path) if path.exists() else (settings[0], {})
    added: dict[str, dict[str, Any]] = {}
    for setting in settings:
        if setting.identity not in {one.identity for one in known.values()}:
            changes = setting.differing(base)
            label = variant_id(changes, changes) if changes else BASELINE
            stem = name = _UNSAFE.sub("-", label.lower()).strip("-_")[:58] or "variant"
            n = 1
            while name in known:
                n += 1
                name = f"{stem}-{n}"
            known[name], added[name] = setting, changes
    if added:
        name = _UNSAFE.sub("-", path.stem.lower()).strip("-_")[:64] or "bench"
        start = nested(base.differing())
        head = {"name": name, "question": question, "dataset": dataset, "base": start, "design": "list"}
        old = f"{_dumped(head | {'metrics': list(metrics)})}variants:\n"
        if path.exists():
            old = path.read_text(encoding="utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(
            path
        ) as partial:  # takes the place of the old one, if it reads as the variants that are expected
            partial.write_text(_extended(old, added), encoding="utf-8")
            read_mapping(partial)
            try:
                found = _read(partial)[1]
            except ConfigError as error:
                raise ConfigError(f"{path} stays as it was: {str(error).replace(str(partial), str(path))}") from None
            if found != known:
                raise ConfigError(f"{path} stays as it was: its `variants:` must be a block, one name a line.")
    return list(added)


def _read(path: Path) -> tuple[PipelineConfig, dict[str, PipelineConfig]]:
    """Return the base and the variants of an experiment that is a list."""
    draft = read_experiment(path)
    if draft.problems:
        raise ExperimentError(str(path), draft.problems)
    if draft.config.design != "list":
        raise ConfigError(
            f"{path} has the design {draft.config.design}, whose variants its factors make; name a file whose design "
            "is list, or one that is not there."
        )
    return draft.config.base, dict(draft.config.variants)


def _extended(text: str, added: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text with lines added at the end of its block `variants`, indented as those that are there."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if re.match(r"variants:\s*(#.*)?$", line)), None)
    if start is None:
        raise ConfigError("Its `variants:` must begin a block of its own, one name a line, to be extended.")
    block = [n for n in range(start + 1, len(lines)) if lines[n].strip()]
    inside = []
    for n in block:
        if not lines[n][0].isspace():
            break
        inside.append(n)
    names = [lines[n] for n in inside if not lines[n].lstrip().startswith("#")]
    indent = names[0][: len(names[0]) - len(names[0].lstrip())] if names else "  "
    new = [f"{indent}{line}" for line in _dumped({name: dict(keys) for name, keys in added.items()}).splitlines()]
    at = (inside[-1] if inside else start) + 1
    return "\n".join([*lines[:at], *new, *lines[at:]]) + "\n"


def _dumped(data: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=110)
