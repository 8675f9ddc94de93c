"""An experiment that was asked for in one line: the mapping that would stand in its file, and the file itself."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from rag_lab._kit.config_file import read_mapping
from rag_lab._kit.digest import short_name, whole_file
from rag_lab._kit.wording import listing
from rag_lab.config import config_of, nested
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError, DatasetError
from rag_lab.evaluation.registry import parse_name
from rag_lab.experiment.config import read_experiment
from rag_lab.experiment.design import variant_id

FOLDER = "experiments"  # where a file is written, if there is such a folder here
METRICS = ("retrieval.ndcg@10", "retrieval.evidence_recall@5", "cost.seconds")
_LONGEST = 56  # of a name, which may get a number
_COMMENTS = {
    "name": "names the run folder",
    "dataset": "a name that rag-lab datasets list shows, or a path",
    "base": "a preset, a YAML file, or the keys that differ from the defaults",
    "factors": "the first value of each is the baseline",
    "design": "one_factor: the baseline left in one factor at a time; grid, fractional, random, racing: combinations",
    "n": "variants that are drawn or tried, the baseline included",
    "metrics": "the first decides",
    "limits": "questions asked and answered, a stratified sample; cost_usd, calls and minutes are limits, too",
    "judge": "for metrics that need one",
}


@dataclass(frozen=True)
class Asked:
    """What a command line asks for; `base` is a preset or a YAML file, `settings` and `factors` are by dotted key.

    `n` is how many variants a design that counts them makes.
    """

    dataset: str
    base: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    factors: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    metrics: Sequence[str] = METRICS
    design: str = "one_factor"
    n: int | None = None
    questions: int | None = None
    answers: int | None = None
    judge: str | None = None

    @property
    def leaves_out_answers(self) -> bool:
        """Whether answers are switched off: no metric reads them, and nothing that is set or varied is about them.

        Without labels there are no metrics, and answers are where a change is seen.
        """
        about = any(key.startswith("answer.") or key == "models.generation" for key in (*self.settings, *self.factors))
        return not (about or self.answers or not self.metrics or any(map(_reads_answers, self.metrics)))

    def experiment(self) -> dict[str, Any]:
        """Return the experiment, without a name."""
        settings = {**self.settings, **({"answer.name": "none"} if self.leaves_out_answers else {})}
        if twice := sorted(set(settings) & set(self.factors)):
            raise ConfigError(f"{listing(twice)} cannot be set and varied at once; take one of the two out.")
        question = f"How good is this pipeline on {Path(self.dataset).name}?"
        if self.factors:
            question = what_changes(list(self.factors))
        built: dict[str, Any] = {"question": question, "dataset": self.dataset}
        base: Any = self.base
        if not self.base:
            base = nested(config_of(self.dataset).override(settings).differing())
        elif settings:  # then all that differs from the defaults
            draft = read_experiment({"name": "x", "question": "x", "dataset": "x", "base": self.base})
            if draft.problems:
                raise ConfigError("; ".join(draft.problems))
            base = nested(draft.config.base.override(settings).differing())
        built |= {"base": base} if base else {}
        if self.factors:
            built |= {"factors": {key: list(values) for key, values in self.factors.items()}, "design": self.design}
            built |= {} if self.n is None else {"n": self.n}
        built |= {"metrics": list(self.metrics)} if self.metrics else {}
        built |= {"judge": self.judge} if self.judge else {}
        limits = {"questions": self.questions, "answers": self.answers}
        limits = {name: n for name, n in limits.items() if n is not None}
        return built | ({"limits": limits} if limits else {})

    @property
    def name(self) -> str:
        """What it is called: the factors, or for one variant the data set and what is set."""
        short = variant_id(dict.fromkeys(self.factors, ""), among=self.factors).replace("-empty", "")
        parts = [short.replace("__", "_and_")] if short else ["run", Path(self.dataset).expanduser().resolve().name]
        if self.settings and not self.factors:
            parts.append(variant_id(self.settings, among=self.settings))
        text = re.sub(r"[^a-z0-9_-]+", "-", "_".join(parts).lower()).strip("-")
        return short_name(text, _LONGEST, parts)


def what_changes(factors: Sequence[str]) -> str:
    """Return the question that an experiment on these factors asks."""
    return f"What {'does' if len(factors) == 1 else 'do'} {listing(factors)} change?"


def usual_metrics(dataset: str) -> tuple[str, ...]:
    """Return what is measured where nobody says what: nothing where no question of the data set has a label."""
    try:
        questions = Dataset.load(dataset).questions
    except DatasetError:  # which the plan tells
        return METRICS
    return METRICS if any(question.is_labelled for question in questions) else ()


def numbered(name: str, fits: Callable[[str], bool]) -> str:
    """Return the first of `name`, `name_2`, … that fits: nothing that is there is written over."""
    return next(one for n in count(1) if fits(one := name if n == 1 else f"{name}_{n}"))


def run_name(name: str, experiment: dict[str, Any]) -> str:
    """Return the name under which `results/` has this experiment already, or none."""
    return numbered(name, lambda one: _is_same_run(Path("results") / one, experiment | {"name": one}))


def file_for(name: str, experiment: dict[str, Any]) -> Path:
    """Return the path of the file that says this experiment already, or of one that can be written."""
    folder = Path(FOLDER) if Path(FOLDER).is_dir() else Path()

    def fits(one: str) -> bool:
        path, whole = folder / f"{one}.yaml", experiment | {"name": one}
        if path.exists():
            return path.is_file() and _holds(path) == whole
        return _is_same_run(Path("results") / one, whole)

    return folder / f"{numbered(name, fits)}.yaml"


def write_file(path: Path, experiment: Mapping[str, Any], command: str) -> None:
    """Write an experiment as a file with a comment on each key, which `rag-lab sweep` takes."""
    lines = [f"# Written by `{command}`; change it as you like.\n"]
    for key, value in experiment.items():
        comment = f"  # {_COMMENTS[key]}" if key in _COMMENTS else ""
        if isinstance(value, Mapping):
            lines += [f"{key}:{comment}\n", *(f"  {inner}: {_in_one_line(each)}\n" for inner, each in value.items())]
        else:
            lines.append(f"{key}: {_in_one_line(value)}{comment}\n")
    try:
        with whole_file(path) as partial:
            partial.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}; change to a folder that may be written.") from None


def _in_one_line(value: Any) -> str:
    written: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=True, width=10_000)
    return written.strip().removesuffix("\n...")


def _reads_answers(metric: str) -> bool:
    try:
        return parse_name(metric).info.reads_answers
    except ConfigError:  # which the plan says
        return False


def _holds(path: Path) -> Any:
    try:
        return read_mapping(path)
    except ConfigError:
        return None


def _is_same_run(run: Path, experiment: Mapping[str, Any]) -> bool:
    """Tell whether a folder is free, or holds a run of this experiment."""
    if not run.exists():
        return True
    kept = run / "experiment.yaml"
    return kept.is_file() and _holds(kept) == yaml.safe_load(read_experiment(experiment).config.to_yaml())
