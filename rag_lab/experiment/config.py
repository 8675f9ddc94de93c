"""The experiment file: a question, a base pipeline, and the factors that are varied around it.

Presets and the variant's notebook are those that people edit in the checkout, else the package's own copies.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import yaml
from pydantic import Field, ValidationInfo, field_validator

import rag_lab
from rag_lab._kit.config_file import read_mapping, read_shipped
from rag_lab._kit.section import MAX_SEED, Section, complaint_and_value, key_of
from rag_lab._kit.wording import listing
from rag_lab.config import PipelineConfig
from rag_lab.data.sampling import CLUSTER_RULE, CLUSTER_RULES
from rag_lab.errors import ConfigError, RagLabError, unknown_name
from rag_lab.evaluation import registry
from rag_lab.experiment.built_in_designs import DESIGNS_OF, MIN_ROUND, N_MISSING, RACING, RESOLUTIONS, RaceConfig
from rag_lab.experiment.design import DESIGNS, MAX_VARIANTS, ExperimentError
from rag_lab.runs.run_folder import MAX_METRICS, MAX_REPEATS, Claim

Pairs = tuple[tuple[str, str], ...]  # (variant, against)
PAIRS_RULE = "must be `all`, `baseline`, or a list of pairs of variants, as [[b, a]]"
SAYS: dict[str, str] = read_shipped(Path(__file__).with_name("sentences.yaml"))  # templates of longer sentences
SAID: dict[str, str] = read_shipped(Path(__file__).with_name("settings.yaml"))  # what settings mean
_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"

# In place of a field that is missing or wrong, so that the rest of the file can still be checked.
_PLACEHOLDERS = {"name": "unnamed", "question": "?", "dataset": "?"}


class Limits(Section):
    """How much of the dataset is used, and how much the sweep may use up, all its starts together; null is no limit."""

    questions: int | None = Field(None, ge=1, le=10_000_000, description="questions asked, a stratified sample")
    answers: int | None = Field(None, ge=0, le=10_000_000, description=SAID["Limits.answers"])
    cost_usd: float | None = Field(None, gt=0, le=1e9, description="dollars for chat models, by the price table")
    calls: int | None = Field(None, ge=1, le=10**12, description="calls of chat models, the judge's included")
    minutes: float | None = Field(None, gt=0, le=1e9, description="minutes that the sweep runs")


class ExperimentConfig(Section):
    """What is asked, and which variants are to answer it. The first value of each factor is the baseline."""

    name: str = Field(description="names the run folder")
    question: str = Field(min_length=1, description="what the experiment is to find out")
    dataset: str = Field(min_length=1, description="a name under datasets/, or a path from the file")
    base: PipelineConfig = Field(PipelineConfig(), description="a YAML file, the name of a preset, or the keys")
    factors: dict[str, list[Any]] = Field(default_factory=dict, description="dotted keys and their values")
    variants: dict[str, PipelineConfig] = Field(default_factory=dict, description=SAID["ExperimentConfig.variants"])
    design: Annotated[str, pydantic.AfterValidator(DESIGNS.check), DESIGNS] = Field(
        "one_factor", description=SAID["ExperimentConfig.design"]
    )
    n: int | None = Field(None, ge=1, le=MAX_VARIANTS, description=SAID["ExperimentConfig.n"])
    resolution: int | None = Field(
        None, ge=RESOLUTIONS[0], le=RESOLUTIONS[1], description=SAID["ExperimentConfig.resolution"]
    )
    only_if: dict[str, dict[str, list[Any]]] = Field(default_factory=dict, description=SAID["ExperimentConfig.only_if"])
    choose: int | None = Field(None, ge=MIN_ROUND, le=10_000_000, description=SAID["ExperimentConfig.choose"])
    objectives: list[str] = Field(default_factory=list, description=SAID["ExperimentConfig.objectives"])
    sampler: Literal["tpe", "nsga2"] | None = Field(None, description="of `optuna`; tpe where null")
    only: list[str] = Field(default_factory=list, description=SAID["ExperimentConfig.only"])
    repeats: int = Field(1, ge=1, le=MAX_REPEATS, description="how often each question is asked")
    metrics: list[str] = Field(
        default_factory=list, max_length=MAX_METRICS, description=SAID["ExperimentConfig.metrics"]
    )
    margin: dict[str, Annotated[float, pydantic.Strict(), Field(ge=-1e9, le=1e9)]] = Field(
        default_factory=dict, description=SAID["ExperimentConfig.margin"]
    )
    strict: bool = Field(False, description="one 5% for all that is concluded: 4% for what is primary, 1% for the rest")
    pairs: str | Pairs | None = Field(None, description=SAID["ExperimentConfig.pairs"])
    judge: str | None = Field(None, description=SAID["ExperimentConfig.judge"])
    clusters: str = Field("none", description=f"questions that are not independent of each other: {CLUSTER_RULES}")
    judge_language: str = Field("", max_length=40, description=SAID["ExperimentConfig.judge_language"])
    limits: Limits = Limits()
    seed: int = Field(0, ge=0, le=MAX_SEED, description="chooses the questions where limits leave some out")
    race: RaceConfig | None = Field(None, description="rounds of the design `racing`; its defaults where null")
    claims: list[Claim] = Field(default_factory=list, max_length=1000, description=SAID["ExperimentConfig.claims"])

    @pydantic.model_validator(mode="before")
    @classmethod
    def _further_judges_are_metrics(cls, data: Any) -> Any:
        judge, metrics = (data.get("judge"), data.get("metrics")) if isinstance(data, dict) else (None, None)
        if not isinstance(judge, list) or not all(isinstance(one, str) for one in [*judge, *(metrics or [])]):
            return data
        names, first = registry.with_judges(metrics or [], judge)
        return data | {"metrics": list(names), "judge": first}

    @property
    def judges(self) -> list[str]:
        """The models that judge: that of the run, and those that metrics name."""
        named = (metric.partition(registry.BY)[2] for metric in self.metrics if registry.find_info(metric))
        return list(dict.fromkeys(filter(None, [self.judge, *named])))

    @field_validator("name", "clusters", "variants", "factors")
    @classmethod
    def _keeps_its_rule(cls, value: Any, info: ValidationInfo) -> Any:
        rule = ""
        if info.field_name == "name" and not re.fullmatch(_NAME, value):
            rule = "must be small letters, digits, - and _, at most 64, since it names the run folder"
        elif info.field_name == "clusters" and not CLUSTER_RULE.fullmatch(value):
            rule = f"must be {CLUSTER_RULES}"
        elif info.field_name == "variants" and (unsafe := [name for name in value if not re.fullmatch(_NAME, name)]):
            rule = f"a variant's name is small letters, digits, - and _, at most 64; not {', '.join(unsafe)}"
        elif info.field_name == "factors" and (empty := [key for key, values in value.items() if not values]):
            rule = f"a factor needs at least one value; none given for {', '.join(empty)}"
        if rule:
            raise ValueError(rule)
        return value

    @field_validator("margin", "pairs", mode="before")
    @classmethod
    def _has_its_form(cls, value: Any, info: ValidationInfo) -> Any:
        if info.field_name == "margin":
            if not isinstance(value, Mapping):
                raise ValueError("must name the metric of each, as in {retrieval.ndcg@5: 0.05}")
            return value
        if value is None or value in ("all", "baseline"):
            return None if value is None else str(value)
        pairs = value if isinstance(value, list | tuple) else ()
        is_pair = [isinstance(one, list | tuple) and [type(name) for name in one] == [str, str] for one in pairs]
        if not pairs or not all(is_pair):
            raise ValueError(PAIRS_RULE)
        return tuple((variant, against) for variant, against in pairs)

    @pydantic.field_serializer("variants")
    def _as_changed_keys(self, value: dict[str, PipelineConfig]) -> dict[str, dict[str, Any]]:
        return {name: config.flat() for name, config in value.items()}

    @classmethod
    def load(cls, path: Path | str) -> "ExperimentConfig":
        """Read an experiment file."""
        draft = read_experiment(path)
        if draft.problems:
            raise ExperimentError(str(path), draft.problems)
        return draft.config

    def to_yaml(self) -> str:
        """Return the YAML that `load` reads back to an equal experiment; the base stands in it in full."""
        return yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)


@dataclass(frozen=True, slots=True)
class Draft:
    """An experiment file as far as it could be read, and what is wrong with it. Fields in `broken` are placeholders."""

    config: ExperimentConfig
    problems: tuple[str, ...]
    broken: frozenset[str]


Given = Path | str | Mapping[str, Any] | ExperimentConfig  # an experiment: its file, what would stand in it, or itself


def folder_of(experiment: Given) -> Path:
    """Return the folder beside which an experiment's files and modules are looked for."""
    return Path(experiment).parent if isinstance(experiment, Path | str) else Path()


