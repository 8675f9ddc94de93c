"""The toggles: the fields of the configuration in the boxes of the drawn pipeline, and settings of them in a file.

The fields are read off the configuration's own sections, so a new one appears in the box of its section by itself.
Settings become variants of an experiment file, which `rag-lab sweep` runs. A file that is there is extended, its
comments and order kept: lines are added to its `variants`, and what comes of it is read before it takes the place of
the old one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import yaml
from pydantic.fields import FieldInfo

from rag_lab._kit.config_file import parse_yaml, read_mapping, read_shipped
from rag_lab._kit.digest import whole_file
from rag_lab.config import PipelineConfig, dotted_keys, nested
from rag_lab.errors import ConfigError
from rag_lab.experiment.config import read_experiment
from rag_lab.experiment.design import ExperimentError, variant_id, variant_label
from rag_lab.stages.steps import STEPS

FieldKind = Literal["choice", "module", "flag", "flags", "int", "float", "text", "yaml"]


@dataclass(frozen=True, slots=True)
class Box:
    """One box of the drawing. A key belongs to the box that has the longest beginning of it among its `keys`.

    `mains` are the switches that are always seen; the box is off where all of them stand at `none`.
    """

    name: str
    title: str
    mains: tuple[str, ...]
    keys: tuple[str, ...]
    is_stage: bool = True


BOXES = tuple(
    Box(name, one["title"], tuple(one["mains"]), tuple(one["keys"]), one.get("is_stage", True))
    for name, one in read_shipped(Path(__file__).with_suffix(".yaml")).items()
)
_BY_NAME = {box.name: box for box in BOXES}


@dataclass(frozen=True, slots=True)
class Field:
    """One toggle: how it is shown, and what it may be."""

    key: str
    label: str
    kind: FieldKind
    help: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


@cache
def fields() -> Mapping[str, Field]:
    """Return every field of the configuration by its dotted key, in the order of the sections."""
    found = {}
    for key in dotted_keys():
        info = _info(key)
        kind, choices = _kind(info)
        limits = {
            rule: getattr(one, rule) for one in info.metadata for rule in ("ge", "le", "lt") if hasattr(one, rule)
        }
        section, _, name = key.rpartition(".")
        is_at_home = any(main.startswith(f"{section}.") for main in box_of(key).mains)
        label = (name if is_at_home or not section else key.replace(".", " ")).replace("_", " ")
        high = limits.get("le", limits.get("lt"))
        found[key] = Field(key, label, kind, info.description or "", choices, limits.get("ge"), high)
    return found


def fields_of(box: Box) -> list[Field]:
    """Return the fields of a box, its main switches first."""
    mine = [field for key, field in fields().items() if box_of(key) is box]
    return sorted(mine, key=lambda field: box.mains.index(field.key) if field.key in box.mains else len(box.mains))


def owner_of(key: str, starts: Mapping[str, Sequence[str]]) -> str:
    """Return the name under which the longest beginning of a dotted key stands."""
    return max((len(start), name) for name, known in starts.items() for start in known if key.startswith(start))[1]


def box_of(key: str) -> Box:
    """Return the box to which a dotted key belongs."""
    return _BY_NAME[owner_of(key, {box.name: box.keys for box in BOXES})]


def box_of_stage(stage: str) -> Box | None:
    """Return the box in which a stage's seconds are shown; None for one that nobody knows."""
    names = (stage, "search_dense" if stage.startswith("search_") else stage)  # a custom search has the searches' box
    return next((box_of(step.switches[0]) for step in STEPS if step.name in names), None)


def is_off(box: Box, values: Mapping[str, Any]) -> bool:
    """Tell whether a box does nothing under these values."""
    return all(values[key] == "none" for key in box.mains)


def read(field: Field, value: Any) -> Any:
    """Return what a browser sent as the value of a field: whole numbers as such, and mappings out of their YAML."""
    if field.kind == "yaml" and isinstance(value, str):
        return parse_yaml(value) or {}
    if field.kind == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _info(key: str) -> FieldInfo:
    model: Any = PipelineConfig
    *sections, name = key.split(".")
    for section in sections:
        model = model.model_fields[section].annotation
    info: FieldInfo = model.model_fields[name]
    return info


def _literals(annotation: Any) -> tuple[str, ...]:
    """Return the values of a type that is made of literals alone; none of another."""
    if get_origin(annotation) is Literal:
        return tuple(map(str, get_args(annotation)))
    is_union = get_origin(annotation) in (Union, UnionType)
    parts = [_literals(part) for part in get_args(annotation)] if is_union else []
    return tuple(value for part in parts for value in part) if all(parts) else ()


def _kind(info: FieldInfo) -> tuple[FieldKind, tuple[str, ...]]:
    if choices := _literals(info.annotation):
        return "choice", choices
    if named := [rule for rule in info.metadata if hasattr(rule, "names")]:
        return "module", tuple(named[0].names())
    default = info.get_default(call_default_factory=True)
    if isinstance(default, Mapping):
        flags = bool(default) and all(isinstance(value, bool) for value in default.values())
        return ("flags", tuple(default)) if flags else ("yaml", ())
    kinds: dict[Any, FieldKind] = {bool: "flag", int: "int", float: "float"}
    return kinds.get(info.annotation, "text"), ()


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
        """Change toggles by their dotted keys; all that are unknown or impossible are named, and nothing changed."""
        try:
            given = {key: read(fields()[key], value) if key in fields() else value for key, value in changes.items()}
        except ValueError as error:
            raise ConfigError(f"{', '.join(changes)}: {error}") from None
        config = self.now.override(given)
        values = config.flat()
        problems = []
        for key in given:
            kinds = [rule for rule in _info(key).metadata if hasattr(rule, "problem")]
            if kinds and isinstance(values[key], str) and (problem := kinds[0].problem(values[key])):
                problems.append(f"{key}: {problem}")
        if problems:
            raise ConfigError("; ".join(problems))
        self.now = config

    def ran(self, setting: PipelineConfig) -> None:
        """Take a setting, which came to its end, for the one that was run last."""
        if setting != self._last:
            self._before, self._last = self._last, setting

    @property
    def side_by_side(self) -> tuple[PipelineConfig, ...]:
        """The settings that belong side by side, each once: the pinned, the one that was run before, the newest."""
        before = self._before if self.now == self._last else self._last
        return tuple({one.identity: one for one in (*self.pinned, before, self.now)}.values())

    def pin(self, config: PipelineConfig) -> None:
        """Keep a setting beside all that is run later; one that is pinned is let go."""
        kept = tuple(one for one in self.pinned if one != config)
        self.pinned = (*self.pinned, config) if len(kept) == len(self.pinned) else kept

    def go_on(self, last: "Toggles") -> list[str]:
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
