"""What the shell offers after Tab: data sets, experiments, runs, and settings. Where nothing fits, it offers files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin


def datasets(incomplete: str) -> list[str]:
    """Return the names of data sets that begin so."""
    from rag_lab.data.dataset import list_datasets

    return [name for name, _ in list_datasets() if name.startswith(incomplete)]


def experiments(incomplete: str) -> list[str]:
    """Return the experiment files, here and in `experiments/`, whose path begins so."""
    folder = incomplete.rpartition("/")[0] or "."
    found = [path for place in {folder, "experiments"} for path in Path(place).glob("*.y*ml")]
    return sorted(str(path) for path in found if str(path).startswith(incomplete))


def runs(incomplete: str) -> list[str]:
    """Return the run folders in `results/` whose path begins so."""
    found = (str(plan.parent) for plan in Path("results").glob("*/plan.json"))
    return sorted(path for path in found if path.startswith(incomplete))


def settings(incomplete: str) -> list[tuple[str, str]]:
    """Return each setting that begins so, `key=value`, with what it is: every choice, or the default where any goes."""
    from rag_lab.config import PipelineConfig

    offered = []
    for section, of_section in PipelineConfig.model_fields.items():
        fields = getattr(of_section.annotation, "model_fields", {})
        for name, field in fields.items():
            offered += [(f"{section}.{name}={value}", field.description or "") for value in _values(field)]
    return [(setting, what) for setting, what in offered if setting.startswith(incomplete)]


def _values(field: Any) -> list[str]:
    if field.annotation is bool:
        return ["true", "false"]
    default = field.get_default(call_default_factory=True)
    if isinstance(default, dict):
        return []
    modules = [name for each in field.metadata if hasattr(each, "names") for name in each.names()]
    return modules or list(map(str, _choices(field.annotation))) or [str(default)]


def _choices(annotation: Any) -> list[Any]:
    """Return the values that a type names, also where it joins several such types."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]