def read_experiment(experiment: Given) -> Draft:
    """Read as much of an experiment as can be read, so that all of its mistakes are found in one go.

    A ConfigError where a file cannot be read at all, or an object stands where kernels need a name.
    """
    if not isinstance(experiment, Path | str):
        _refuse_objects(experiment)
    if isinstance(experiment, ExperimentConfig):
        return Draft(experiment, tuple(_design_problems(experiment)), frozenset())
    data = dict(experiment) if isinstance(experiment, Mapping) else read_mapping(experiment)
    folder, problems, broken = folder_of(experiment), list[str](), set[str]()
    if "base" in data:
        try:
            data["base"] = _pipeline(data["base"], folder)
        except ConfigError as error:
            problems.append(f"base: {error}")
            broken.add("base")
            del data["base"]
    if isinstance(data.get("variants"), Mapping):
        base, variants = data.get("base", PipelineConfig()), {}
        for name, value in data["variants"].items():
            try:  # dotted keys change the base
                variants[str(name)] = base.override(value) if isinstance(value, Mapping) else _pipeline(value, folder)
            except ConfigError as error:
                problems.append(f"variants.{name}: {error}")
                broken.add("variants")
        data["variants"] = variants
    try:
        config = ExperimentConfig.model_validate(data)
    except pydantic.ValidationError as error:
        problems += [_sentence(detail) for detail in error.errors()]
        broken |= {str(detail["loc"][0]) for detail in error.errors()}
        whole = {key: value for key, value in data.items() if key not in broken}
        config = ExperimentConfig.model_validate(_PLACEHOLDERS | whole)
    if not broken & {"design", "variants", "factors"}:
        problems += _design_problems(config)
    return Draft(config, tuple(problems), frozenset(broken))


