"""Every kind of module that a stage can be, with what is built in, and what `retrieval.mode` may combine."""

from typing import Literal

from rag_lab._kit.registry import BuiltIn, Kind
from rag_lab.errors import unknown_name

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
    {"llm": _ours("query.understand:LlmUnderstanding", "one call of a chat model: class, rewrite and HyDE suggestion")},
    call="__call__(self, question)",
)
REWRITINGS = Kind(
    "rewriting",
    "rag_lab.rewriting",
    {
        "none": _ours("query.rewrite:PlainWords", "the user's own wording is searched"),
        "joined": _ours("query.rewrite:PlainWords", "the turns that are remembered and the wording, as one text"),
        FOLLOW_UPS: _ours("query.rewrite:GuardedRewrite", "that of questions with a conversation before them alone"),
        "llm": _ours(
            "query.rewrite:GuardedRewrite",
            "the understanding's rewrite, unless the guard finds that it has drifted",
        ),
    },
    call="__call__(self, question)",
)
HYDE_WRITERS = Kind(
    "HyDE writer",
    "rag_lab.hyde",
    {"llm": _ours("query.hyde:Hyde", "a chat model, with a prompt for each class (Gao et al. 2022)")},
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
        "retrieved": _ours("answer.context:Assemble", "what was ranked first, cut to a budget around the hit"),
        "none": _ours("answer.context:NoContext", "nothing: the model answers out of what it knows"),
        "gold": _ours("answer.context:GoldContext", "the labelled evidence, cut to a budget around its quotes"),
        "document": _ours("answer.context:DocumentContext", "the files of the labelled evidence, within a budget"),
    },
    call="__call__(self, question, passages)",
)
READERS = Kind(
    "reader",
    "rag_lab.readers",
    {
        "none": _ours("stage:Off", "no answer: retrieval alone is measured"),
        "llm": _ours("answer.generate:Generate", "a chat model, which cites passages by number"),
        "text": _ours("answer.generate:Generate", "a chat model, whose whole reply is the answer"),
        "extract": _ours("answer.extract:Extract", "the sentences, rows or items that answer best, word for word"),
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
