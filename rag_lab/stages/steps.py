"""The one table of the steps of a pipeline, in their order: names, the keys that each reads, what is built in."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from rag_lab._kit.registry import BuiltIn, Kind
from rag_lab.errors import unknown_name
from rag_lab.records import Hit

Group = Literal["query", "corpus", "retrieval", "rerank", "answer"]  # of steps that are chosen together, in this order


class ScoreName(NamedTuple):
    """A score of a hit: what stands above its column, and what it means."""

    short: str
    meaning: str


class Step(NamedTuple):
    """A step, under its name on a trace.

    `switches` are the keys that say whether and how it is done, `keys` the beginnings of all others that it reads.
    `slot` is where an object can stand in place of the module that the key `module` names. `scores` are those that it
    gives to hits, by the name that they are kept under.
    """

    name: str
    title: str
    group: Group
    switches: tuple[str, ...]
    keys: tuple[str, ...] = ()
    slot: str = ""
    module: str = ""
    scores: Mapping[str, ScoreName] = MappingProxyType({})


STEPS = (
    Step("remember", "Conversation memory", "query", ("conversation.memory",), ("conversation.", "prompts.summary")),
    Step(
        "understand", "Understanding", "query", ("query.rewrite", "query.hyde"),
        ("query.understanding", "models.understanding", "prompts.understanding"), "understand", "query.understanding",
    ),
    Step("propose", "Proposed rewrite", "query", ("query.rewrite",)),
    Step(
        "rewrite", "Rewriting", "query", ("query.rewrite",), ("query.guard", "query.min_similarity"), "rewrite",
        "query.rewrite",
    ),
    Step("rephrase", "Other phrasings", "query", ("query.phrasings",), ("prompts.phrasings",)),
    Step("route", "HyDE routing", "query", ("query.hyde",), ("query.class_to_hyde",)),
    Step(
        "hyde", "HyDE", "query", ("query.hyde",), ("query.hyde_", "models.hyde", "prompts.hyde"), "hyde",
        "query.hyde_writer",
    ),
    Step(
        "search_dense", "Dense search", "retrieval", ("retrieval.mode",), ("retrieval.", "store."), "search",
        "retrieval.mode", {"dense": ScoreName("cosine", "how alike question and passage are in meaning, 1 at most")},
    ),
    Step(
        "search_bm25", "BM25 search", "retrieval", ("retrieval.mode",),
        scores={"bm25": ScoreName("BM25", "words in common, rare ones count more; no upper limit")},
    ),
    Step(
        "search_tfidf", "TF-IDF search", "retrieval", ("retrieval.mode",),
        scores={"tfidf": ScoreName("TF-IDF", "cosine of weighted word counts, 1 at most")},
    ),
    Step(
        "retrieve", "Fusion of the searches", "retrieval", ("retrieval.mode", "retrieval.fusion"), slot="fusion",
        module="retrieval.fusion",
        scores={"weighted": ScoreName("fused", "sum of the searches' scaled scores, each times its weight")},
    ),
    Step(
        "retrieve_hyde", "Search by HyDE", "retrieval", ("query.hyde",), ("retrieval.hyde_k",),
        scores={"hyde": ScoreName("HyDE cosine", "how alike the HyDE text and the passage are in meaning, 1 at most")},
    ),
    Step(
        "merge", "Merging", "rerank", ("rerank.input_limit",), ("retrieval.merge",),
        scores={"rrf": ScoreName("RRF", "sum of 1 / (constant + rank) over the lists that hold it")},
    ),
    Step(
        "rerank", "Reranking", "rerank", ("rerank.name",), ("rerank.", "models.cross_encoder", "models.likelihood"),
        "rerank", "rerank.name",
        {
            "cross_encoder": ScoreName("cross-encoder", "how well it answers, as the reranker reads both together"),
            "query_likelihood": ScoreName("log-likelihood", "of the question, given the passage; 0 at most"),
        },
    ),
    Step(
        "select", "Selection", "rerank", ("select.cut", "select.diversity"), ("select.",), "select", "select.name",
        {"mmr": ScoreName("MMR", "relevance less likeness to the passages before it")},
    ),
    Step("context", "Context", "answer", ("answer.context",), ("answer.context_",), "context", "answer.context"),
    Step(
        "generate", "Generation", "answer", ("answer.name",),
        ("answer.", "models.generation", "prompts.answer", "seed"), "reader", "answer.name",
    ),
    Step("parse", "Parsing", "answer", ("answer.name",)),
    Step("agent", "Agent", "answer", ("answer.agent",), ("agent.",)),
)  # fmt: skip

ORDERED_BY = ScoreName("sum", "reranker's and retrieval score, each scaled to 0…1, summed by weight")
_SCORES = {name: score for step in STEPS for name, score in step.scores.items()}  # in the order of the pipeline


def step_of(key: str) -> Step | None:
    """Return the step that reads a key: the one that names the longest beginning of it."""
    found = [(len(start), step) for step in STEPS for start in (*step.switches, *step.keys) if key.startswith(start)]
    return max(found, key=lambda item: item[0])[1] if found else None


def stage_name(stage: str) -> str:
    """Return what a stage is called where people read it; a custom search by its name."""
    found = next((step.title for step in STEPS if step.name == stage), "")
    return found or stage.removeprefix("search_")


def scores_of(hits: Iterable[Hit]) -> list[tuple[str, ScoreName]]:
    """Return the steps that scored any of the hits, in the pipeline's order, custom ones last, each with its score.

    Nothing is known of what the score of a custom step means.
    """
    found = dict.fromkeys(step for hit in hits for step in hit.scores)
    order = {step: place for place, step in enumerate(_SCORES)}
    in_order = sorted(found, key=lambda step: order.get(step, len(order)))
    return [(step, _SCORES.get(step, ScoreName(step, ""))) for step in in_order]


FOLLOW_UPS = "follow_ups"
Normalization = Literal["none", "min_max", "z_score", "rank", "reciprocal_rank"]
Cut = Literal["none", "knee"]
Diversity = Literal["none", "mmr"]
Merging = Literal["rrf", "base_first"]
RRF_CONSTANT = 60  # Cormack, Clarke and Büttcher 2009, section 2
RRF = "rrf"  # combines by reciprocal ranks
_SEVERAL: dict[str, tuple[str, ...]] = {
    "hybrid": ("dense", "bm25"),
    "multi": ("dense", "bm25", "tfidf"),
    RRF: ("dense", "bm25"),
}


def _ours(target: str, summary: str, needs: str = "", install: str = "") -> BuiltIn:
    return BuiltIn(f"rag_lab.stages.{target}", summary, needs, install)


UNDERSTANDINGS = Kind(
    "understanding",
    "rag_lab.understanding",
    {"llm": _ours("understand:LlmUnderstanding", "one call of a chat model: class, rewrite and HyDE suggestion")},
    call="__call__(self, question)",
)
REWRITINGS = Kind(
    "rewriting",
    "rag_lab.rewriting",
    {
        "none": _ours("rewrite:PlainWords", "the user's own wording is searched"),
        "joined": _ours("rewrite:PlainWords", "the turns that are remembered and the wording, as one text"),
        FOLLOW_UPS: _ours("rewrite:GuardedRewrite", "that of questions with a conversation before them alone"),
        "llm": _ours(
            "rewrite:GuardedRewrite", "the understanding's rewrite, unless the guard finds that it has drifted"
        ),
    },
    call="__call__(self, question)",
)
HYDE_WRITERS = Kind(
    "HyDE writer",
    "rag_lab.hyde",
    {"llm": _ours("hyde:Hyde", "a chat model, with a prompt for each class (Gao et al. 2022)")},
    call="__call__(self, question, query_class)",
)


SEARCHES = Kind(
    "search",
    "rag_lab.searches",
    {
        "dense": _ours("retrieval.search:TextSearch", "by the cosine of embeddings"),
        "bm25": _ours("retrieval.search:TextSearch", "by the terms that texts share, rare ones first"),
        "tfidf": _ours("retrieval.search:TextSearch", "by the cosine of weighted terms"),
    },
    call="build(self, chunks)",
)
FUSIONS = Kind(
    "fusion",
    "rag_lab.fusions",
    {"weighted": _ours("retrieval.fusion:Combine", "adds normalized scores, or reciprocal ranks, by weight")},
    call="__call__(self, lists, k)",
)
SELECTIONS = Kind(
    "selection",
    "rag_lab.selections",
    {"cut": _ours("retrieval.select:Select", "cuts at the knee and diversifies, as `select` says")},
    call="__call__(self, question, passages, scores)",
)


RERANKERS = Kind(
    "reranker",
    "rag_lab.rerankers",
    {
        "none": _ours("rerank:KeepOrder", "keeps the order of the merge"),
        "cross_encoder": _ours(
            "rerank:PairRerank",
            "a model that reads question and passage together",
            "sentence_transformers",
            "sentence-transformers",
        ),
        "query_likelihood": _ours(
            "rerank:PairRerank",
            "how likely a language model finds the question after the passage (Sachan et al. 2022)",
            "transformers",
        ),
    },
    call="__call__(self, question, passages)",
)


CONTEXTS = Kind(
    "context",
    "rag_lab.contexts",
    {
        "retrieved": _ours("context:Assemble", "what was ranked first, cut to a budget around the hit"),
        "none": _ours("context:NoContext", "nothing: the model answers out of what it knows"),
        "gold": _ours("context:GoldContext", "the labelled evidence, cut to a budget around its quotes"),
        "gold_first": _ours("context:GoldFirst", "the labelled evidence, and below it what was ranked first"),
        "document": _ours("context:DocumentContext", "the files of the labelled evidence, within a budget"),
    },
    call="__call__(self, question, passages)",
)
READERS = Kind(
    "reader",
    "rag_lab.readers",
    {
        "none": _ours("stage:Off", "no answer: retrieval alone is measured"),
        "llm": _ours("generate:Generate", "a chat model, which cites passages by number"),
        "text": _ours("generate:Generate", "a chat model, whose whole reply is the answer"),
        "extract": _ours("extract:Extract", "the sentences, rows or items that answer best, word for word"),
    },
    call="__call__(self, question, passages)",
)


class Modes:
    """The modes, as a field of a configuration knows them."""

    def names(self) -> list[str]:
        """Return what can be named without a colon."""
        return [*SEARCHES.names(), *_SEVERAL]

    def check(self, mode: str) -> str:
        """Return `mode` if it can be one."""
        for part in mode.split("+"):
            name = part.partition("?")[0]
            if ":" not in name and name not in _SEVERAL and name not in SEARCHES.names():
                sentence = unknown_name("search", name, self.names())
                raise ValueError(f"{sentence} One of your own is named module:Class.")
            if name not in _SEVERAL:
                SEARCHES.check(part)
        return mode

    def problem(self, mode: str) -> str:
        """Return why a search that `mode` names cannot be used here, or ''; see `Kind.problem`."""
        return " ".join(filter(None, map(SEARCHES.problem, searches_of(mode))))


def searches_of(mode: str) -> tuple[str, ...]:
    """Return the searches that a mode makes, each once: `hybrid+my_search:Splade` makes three."""
    return tuple(dict.fromkeys(name for part in mode.split("+") for name in _SEVERAL.get(part, (part,))))
