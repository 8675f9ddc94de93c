"""`PipelineConfig`: one variant of the pipeline as a value. Unknown keys are refused, dotted keys change it.

Two configurations that produce the same output have the same `identity`; key order does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from rag_lab.digest import digest
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.records import QUERY_CLASSES, QueryClass
from rag_lab.redaction import holds_secret
from rag_lab.retrieval.config import RetrievalConfig, SelectConfig
from rag_lab.section import MAX_SEED, Section
from rag_lab.stores.names import StoreName, store_url_problem
from rag_lab.validation import complaint_and_value, key_of
from rag_lab.yaml_file import read_mapping


class CorpusConfig(Section):
    """How files become parents and children."""

    pdf: Literal["text", "tables", "pdfium", "vision"] = Field(
        "text",
        description="PDF pages as text, with ruled tables as Markdown, as text without PyMuPDF (AGPL), or as a "
        "multimodal model reads them",
    )
    vision_dpi: int = Field(150, ge=36, le=600, description="resolution at which a page is shown to models.vision")
    vision_min_score: float = Field(
        0.5, ge=0, le=1, description="likeness to the text layer below which the model's reading is not used"
    )
    splitter: Literal["recursive", "sentences", "markdown", "semantic"] = Field(
        "recursive", description="where children are cut"
    )
    chunk_size: int = Field(800, ge=50, le=20_000, description="characters of a child chunk (not of `sentences`)")
    chunk_overlap: int = Field(150, ge=0, lt=20_000, description="characters that neighbouring children share")
    chunk_words: int = Field(100, ge=5, le=5000, description="words of a child of the sentence splitter")
    overlap_words: int = Field(20, ge=0, lt=5000, description="words that its neighbouring children share")
    min_pieces: int = Field(1, ge=1, le=100, description="children it makes of a parent at least, else it cuts words")
    breakpoint_percentile: float = Field(
        95, ge=0, le=100, description="`semantic` cuts where the distance of neighbouring sentences is above this"
    )
    parents: Literal["page", "section", "fixed", "neighbours", "none"] = Field(
        "page", description="what is given to the reader: the page, section, piece or children around a hit"
    )
    parent_size: int = Field(2400, ge=200, le=100_000, description="characters of a parent where it is a piece")
    neighbours: int = Field(1, ge=1, le=20, description="children before and after the hit in its parent")

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> CorpusConfig:
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(f"chunk_overlap must be smaller than chunk_size ({self.chunk_size})")
        if self.overlap_words >= self.chunk_words:
            raise ValueError(f"overlap_words must be smaller than chunk_words ({self.chunk_words})")
        return self


class StoreConfig(Section):
    """Which vector store holds the children."""

    name: StoreName = Field("chroma", description="the vector store")
    url: str = Field("", description="server of the store; empty keeps the vectors in the index's folder")

    @model_validator(mode="after")
    def _url_fits(self) -> StoreConfig:
        problem = store_url_problem(self.name, self.url)
        if problem:
            raise ValueError(problem)
        return self


class ModelsConfig(Section):
    """Which model plays which role, as `provider:name`."""

    embedding: str = Field("sentence_transformers:minilm", description="embeds children and questions")
    understanding: str = Field("llamacpp:smollm2", description="classifies and rewrites the question")
    hyde: str = Field("llamacpp:smollm2", description="writes hypothetical documents")
    generation: str = Field("llamacpp:smollm2", description="answers")
    cross_encoder: str = Field("sentence_transformers:BAAI/bge-reranker-v2-m3", description="reranks")
    likelihood: str = Field("transformers:smollm2", description="causal model of the query_likelihood reranker")
    vision: str = Field("gemini:gemini-2.5-flash", description="reads PDF pages where corpus.pdf is `vision`")

    @field_validator("*")
    @classmethod
    def _names_a_provider(cls, value: str) -> str:
        provider, _, name = value.partition(":")
        if not provider or not name:
            raise ValueError("a model is named provider:name")
        if holds_secret(value):
            raise ValueError("a model name must not hold secrets (set the provider's environment variable instead)")
        return value


class QueryConfig(Section):
    """Query understanding and HyDE."""

    rewrite: Literal["none", "llm"] = Field("llm", description="search the model's rewrite instead of the wording")
    min_similarity: float = Field(0.6, ge=-1, le=1, description="cosine below which a rewrite has drifted")
    hyde: Literal["none", "always", "classified"] = Field("classified", description="when to search by HyDE")
    class_to_hyde: dict[QueryClass, bool] = Field(
        {"specific": False, "fuzzy": True, "comparative": False, "procedural": True, "creative": True},
        description="which classes get HyDE when hyde is `classified`; overrides the model's suggestion",
    )
    phrasings: int = Field(0, ge=0, le=8, description="other phrasings of the question that are searched, too")
    hyde_max_tokens: int = Field(96, ge=8, le=4096, description="length of a hypothetical document")

    @field_validator("class_to_hyde")
    @classmethod
    def _every_class(cls, value: dict[QueryClass, bool]) -> dict[QueryClass, bool]:
        missing = [name for name in QUERY_CLASSES if name not in value]
        if missing:
            raise ValueError(f"class_to_hyde must decide on every class; missing: {', '.join(missing)}")
        return {name: value[name] for name in QUERY_CLASSES}


class RerankConfig(Section):
    """What orders the merged candidates, and how many reach the reader."""

    name: Literal["none", "cross_encoder", "query_likelihood"] = Field("none", description="the reranker")
    input_limit: int = Field(20, ge=1, le=1000, description="candidates after merging")
    passage: Literal["child", "parent"] = Field("child", description="the text that a reranker reads")
    final_k: int = Field(5, ge=1, le=100, description="parents that reach the prompt; the reranker keeps 2 x final_k")
    retrieval_weight: float = Field(
        1.0, ge=0, le=1e6, description="weight of the retrieval score beside the query likelihood"
    )


class AnswerConfig(Section):
    """Context, generation and parsing."""

    name: Literal["none", "llm"] = Field("llm", description="`none` measures retrieval alone")
    context_tokens: int = Field(1200, ge=32, le=2_000_000, description="token budget of the passages, never exceeded")
    context_bytes: int = Field(
        0, ge=0, le=100_000_000, description="budget in bytes of UTF-8, never exceeded either; 0 is none"
    )
    max_tokens: int = Field(160, ge=8, le=200_000, description="length of the reply")
    temperature: float = Field(0.0, ge=0, le=2, description="0 is greedy")
    thinking: bool = Field(False, description="ask for and split off the model's thinking (Qwen3)")
    thinking_tokens: int = Field(2048, ge=16, le=65_536, description="room for thinking, beside the reply's max_tokens")

    @property
    def is_on(self) -> bool:
        """Whether answers are generated."""
        return self.name != "none"


class PipelineConfig(Section):
    """One variant of the pipeline."""

    corpus: CorpusConfig = CorpusConfig()
    store: StoreConfig = StoreConfig()
    models: ModelsConfig = ModelsConfig()
    query: QueryConfig = QueryConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    rerank: RerankConfig = RerankConfig()
    select: SelectConfig = SelectConfig()
    answer: AnswerConfig = AnswerConfig()
    seed: int = Field(0, ge=0, le=MAX_SEED, description="seed of every sampled reply; the repeat number is added")

    @property
    def searches_vectors(self) -> bool:
        """Whether a search compares embeddings: by question, or by hypothetical document."""
        return "dense" in self.retrieval.weights or self.query.hyde != "none"

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> PipelineConfig:
        """Validate nested `data`.

        Raises:
            ConfigError: naming every unknown key and impossible value at once.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise ConfigError("; ".join(_sentence(detail) for detail in error.errors())) from None

    @classmethod
    def load(cls, path: Path | str) -> PipelineConfig:
        """Read a YAML file (an empty one is the default pipeline)."""
        return cls.parse(read_mapping(path))

    def override(self, changes: Mapping[str, Any]) -> PipelineConfig:
        """Return a copy with dotted keys changed: `{"rerank.name": "none"}`.

        Raises:
            ConfigError: naming every unknown key and impossible value at once.
        """
        data = self.model_dump()
        problems = [unknown_name("parameter", key, dotted_keys()) for key in changes if key not in dotted_keys()]
        if problems:
            raise ConfigError("; ".join(problems))
        for key, value in changes.items():
            _assign(data, key.split("."), value)
        return self.parse(data)

    def flat(self) -> dict[str, Any]:
        """Return the configuration as dotted keys, in the order of the sections."""
        return {key: _lookup(self.model_dump(), key.split(".")) for key in dotted_keys()}

    def to_yaml(self) -> str:
        """Return the YAML that `load` reads back to an equal configuration."""
        return yaml.safe_dump(self.model_dump(), sort_keys=False)

    @property
    def identity(self) -> str:
        """Return a digest of the whole configuration, the same for any key order."""
        return digest(self.model_dump())


def dotted_keys() -> list[str]:
    """Return every key that `override` knows."""
    keys = []
    for name, info in PipelineConfig.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, Section):
            keys += [f"{name}.{inner}" for inner in section.model_fields]
        else:
            keys.append(name)
    return keys


def _sentence(detail: Any) -> str:
    if detail["type"] == "extra_forbidden":
        return unknown_name("parameter", key_of(detail), dotted_keys())
    return f"{key_of(detail)}: {complaint_and_value(detail)}"


def _assign(data: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        data = data[part]
    data[path[-1]] = value


def _lookup(data: dict[str, Any], path: list[str]) -> Any:
    for part in path:
        data = data[part]
    return data
