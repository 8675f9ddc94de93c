"""The one table of the steps of a pipeline, in their order: names, the keys that each reads, what is built in."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from rag_lab._kit.registry import kinds_of
from rag_lab.errors import unknown_name
from rag_lab.models.providers import SCORERS
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
        "rerank", "Reranking", "rerank", ("rerank.name",), ("rerank.", *(f"models.{role}" for role in SCORERS)),
        "rerank", "rerank.name",
        {
            "cross_encoder": ScoreName("cross-encoder", "how well it answers, as the reranker reads both together"),
            "query_likelihood": ScoreName("log-likelihood", "of the question, given the passage; 0 at most"),
            "maxsim": ScoreName("MaxSim", "how alike each word of the question and the nearest of the passage are"),
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


(UNDERSTANDINGS, REWRITINGS, HYDE_WRITERS, SEARCHES, FUSIONS, SELECTIONS, RERANKERS, CONTEXTS, READERS) = kinds_of(
    Path(__file__).with_name("modules.yaml"), "rag_lab.stages"
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
