"""What the shell offers after Tab: data sets, experiments, runs, and settings. Where nothing fits, it offers files.

Typer leaves out what does not begin as the word that is completed; what depends on that word gets it as `incomplete`.
Bash cuts words at `=`, `:` and `@`: they are put together again, as the other shells give them.
"""

import io
import os
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from rag_lab.errors import RagLabError

TABLES = (
    *("scores", "differences", "order", "effects", "evidence", "gain", "front", "routing", "noise", "coverage"),
    *("costs", "race", "failed", "changes"),
)
DESIGNS = ("one_factor", "grid", "fractional", "racing", "staged")  # that vary factors
VARIABLE = "_RAG_LAB_COMPLETE"
_CUTS = "=:@"


def datasets() -> list[str]:
    """Return the names of data sets."""
    from rag_lab.data.dataset import list_datasets

    return [name for name, _ in list_datasets()]


def experiments(incomplete: str) -> list[str]:
    """Return the experiment files, here and in `experiments/`, or in the folder that is begun."""
    folder = incomplete.rpartition("/")[0] or "."
    return sorted(str(path) for place in {folder, "experiments"} for path in Path(place).glob("*.y*ml"))


def runs() -> list[str]:
    """Return the run folders in `results/`."""
    return sorted(str(plan.parent) for plan in Path("results").glob("*/plan.json"))


def variants() -> list[tuple[str, str]]:
    """Return the variants of the experiment on the line, each with what it changes."""
    from rag_lab.experiment.config import read_experiment
    from rag_lab.experiment.design import expand, expand_list

    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""  # not parsed yet
    files = [word for word in line.split() if word.endswith((".yaml", ".yml")) and Path(word).is_file()]
    try:
        config = read_experiment(files[0]).config
        is_list = config.design == "list"
        found = expand_list(config.variants) if is_list else expand(config.base, config.factors, config.design)
    except (RagLabError, IndexError):
        return []
    return [(v.variant_id, v.label) for v in found.variants]


def presets() -> list[str]:
    """Return the presets."""
    from rag_lab.experiment.config import checkout_file

    return sorted(path.stem for path in checkout_file("experiments/presets").glob("*.yaml"))


def metrics(incomplete: str) -> list[str]:
    """Return the metrics behind those of a list that stand there; cut-offs are 10 ranks or 800 tokens."""
    from rag_lab.evaluation.registry import metric_names

    before, comma, _ = incomplete.rpartition(",")
    names = (name.replace("@k", "@10").replace("<n>", "800") for name in metric_names())
    return [f"{before}{comma}{name}" for name in names if "<" not in name]


def factors(incomplete: str) -> list[tuple[str, str]]:
    """Return the settings, with the values that are not listed yet: after `key=a,` comes `key=a,b`."""
    before, comma, _ = incomplete.rpartition(",")
    if not comma:
        return settings()
    key, _, listed = before.partition("=")
    offered = [(setting.removeprefix(f"{key}="), what) for setting, what in settings() if setting.startswith(f"{key}=")]
    return [(f"{before},{value}", what) for value, what in offered if value not in listed.split(",")]


def settings() -> list[tuple[str, str]]:
    """Return each setting, `key=value`, with what it is: every choice, or the default where any goes."""
    from rag_lab.config import PipelineConfig

    offered = []
    for section, of_section in PipelineConfig.model_fields.items():
        for name, field in getattr(of_section.annotation, "model_fields", {}).items():
            default = field.get_default(call_default_factory=True)
            if not isinstance(default, dict):
                modules = [name for each in field.metadata if hasattr(each, "names") for name in each.names()]
                choices = ["true", "false"] if field.annotation is bool else list(map(str, _choices(field.annotation)))
                values = modules or choices or ["null" if default is None else str(default) or "''"]
                offered += [(f"{section}.{name}={value}", field.description or "") for value in values]
    return offered


def _choices(annotation: Any) -> list[Any]:
    """Return the values that a type names, also where it joins several such types."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def complete_bash(app: Callable[[], object]) -> None:
    """Let `app` complete the line that bash has cut, and print what bash can put in."""
    given = os.environ.get("COMP_WORDS", "")
    words, current = whole_words(given.split("\n"), int(os.environ.get("COMP_CWORD") or 0))
    os.environ |= {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(current)}
    typed = words[current] if current < len(words) else ""
    there = max((typed.rfind(cut) for cut in _CUTS), default=-1) + 1
    offered = io.StringIO()
    try:
        with redirect_stdout(offered):
            app()
    finally:
        print("\n".join(line[there:] for line in offered.getvalue().splitlines()))


def whole_words(cut: Sequence[str], current: int) -> tuple[list[str], int]:
    """Return the words of a line as they were typed, and which of them is completed."""
    words: list[str] = []
    place = len(cut)
    joins = False
    for number, word in enumerate(cut):
        is_cut = bool(word) and not word.strip(_CUTS)
        if words and (joins or is_cut):
            words[-1] += word
        else:
            words.append(word)
        if number == current:
            place = len(words) - 1
        joins = is_cut
    return words, min(place, len(words))