def _refuse_objects(value: Any) -> None:
    """Refuse what lives in this process alone: a sweep runs its variants in other kernels."""
    if isinstance(value, Section):
        value = value.model_dump()
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            _refuse_objects(inner)
    elif not isinstance(value, str | int | float | bool | Path | None):
        raise ConfigError(SAYS["object"].format(value=value))


def _design_problems(config: ExperimentConfig) -> list[str]:
    """Return a sentence for each key that says nothing to this design, or what it does not take."""
    design, pipelines, pairs = config.design, config.variants, config.pairs
    if design == "list" and (config.factors or not pipelines):
        return ["design: list runs the pipelines under `variants`, at least one, and takes no factors"]
    problems, seen = list[str](), list[set[str]]()
    if pairs is not None and design != "list":
        problems.append(f"pairs: names variants of the design list, got the design {design}; take it out.")
    elif isinstance(pairs, tuple):
        names = dict.fromkeys(name for pair in pairs for name in pair)
        problems += [f"pairs: {unknown_name('variant', name, pipelines)}" for name in names if name not in pipelines]
        for variant, against in pairs:
            if variant == against:
                problems.append(f"pairs: {variant} is paired with itself; name two variants.")
            elif {variant, against} in seen:
                problems.append(f"pairs: {variant} and {against} are named twice; name each pair once.")
            seen.append({variant, against})
    problems += [
        f"{key}: belongs to the design {listing(list(designs)).replace(' and ', ' or ')}, got {design}; take it out."
        for key, designs in DESIGNS_OF.items()
        if getattr(config, key) not in (None, []) and design not in designs
    ]
    if config.only_if and pipelines:
        problems.append("only_if: holds between factors, and the pipelines under `variants` are run as they are.")
    if design in N_MISSING and config.n is None:
        problems.append(N_MISSING[design])
    if pipelines and design not in ("list", RACING):
        problems.append(f"variants: run by design list or racing, got {design}; the others run `factors`")
    elif pipelines and config.factors:
        problems.append("design: racing takes the pipelines under `variants` or those that `factors` make, not both")
    if config.race is not None and design != RACING:
        problems.append(f"race: belongs to the design racing, got {design}")
    return problems


def _pipeline(value: Any, folder: Path) -> PipelineConfig:
    """Read a pipeline by its keys, its file or the name of a preset; those of `folder` come before the checkout's."""
    if isinstance(value, Mapping):
        sections = {key: one for key, one in value.items() if "." not in str(key)}
        return PipelineConfig.parse(sections).override({key: one for key, one in value.items() if key not in sections})
    if not isinstance(value, str):
        raise ConfigError(f"must be a YAML file, the name of a preset, or a mapping of keys, got {value!r}")
    presets, is_file = checkout_file("experiments/presets"), value.endswith((".yaml", ".yml"))
    name = value if is_file else f"presets/{value}.yaml"
    places = [folder / name, presets.parent / name]
    if found := next((path for path in places if path.is_file()), None):
        return PipelineConfig.load(found)
    if not is_file:
        raise ConfigError(unknown_name("preset", value, [known.stem for known in presets.glob("*.yaml")]))
    looked = " and ".join(dict.fromkeys(str(path.resolve().parent) for path in places))
    raise ConfigError(f"there is no {value}: looked in {looked}; give a path from the experiment's folder.")


def _sentence(detail: Any) -> str:
    key = key_of(detail)
    if detail["type"] == "missing":
        return f"{key}: missing; {ExperimentConfig.model_fields[key].description}"
    if detail["type"] != "extra_forbidden":
        return f"{key}: {complaint_and_value(detail)}"
    section = key.partition(".")[0]
    inner: dict[str, type[Section]] = {"limits": Limits, "race": RaceConfig}
    if section == key or section not in inner:
        return unknown_name("key", key, list(ExperimentConfig.model_fields))
    return unknown_name("key", key, [f"{section}.{name}" for name in inner[section].model_fields])


_PACKAGE = Path(rag_lab.__file__).parent
NOTEBOOK = "notebooks/02_run_variant.ipynb"  # which runs a variant
PACKAGED = {"experiments/presets": _PACKAGE / "experiment/presets", NOTEBOOK: _PACKAGE / "experiment/run/variant.ipynb"}


def checkout_file(name: str) -> Path:
    """Return the path of `name` (with forward slashes) in the checkout, below the current folder, or in the package."""
    places = [_PACKAGE.parent / name, Path.cwd() / name, *([PACKAGED[name]] if name in PACKAGED else [])]
    if found := next((path for path in places if path.exists()), None):
        return found
    raise RagLabError(f"Cannot find {name}: run from a checkout of rag_lab, or install it with `pip install -e`.")
