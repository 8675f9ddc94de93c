"""`PipelineConfig`: one variant of the pipeline as a value. Unknown keys are refused, dotted keys change it.

Two configurations that produce the same output have the same `identity`; key order does not matter.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import yaml
from pydantic import Field, ValidationError

from rag_lab._kit.config_file import read_mapping
from rag_lab._kit.digest import digest
from rag_lab._kit.section import MAX_SEED, Section, faults
from rag_lab._kit.wording import listing
from rag_lab.corpus.config import CorpusConfig
from rag_lab.data.dataset import Dataset, find_dataset, is_dataset
from rag_lab.errors import ConfigError, DatasetError, unknown_name
from rag_lab.models.config import ModelsConfig
from rag_lab.rich_display import rich_display
from rag_lab.stages import config as sections
from rag_lab.stores.config import StoreConfig

PIPELINE_FILE = "pipeline.yaml"  # of a data set
_NOT_OF_A_DATASET = ("models.", "prompts.")


class Origin(NamedTuple):
    """What a configuration was made from."""

    name: str  # of the file; "" for the defaults
    values: Mapping[str, Any]  # by dotted key


class Change(NamedTuple):
    """A key whose value is another one than where a configuration came from."""

    key: str
    value: Any
    before: Any


@rich_display("rag_lab.notebook.views.pipeline_view:config_view")
class PipelineConfig(Section):
    """One variant of the pipeline."""

    corpus: CorpusConfig = CorpusConfig()
    store: StoreConfig = StoreConfig()
    models: ModelsConfig = ModelsConfig()
    prompts: sections.PromptsConfig = sections.PromptsConfig()
    conversation: sections.ConversationConfig = sections.ConversationConfig()
    query: sections.QueryConfig = sections.QueryConfig()
    retrieval: sections.RetrievalConfig = sections.RetrievalConfig()
    rerank: sections.RerankConfig = sections.RerankConfig()
    select: sections.SelectConfig = sections.SelectConfig()
    answer: sections.AnswerConfig = sections.AnswerConfig()
    agent: sections.AgentConfig = sections.AgentConfig()
    seed: int = Field(0, ge=0, le=MAX_SEED, description="seed of every sampled reply; the repeat number is added")
    on_truncation: Literal["count", "refuse"] = Field(
        "count", description="what a model is sent beyond what it reads: counted and told, or refused"
    )

    @property
    def searches_vectors(self) -> bool:
        """Whether a search compares embeddings: by question, or by hypothetical document."""
        return "dense" in self.retrieval.weights or self.query.hyde != "none"

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "PipelineConfig":
        """Validate nested `data`."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise ConfigError(faults(error, "parameter", dotted_keys())) from None

    @classmethod
    def load(cls, path: Path | str) -> "PipelineConfig":
        """Read a YAML file (an empty one is the default pipeline)."""
        loaded = cls.parse(read_mapping(path))
        return loaded._made_from(Origin(Path(path).name, loaded.flat()))

    def override(self, changes: Mapping[str, Any]) -> "PipelineConfig":
        """Return a copy with dotted keys changed: `{"rerank.name": "none"}`."""
        data = self.model_dump()
        problems = [unknown_name("parameter", key, dotted_keys()) for key in changes if key not in dotted_keys()]
        if problems:
            raise ConfigError("; ".join(problems))
        for key, value in changes.items():
            section, _, name = key.rpartition(".")
            (data[section] if section else data)[name] = value
        return self.parse(data)._made_from(self.origin)

    def flat(self) -> dict[str, Any]:
        """Return the configuration as dotted keys, in the order of the sections."""
        data, found = self.model_dump(), {}
        for key in dotted_keys():
            section, _, name = key.rpartition(".")
            found[key] = data[section][name] if section else data[name]
        return found

    @cached_property
    def origin(self) -> Origin:
        """The file from which it was loaded, also where keys were changed since; else the defaults."""
        return Origin("", PipelineConfig().flat())

    def changes(self) -> list[Change]:
        """Return the keys in which it differs from its origin, in the order of the sections."""
        before = self.origin.values
        return [Change(key, value, before[key]) for key, value in self.flat().items() if value != before[key]]

    def differing(self, base: "PipelineConfig | None" = None) -> dict[str, Any]:
        """Return the dotted keys in which it differs from `base` (None: the defaults), with its values."""
        before = (base or PipelineConfig()).flat()
        return {key: value for key, value in self.flat().items() if value != before[key]}

    def to_yaml(self) -> str:
        """Return the YAML that `load` reads back to an equal configuration."""
        return yaml.safe_dump(self.model_dump(), sort_keys=False)

    @property
    def identity(self) -> str:
        """Return a digest of the whole configuration, the same for any key order."""
        return digest(self.model_dump())

    def __repr__(self) -> str:
        """Return what differs from the defaults: two configurations that are equal have one."""
        return f"PipelineConfig({', '.join(f'{key}={value!r}' for key, value in self.differing().items())})"

    def _made_from(self, origin: Origin) -> "PipelineConfig":
        vars(self)["origin"] = origin  # where a cached property keeps its value: no field, and so no part of equality
        return self


