"""The sections of a configuration that say what the stages do."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from rag_lab._kit.section import Section
from rag_lab.records import QUERY_CLASSES, Level, QueryClass
from rag_lab.stages import steps
from rag_lab.stages.chat_template import BUILT_IN, PLACES, ChatTemplate, prompt_name
from rag_lab.stores.config import Unit
from rag_lab.stores.sparse import AnalyzerChoice, analyzer_for

_Name = Annotated[str, AfterValidator(prompt_name)]
_MODES = steps.Modes()


class ConversationConfig(Section):
    """What rewriting and answering read of the turns before a question."""

    memory: Literal["none", "last_exchange", "window", "summary", "summary_and_exchange"] = Field(
        "window", description=steps.SAID["ConversationConfig.memory"]
    )
    window_turns: int = Field(6, ge=1, le=1000, description="turns that the memory `window` keeps")
    summary_every: int = Field(6, ge=1, le=1000, description="turns that a summary takes in at a time")
    summary_tokens: int = Field(120, ge=16, le=4096, description="length of a summary")


class PromptsConfig(Section):
    """What models are asked, each `builtin` or a file beside the experiment."""

    understanding: Annotated[_Name, PLACES["understanding"]] = Field(
        BUILT_IN, description=steps.SAID["PromptsConfig.understanding"]
    )
    phrasings: Annotated[_Name, PLACES["phrasings"]] = Field(BUILT_IN, description="asks for other phrasings")
    hyde: Annotated[_Name, PLACES["hyde"]] = Field(BUILT_IN, description="asks for a hypothetical document")
    summary: Annotated[_Name, PLACES["summary"]] = Field(BUILT_IN, description="asks for a summary of the conversation")
    answer: Annotated[_Name, PLACES["answer"]] = Field(BUILT_IN, description="asks for an answer from the passages")
    outline: Annotated[_Name, PLACES["outline"]] = Field(BUILT_IN, description="asks for the titles of a report")
    section_technical: Annotated[_Name, PLACES["section_technical"]] = Field(
        BUILT_IN, description=steps.SAID["PromptsConfig.section_technical"]
    )
    section_general: Annotated[_Name, PLACES["section_general"]] = Field(
        BUILT_IN, description=steps.SAID["PromptsConfig.section_general"]
    )
    review: Annotated[_Name, PLACES["review"]] = Field(BUILT_IN, description="asks for a better text of a section")

    def custom(self) -> dict[str, ChatTemplate]:
        """Return the prompts that are not built in, by place, read from their files."""
        found = {place: PLACES[place].read(file) for place, file in self.model_dump().items()}
        return {place: template for place, template in found.items() if template is not None}


class QueryConfig(Section):
    """Query understanding and HyDE."""

    understanding: Annotated[str, AfterValidator(steps.UNDERSTANDINGS.check), steps.UNDERSTANDINGS] = Field(
        "llm", description=steps.SAID["QueryConfig.understanding"]
    )
    rewrite: Annotated[str, AfterValidator(steps.REWRITINGS.check), steps.REWRITINGS] = Field(
        "none", description=steps.SAID["QueryConfig.rewrite"]
    )
    min_similarity: float = Field(0.6, ge=-1, le=1, description="cosine below which a rewrite has drifted")
    guard: bool = Field(True, description="whether a rewrite that has drifted is refused")
    hyde: Literal["none", "always", "classified", "suggested"] = Field(
        "none", description=steps.SAID["QueryConfig.hyde"]
    )
    hyde_writer: Annotated[str, AfterValidator(steps.HYDE_WRITERS.check), steps.HYDE_WRITERS] = Field(
        "llm", description=steps.SAID["QueryConfig.hyde_writer"]
    )
    class_to_hyde: dict[QueryClass, bool] = Field(
        {"specific": False, "fuzzy": True, "comparative": False, "procedural": True, "creative": True},
        description=steps.SAID["QueryConfig.class_to_hyde"],
    )
    phrasings: int = Field(0, ge=0, le=8, description="other phrasings of the question that are searched, too")
    temperature: float = Field(0.0, ge=0, le=2, description="of rewrites and phrasings; 0 is greedy")
    hyde_max_tokens: int = Field(96, ge=8, le=4096, description="length of a hypothetical document")
    hyde_n: int = Field(1, ge=1, le=16, description="documents a question; the mean of several, sampled, is searched")
    hyde_with_query: bool = Field(False, description="whether what is searched counts in that mean as one more")

    @property
    def understands(self) -> bool:
        """Whether the understanding of a question is read: its rewrite, its class or its suggestion."""
        return self.rewrite in ("llm", steps.FOLLOW_UPS) or self.hyde in ("classified", "suggested")

    @field_validator("class_to_hyde")
    @classmethod
    def _every_class(cls, value: dict[QueryClass, bool]) -> dict[QueryClass, bool]:
        missing = [name for name in QUERY_CLASSES if name not in value]
        if missing:
            raise ValueError(f"class_to_hyde must decide on every class; missing: {', '.join(missing)}")
        return {name: value[name] for name in QUERY_CLASSES}


# A list of names becomes one text, which toggles and parameters of notebooks can hold.
_Joined = BeforeValidator(
    lambda value: (
        ", ".join(value) if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value) else value
    )
)


class RetrievalConfig(Section):
    """How passages are found: which searches, how their scores are combined, and what each brings."""

    mode: Annotated[str, AfterValidator(_MODES.check), _MODES] = Field(
        "hybrid", description=steps.SAID["RetrievalConfig.mode"]
    )
    level: Level = Field("parent", description="what is retrieved and read: the child, its parent, the whole document")
    also: Annotated[str, _Joined] = Field("", description=steps.SAID["RetrievalConfig.also"])
    base_k: int = Field(20, ge=1, le=1000, description="results of each search by question, and of them combined")
    hyde_k: int = Field(10, ge=1, le=1000, description="results of the search by hypothetical document, always dense")
    merge: steps.Merging = Field("rrf", description=steps.SAID["RetrievalConfig.merge"])
    min_score: float | None = Field(None, ge=-1e6, le=1e6, description=steps.SAID["RetrievalConfig.min_score"])
    diversity: steps.Diversity = Field("none", description=steps.SAID["RetrievalConfig.diversity"])
    fetch_k: int = Field(50, ge=1, le=1000, description="results of a dense search among which `mmr` chooses")
    mmr_trade_off: float = Field(0.5, ge=0, le=1, description="there: 1 is relevance alone, 0 is difference alone")
    units: Unit = Field("child", description="what TF-IDF compares with the question: each child, or each whole file")
    analyzer: AnalyzerChoice = Field("auto", description=steps.SAID["RetrievalConfig.analyzer"])
    dense_weight: float = Field(1.0, ge=0, le=1e6, description="weight of the dense search where searches are combined")
    bm25_weight: float = Field(1.0, ge=0, le=1e6, description="weight of BM25 there")
    tfidf_weight: float = Field(1.0, ge=0, le=1e6, description="weight of TF-IDF there")
    normalization: steps.Normalization = Field("min_max", description=steps.SAID["RetrievalConfig.normalization"])
    fusion: Annotated[str, AfterValidator(steps.FUSIONS.check), steps.FUSIONS] = Field(
        "weighted", description=steps.SAID["RetrievalConfig.fusion"]
    )
    rrf_constant: int = Field(
        steps.RRF_CONSTANT, ge=0, le=10_000, description=steps.SAID["RetrievalConfig.rrf_constant"]
    )

    @property
    def weights(self) -> dict[str, float]:
        """The searches that the mode makes, with their weights, 1 for custom ones; one of weight 0 is not made."""
        named = {"dense": self.dense_weight, "bm25": self.bm25_weight, "tfidf": self.tfidf_weight}
        searches = steps.searches_of(self.mode)
        weights = {name: named.get(name, 1.0) for name in searches}
        return {name: weight for name, weight in weights.items() if weight > 0 or len(searches) == 1}

    def in_language(self, language: str) -> "RetrievalConfig":
        """Return the configuration with the analyzer of a declared language in place of `auto`, which stays for ''."""
        return self.model_copy(update={"analyzer": analyzer_for(self.analyzer, language)}) if language else self

    @model_validator(mode="after")
    def _some_search_counts(self) -> "RetrievalConfig":
        if self.diversity != "none" and self.fetch_k < self.base_k:
            raise ValueError(f"fetch_k must be at least base_k ({self.base_k}), among which mmr chooses")
        if not self.weights:
            names = " and ".join(f"{name}_weight" for name in steps.searches_of(self.mode))
            raise ValueError(f"mode {self.mode} needs a weight above 0; {names} are 0")
        return self


class SelectConfig(Section):
    """What is left out of the ranked hits, and in which order the others are read."""

    name: Annotated[str, AfterValidator(steps.SELECTIONS.check), steps.SELECTIONS] = Field(
        "cut", description=steps.SAID["SelectConfig.name"]
    )
    cut: steps.Cut = Field("none", description="`knee` cuts the list at its largest drop in score")
    diversity: steps.Diversity = Field("none", description="`mmr` prefers passages unlike those before them")
    mmr_trade_off: float = Field(0.5, ge=0, le=1, description="1 is relevance alone, 0 is difference alone")

    @property
    def is_on(self) -> bool:
        """Whether anything is done to the list."""
        return self.name != "cut" or self.cut != "none" or self.diversity != "none"


class RerankConfig(Section):
    """What orders the merged candidates, and how many reach the reader."""

    name: Annotated[str, AfterValidator(steps.RERANKERS.check), steps.RERANKERS] = Field(
        "none", description=steps.SAID["RerankConfig.name"]
    )
    input_limit: int = Field(20, ge=1, le=1000, description="candidates after merging")
    passage: Literal["child", "parent"] = Field("child", description="the text that a reranker reads")
    final_k: int = Field(5, ge=1, le=100, description="parents that reach the prompt; the reranker keeps 2 x final_k")
    blend: float | None = Field(None, ge=0, le=1e6, description=steps.SAID["RerankConfig.blend"])


class AnswerConfig(Section):
    """Context, generation and parsing."""

    name: Annotated[str, AfterValidator(steps.READERS.check), steps.READERS] = Field(
        "extract", description=steps.SAID["AnswerConfig.name"]
    )
    agent: Literal["none", "supervisor", "corrective", "search"] = Field(
        "none", description=steps.SAID["AnswerConfig.agent"]
    )
    context: Annotated[str, AfterValidator(steps.CONTEXTS.check), steps.CONTEXTS] = Field(
        "retrieved", description=steps.SAID["AnswerConfig.context"]
    )
    context_tokens: int = Field(1200, ge=32, le=2_000_000, description="token budget of the passages, never exceeded")
    context_bytes: int = Field(0, ge=0, le=100_000_000, description=steps.SAID["AnswerConfig.context_bytes"])
    quote_sentences: int = Field(3, ge=1, le=20, description=steps.SAID["AnswerConfig.quote_sentences"])
    quote_word_weight: float = Field(0.5, ge=0, le=100, description=steps.SAID["AnswerConfig.quote_word_weight"])
    quote_min_score: float = Field(0.2, ge=-1, le=1, description="score below which nothing is quoted")
    max_tokens: int = Field(160, ge=8, le=200_000, description="length of the reply")
    temperature: float = Field(0.0, ge=0, le=2, description="0 is greedy")
    thinking: bool = Field(False, description="ask for and split off the model's thinking, where it can think")
    thinking_tokens: int = Field(2048, ge=16, le=65_536, description=steps.SAID["AnswerConfig.thinking_tokens"])
    top_p: float | None = Field(None, gt=0, le=1, description=steps.SAID["AnswerConfig.top_p"])
    top_k: int | None = Field(None, ge=1, le=1_000_000, description=steps.SAID["AnswerConfig.top_k"])
    min_p: float | None = Field(None, ge=0, le=1, description=steps.SAID["AnswerConfig.min_p"])

    @model_validator(mode="after")
    def _agents_answer(self) -> "AnswerConfig":
        if self.agent != "none" and (self.name == "none" or self.context != "retrieved"):
            wrong = "name" if self.name == "none" else "context"
            raise ValueError(
                f"agent {self.agent} needs answers from what is retrieved; {wrong} is {getattr(self, wrong)}"
            )
        return self

    @property
    def is_on(self) -> bool:
        """Whether answers are generated."""
        return self.name != "none"

    @property
    def asks_model(self) -> bool:
        """Whether a language model may write them: nobody knows what a custom reader asks."""
        return self.name not in ("none", "extract")


class AgentConfig(Section):
    """The limits of an agent, each of which ends a part of its walk."""

    max_calls: int = Field(3, ge=1, le=20, description="supervisor: calls of each of its workers, context and generate")
    tool_calls: int = Field(3, ge=1, le=20, description="supervisor: searches at each call of context")
    rounds: int = Field(2, ge=0, le=20, description="corrective: refinements of the query where nothing is relevant")
    searches: int = Field(4, ge=1, le=50, description="search: how often the model may search")
    results: int = Field(5, ge=1, le=100, description="passages that each search of an agent brings")
