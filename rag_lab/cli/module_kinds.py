"""Every kind of module, in the order of a pipeline, then those of experiments: how one is written and named.

The table in docs/adding_a_module.md shows the same; a test compares them.
"""

from dataclasses import dataclass

from rag_lab._kit.registry import Kind
from rag_lab.corpus.config import FILE_READERS, SPLITTERS
from rag_lab.evaluation.registry import METRICS
from rag_lab.experiment.design import DESIGNS
from rag_lab.models.providers import CHAT_MODELS, CROSS_ENCODERS, EMBEDDERS, LATE_INTERACTIONS, QUERY_LIKELIHOODS
from rag_lab.stages import steps
from rag_lab.stores.config import VECTOR_STORES

_ROLES = "models.generation, models.understanding, models.hyde, models.vision"


@dataclass(frozen=True, slots=True)
class ModuleKind:
    """One kind as a command names it, with the simple form of a module and the keys that name one."""

    word: str
    kind: Kind
    takes: str  # and returns
    keys: str
    langchain: str = ""  # what `langchain:module:factory` may return, or load with


MODULE_KINDS = (
    ModuleKind(
        "file_reader", FILE_READERS, "(path) -> text, texts, or LangChain's documents", "corpus.readers", "BaseLoader"
    ),
    ModuleKind("splitter", SPLITTERS, "(text) -> pieces, or their (start, end)", "corpus.splitter", "TextSplitter"),
    ModuleKind(
        "embedder",
        EMBEDDERS,
        "embed_documents(texts), embed_queries(texts) -> vectors",
        "models.embedding",
        "Embeddings",
    ),
    ModuleKind(
        "vector_store",
        VECTOR_STORES,
        "(embeddings) -> store of LangChain's, or a class with build, open and search",
        "store.name",
        "VectorStore",
    ),
    ModuleKind(
        "understanding", steps.UNDERSTANDINGS, '(question) -> {"class", "rewrite", "hyde"}', "query.understanding"
    ),
    ModuleKind("rewriting", steps.REWRITINGS, "(question) -> str", "query.rewrite"),
    ModuleKind("hyde", steps.HYDE_WRITERS, "(question, query_class) -> str", "query.hyde_writer"),
    ModuleKind(
        "search",
        steps.SEARCHES,
        "(query, k) -> ids or texts, or pairs of one with a score",
        "retrieval.mode",
        "BaseRetriever",
    ),
    ModuleKind("fusion", steps.FUSIONS, "(lists: {search: [(id, score)]}, k) -> [(id, score)]", "retrieval.fusion"),
    ModuleKind("reranker", steps.RERANKERS, "(question, passages) -> scores, None for one to leave out", "rerank.name"),
    ModuleKind("cross_encoder", CROSS_ENCODERS, "score(pairs) -> scores", "models.cross_encoder", "BaseCrossEncoder"),
    ModuleKind(
        "query_likelihood", QUERY_LIKELIHOODS, "score(pairs) -> scores", "models.likelihood", "BaseCrossEncoder"
    ),
    ModuleKind("late_interaction", LATE_INTERACTIONS, "score(pairs) -> scores", "models.late_interaction"),
    ModuleKind("selection", steps.SELECTIONS, "(question, passages, scores) -> positions kept", "select.name"),
    ModuleKind("context", steps.CONTEXTS, "(question, passages) -> texts, None for one to leave out", "answer.context"),
    ModuleKind("reader", steps.READERS, "(question, passages) -> str or Answer", "answer.name"),
    ModuleKind("chat_model", CHAT_MODELS, "generate(requests) -> texts or replies", _ROLES, "BaseChatModel"),
    ModuleKind("metric", METRICS, "(trace) -> float, or (float, reason)", "metrics"),
    ModuleKind(
        "design",
        DESIGNS,
        "(base, factors) -> [{key: value}], the changes of each variant, the baseline first",
        "design",
    ),
)