SECTIONS: dict[str, type[Section]] = {
    name: info.annotation
    for name, info in PipelineConfig.model_fields.items()
    if isinstance(info.annotation, type) and issubclass(info.annotation, Section)
}


def config_of(documents: Any) -> PipelineConfig:
    """Return the pipeline that a data set names in pipeline.yaml; the defaults where it, or documents, name none.

    A data set may come from anybody, so its file chooses among what is built in or installed.
    """
    if not isinstance(documents, str | Path | Dataset):
        return PipelineConfig()
    try:
        folder = documents.path if isinstance(documents, Dataset) else find_dataset(documents)
    except DatasetError:  # which is said where its documents are read
        return PipelineConfig()
    path = folder / PIPELINE_FILE
    if not (is_dataset(folder) and path.is_file()):
        return PipelineConfig()
    config = PipelineConfig.load(path)
    values = config.differing().items()
    foreign = [
        key for key, value in values if key.startswith(_NOT_OF_A_DATASET) or any(":" in t for t in _texts(value))
    ]
    if foreign:
        raise ConfigError(
            f"{path} sets {listing(foreign)}: of a data set only built-in modules are taken, and no models, prompts or "
            "servers. Set these by --set, or in an experiment."
        )
    return config


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as the sections of a configuration file: `{"corpus": {"chunk_size": 400}}`."""
    sections: dict[str, Any] = {}
    for key, value in settings.items():
        *path, name = key.split(".")
        inner = sections
        for part in path:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return sections


def module_problems(configs: Iterable[PipelineConfig]) -> list[str]:
    """Return why modules that these configurations name cannot be used here, a sentence each.

    They are imported to find out; where a configuration is only read, nothing is.
    """
    kinds = module_kinds()
    named = {(key, text) for config in configs for key in kinds for text in _texts(config.flat()[key])}
    return [f"{key}: {problem}" for key, text in sorted(named) if (problem := kinds[key].problem(text))]


def module_kinds() -> dict[str, Any]:
    """Return the keys that name a module, each with its kind, as the fields of the sections are annotated."""
    found: dict[str, Any] = {}
    for name, section in SECTIONS.items():
        for inner, field in section.model_fields.items():
            of_values = [rule for part in get_args(field.annotation) for rule in getattr(part, "__metadata__", ())]
            kinds = (rule for rule in (*field.metadata, *of_values) if hasattr(rule, "problem"))
            found |= {f"{name}.{inner}": kind for kind in kinds}
    return found


def choices_of(key: str, value: Any) -> list[Any]:
    """Return the values that a key of few values may have in place of `value`; none of one that takes any."""
    section, _, name = key.rpartition(".")
    info = (SECTIONS[section] if section else PipelineConfig).model_fields[name]
    kinds = [rule for rule in info.metadata if hasattr(rule, "names")]
    choices = [True, False] if info.annotation is bool else list(get_args(info.annotation))
    if kinds:
        choices = kinds[0].names()
    elif info.annotation is int and value == 0:
        choices = [1]
    return [one for one in choices if one != value and isinstance(one, str | bool | int)]


def _texts(value: Any) -> list[str]:
    values = value.values() if isinstance(value, Mapping) else [value]
    return [one for one in values if isinstance(one, str)]


def dotted_keys() -> list[str]:
    """Return every key that `override` knows."""
    keys = []
    for name in PipelineConfig.model_fields:
        keys += [f"{name}.{inner}" for inner in SECTIONS[name].model_fields] if name in SECTIONS else [name]
    return keys
