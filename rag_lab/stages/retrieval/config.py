"""The part of a configuration that says how passages are found and selected."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from rag_lab._kit.config_section import Section
from rag_lab.records import Level
from rag_lab.stages.query.config import QueryConfig
from rag_lab.stages.retrieval.choices import RRF_CONSTANT, Cut, Diversity, Merging, Normalization
from rag_lab.stages.retrieval.modes import Modes, searches_of
from rag_lab.stages.retrieval.retrieval_kinds import FUSIONS, SELECTIONS
from rag_lab.stores.sparse.language import AnalyzerChoice, analyzer_for
from rag_lab.stores.sparse.units import Unit

_MODES = Modes()


class RetrievalConfig(Section):
    """How passages are found: which searches, how their scores are combined, and what each brings."""

    mode: Annotated[str, AfterValidator(_MODES.check), _MODES] = Field(
        "hybrid",
        description="dense, bm25, tfidf, or one of your own as module:Class; `hybrid` (dense and BM25), `multi` (and "
        "TF-IDF), `rrf` and names joined by `+` combine searches",
    )
    level: Level = Field("parent", description="what is retrieved and read: the child, its parent, the whole document")
    base_k: int = Field(20, ge=1, le=1000, description="results of each search by question, and of them combined")
    hyde_k: int = Field(10, ge=1, le=1000, description="results of the search by hypothetical document, always dense")
    merge: Merging = Field(
        "rrf",
        description="base and HyDE hits by reciprocal rank, or base hits first and then what HyDE adds",
    )
    min_score: float | None = Field(
        None,
        ge=-1e6,
        le=1e6,
        description="score below which results are left out: of the one search, or of several as they are combined; "
        "null leaves nothing out",
    )
    diversity: Diversity = Field(
        "none", description="`mmr` lets dense searches choose among `fetch_k`, each result unlike those before it"
    )
    fetch_k: int = Field(50, ge=1, le=1000, description="results of a dense search among which `mmr` chooses")
    mmr_trade_off: float = Field(0.5, ge=0, le=1, description="there: 1 is relevance alone, 0 is difference alone")
    units: Unit = Field("child", description="what TF-IDF compares with the question: each child, or each whole file")
    analyzer: AnalyzerChoice = Field(
        "auto",
        description="how BM25 and TF-IDF cut words; a language's also stems them, `auto` takes the dataset's, declared "
        "or detected",
    )
    dense_weight: float = Field(1.0, ge=0, le=1e6, description="weight of the dense search where searches are combined")
    bm25_weight: float = Field(1.0, ge=0, le=1e6, description="weight of BM25 there")
    tfidf_weight: float = Field(1.0, ge=0, le=1e6, description="weight of TF-IDF there")
    normalization: Normalization = Field(
        "min_max", description="of scores that `hybrid` and `multi` add; `rrf` adds reciprocal ranks"
    )
    fusion: Annotated[str, AfterValidator(FUSIONS.check), FUSIONS] = Field(
        "weighted", description="what combines searches, or one of your own as module:Class"
    )
    rrf_constant: int = Field(RRF_CONSTANT, ge=0, le=10_000, description="damps the first of the reciprocal ranks")

    @property
    def weights(self) -> dict[str, float]:
        """The searches that the mode makes, with their weights, 1 for one's own; one of weight 0 is not made."""
        given = {"dense": self.dense_weight, "bm25": self.bm25_weight, "tfidf": self.tfidf_weight}
        searches = searches_of(self.mode)
        weights = {name: given.get(name, 1.0) for name in searches}
        return {name: weight for name, weight in weights.items() if weight > 0 or len(searches) == 1}

    def in_language(self, language: str) -> RetrievalConfig:
        """Return the configuration with the analyzer of a declared language in place of `auto`, which stays for ''."""
        return self.model_copy(update={"analyzer": analyzer_for(self.analyzer, language)}) if language else self

    @model_validator(mode="after")
    def _there_is_a_choice(self) -> RetrievalConfig:
        if self.diversity != "none" and self.fetch_k < self.base_k:
            raise ValueError(f"fetch_k must be at least base_k ({self.base_k}), among which mmr chooses")
        return self

    @model_validator(mode="after")
    def _some_search_counts(self) -> RetrievalConfig:
        if not self.weights:
            names = " and ".join(f"{name}_weight" for name in searches_of(self.mode))
            raise ValueError(f"mode {self.mode} needs a weight above 0; {names} are 0")
        return self


class SelectConfig(Section):
    """What is left out of the ranked hits, and in which order the others are read."""

    name: Annotated[str, AfterValidator(SELECTIONS.check), SELECTIONS] = Field(
        "cut", description="the selection, or one of your own as module:Class"
    )
    cut: Cut = Field("none", description="`knee` cuts the list at its largest drop in score")
    diversity: Diversity = Field("none", description="`mmr` prefers passages unlike those before them")
    mmr_trade_off: float = Field(0.5, ge=0, le=1, description="1 is relevance alone, 0 is difference alone")

    @property
    def is_on(self) -> bool:
        """Whether anything is done to the list."""
        return self.name != "cut" or self.cut != "none" or self.diversity != "none"


def searches_vectors(retrieval: RetrievalConfig, query: QueryConfig) -> bool:
    """Tell whether a search compares embeddings: by question, or by hypothetical document."""
    return "dense" in retrieval.weights or query.hyde != "none"
