"""Which variants cannot differ by construction: what tells them apart is a setting that nothing in them reads.

A dense search has no analyzer, a pipeline without HyDE no rule for it. Such variants would be run for nothing, would
dilute the effect of the setting where it matters, and would count in the correction for many comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import listing
from rag_lab.config import PipelineConfig
from rag_lab.corpus.config import SPLITTERS
from rag_lab.experiment.design import Expansion, Variant
from rag_lab.experiment.model_checks import asks_understanding, embeds
from rag_lab.models.config import ModelsConfig
from rag_lab.runs.omissions import SamePipeline, same_pipeline_sentences
from rag_lab.stages.kinds import (
    CONTEXTS,
    FUSIONS,
    HYDE_WRITERS,
    READERS,
    RERANKERS,
    REWRITINGS,
    SEARCHES,
    SELECTIONS,
    UNDERSTANDINGS,
    combines_ranks,
    searches_of,
)
from rag_lab.stores.analyzer import analyzer_for

_ANALYZER = "retrieval.analyzer"
_OF_MEMORY = tuple(f"conversation.{name}" for name in ("window_turns", "summary_every", "summary_tokens"))
_SAMPLING = ("answer.top_p", "answer.top_k", "answer.min_p")
_OF_REPLY = ("answer.max_tokens", "answer.temperature", "answer.thinking", "answer.thinking_tokens", *_SAMPLING)


@dataclass(frozen=True, slots=True)
class Readers:
    """What is read of the pipelines of an experiment.

    answers: whether any question is answered, where a pipeline answers.
    contexts: whether a metric reads the context of questions that are not answered.
    language: of the dataset; "" where none is declared.
    turns: whether any question has turns of a conversation before it.
    """

    answers: bool = True
    contexts: bool = True
    language: str = ""
    turns: bool = True


class _Idle(NamedTuple):
    """Keys that nothing reads while something `holds`, which `where` says in words."""

    keys: tuple[str, ...]
    where: str
    holds: Callable[[PipelineConfig, Readers], bool]


def run_once(expansion: Expansion, readers: Readers) -> Expansion:
    """Return the variants without those that are the same pipeline as an earlier one by construction, each named."""
    seen: dict[str, Variant] = {}
    run_as: dict[str, str] = {}
    same: list[SamePipeline] = []
    for variant in expansion.variants:
        first = seen.setdefault(digest(effective(variant.config, readers)), variant)
        run_as[variant.variant_id] = first.variant_id
        if first is not variant:
            why = _why(variant.config, first.config, readers)
            same.append(SamePipeline(variant.label, dict(variant.changes), first.variant_id, why))
    before = [replace(one, run_as=run_as.get(one.run_as, one.run_as)) for one in expansion.same]
    notices = (
        *expansion.notices,
        *same_pipeline_sentences(same),
        *(_unasked(expansion.variants) if readers.answers else ()),
    )
    return Expansion(tuple(seen.values()), notices, (*before, *same))


def _unasked(variants: Sequence[Variant]) -> list[str]:
    """Say that a chat model was chosen to answer where all variants quote."""
    chosen = sorted({variant.config.models.generation for variant in variants} - {ModelsConfig().generation})
    if not chosen or any(variant.config.answer.name != "extract" for variant in variants):
        return []
    return [f"{listing(chosen)} answers nothing, since answer.name is extract; set answer.name=llm to ask the model."]


def effective(config: PipelineConfig, readers: Readers) -> dict[str, Any]:
    """Return the dotted keys that something reads: pipelines that have the same do the same with every question."""
    idle = {key for rule in _holding(config, readers) for key in rule.keys}
    return {key: value for key, value in _resolved(config, readers).items() if key not in idle}


def settings_without_effect(config: PipelineConfig, keys: Collection[str]) -> list[str]:
    """Return a sentence for each reason why some of the set `keys` change nothing, with what would let them."""
    idle: dict[str, list[str]] = {}
    for rule in _holding(config, Readers()):
        idle.setdefault(rule.where, []).extend(key for key in rule.keys if key in keys)
    if not config.answer.asks_model and "models.generation" in keys:
        idle.setdefault(f"answer.name is {config.answer.name}", []).append("models.generation")
    cure = "; set answer.name=llm to ask the model"
    return [
        f"Nothing reads {listing(named)} where {where}{cure if 'answer.name' in where else ''}."
        for where, named in idle.items()
        if named
    ]


def _resolved(config: PipelineConfig, readers: Readers) -> dict[str, Any]:
    """Return the dotted keys, the analyzer by the language that the dataset declares."""
    flat = config.flat()
    return flat | ({_ANALYZER: analyzer_for(flat[_ANALYZER], readers.language)} if readers.language else {})


def _why(one: PipelineConfig, other: PipelineConfig, readers: Readers) -> str:
    """Return why two pipelines are the same: for each group of keys in which they differ, where nothing reads it."""
    now, before = _resolved(one, readers), _resolved(other, readers)
    differing = {key for key, value in one.flat().items() if value != other.flat()[key]}
    told: dict[str, list[str]] = {}
    for key in now:
        if key in differing and now[key] != before[key]:
            where = next(rule.where for rule in _holding(one, readers) if key in rule.keys)
            told.setdefault(where, []).append(key)
    reasons = [f"nothing reads {listing(keys)} where {where}" for where, keys in told.items()]
    if _ANALYZER in differing and now[_ANALYZER] == before[_ANALYZER]:
        reasons.append(f"`auto` is {now[_ANALYZER]} for this dataset")
    return ", and ".join(reasons)


def _holding(config: PipelineConfig, readers: Readers) -> Iterator[_Idle]:
    return (rule for rule in _IDLE if rule.holds(config, readers))


def _is_own(config: PipelineConfig) -> bool:
    """Tell whether any module is somebody's own: nobody knows what it looks at in an index or asks of a model."""
    query, answer = config.query, config.answer
    named = (
        (UNDERSTANDINGS, query.understanding), (REWRITINGS, query.rewrite), (HYDE_WRITERS, query.hyde_writer),
        (FUSIONS, config.retrieval.fusion), (RERANKERS, config.rerank.name), (SELECTIONS, config.select.name),
        (CONTEXTS, answer.context), (READERS, answer.name), (SPLITTERS, config.corpus.splitter),
    )  # fmt: skip
    searches = [(SEARCHES, name) for name in searches_of(config.retrieval.mode)]
    return any(name not in kind.built_in for kind, name in (*named, *searches))


def _answers(config: PipelineConfig, readers: Readers) -> bool:
    return readers.answers and config.answer.is_on


def _is_closed(config: PipelineConfig) -> bool:
    return config.answer.context == "none"


def _embeds(config: PipelineConfig) -> bool:
    return embeds(config) or _is_own(config)


def _keeps(config: PipelineConfig, memory: str) -> bool:
    return config.conversation.memory == memory


def _remembers(config: PipelineConfig, readers: Readers) -> bool:
    """Tell whether anything reads what was said before a question."""
    reads = config.query.understands or config.query.rewrite != "none" or _answers(config, readers) or _is_own(config)
    return readers.turns and reads


def _sums_up(config: PipelineConfig, readers: Readers) -> bool:
    return _keeps(config, "summary") and _remembers(config, readers)


def _samples(config: PipelineConfig, readers: Readers) -> bool:
    """Tell whether any reply could be another with another seed."""
    return (
        (_answers(config, readers) and config.answer.asks_model)
        or asks_understanding(config)
        or _sums_up(config, readers)
        or config.query.hyde != "none"
        or _is_own(config)
    )


def _weight(search: str) -> _Idle:
    def is_alone_or_absent(config: PipelineConfig, _: Readers) -> bool:
        searches = searches_of(config.retrieval.mode)
        return search not in searches or len(searches) == 1

    return _Idle((f"retrieval.{search}_weight",), "that search is not combined with another", is_alone_or_absent)


# What no stage of ours reads; a module of one's own is taken to read whatever it could.
_IDLE: tuple[_Idle, ...] = (
    _Idle(
        ("corpus.vision_dpi", "corpus.vision_min_score", "models.vision"),
        "corpus.pdf is not vision",
        lambda c, _: c.corpus.pdf != "vision",
    ),
    _Idle(
        ("corpus.chunk_size", "corpus.chunk_overlap"),
        "corpus.splitter is sentences",
        lambda c, _: c.corpus.splitter == "sentences",
    ),
    _Idle(
        ("corpus.chunk_words", "corpus.overlap_words", "corpus.min_pieces", "corpus.whole_below"),
        "corpus.splitter is not sentences",
        lambda c, _: c.corpus.splitter in ("recursive", "markdown", "semantic"),
    ),
    _Idle(
        ("corpus.breakpoint_percentile",),
        "corpus.splitter is not semantic",
        lambda c, _: c.corpus.splitter in ("recursive", "markdown", "sentences"),
    ),
    _Idle(
        ("corpus.parent_size",),
        "corpus.parents are no pieces of the text",
        lambda c, _: c.corpus.parents in ("neighbours", "none"),
    ),
    _Idle(("corpus.neighbours",), "corpus.parents is not neighbours", lambda c, _: c.corpus.parents != "neighbours"),
    _Idle(
        ("store.name", "store.url"),
        "no search compares embeddings",
        lambda c, _: not c.searches_vectors and not _is_own(c),
    ),
    _Idle(("models.embedding",), "nothing compares embeddings", lambda c, _: not _embeds(c)),
    _Idle(
        ("query.understanding",),
        "query.rewrite is neither llm nor follow_ups, nor is query.hyde classified or suggested",
        lambda c, _: not c.query.understands,
    ),
    _Idle(
        ("models.understanding",),
        "it is not asked",
        lambda c, readers: not asks_understanding(c) and not _sums_up(c, readers) and not _is_own(c),
    ),
    _Idle(
        ("conversation.memory", *_OF_MEMORY, "prompts.summary"),
        "nothing reads turns before a question",
        lambda c, readers: not _remembers(c, readers),
    ),
    _Idle(("conversation.window_turns",), "conversation.memory is not window", lambda c, _: not _keeps(c, "window")),
    _Idle(
        ("conversation.summary_every", "conversation.summary_tokens", "prompts.summary"),
        "conversation.memory is not summary",
        lambda c, _: not _keeps(c, "summary"),
    ),
    _Idle(
        ("query.guard", "query.min_similarity"),
        "no model rewrites",
        lambda c, _: c.query.rewrite in ("none", "joined"),
    ),
    _Idle(("query.min_similarity",), "query.guard is off", lambda c, _: not c.query.guard),
    _Idle(
        (
            "query.hyde_writer",
            "query.hyde_max_tokens",
            "retrieval.hyde_k",
            "retrieval.merge",
            "models.hyde",
            "query.hyde_n",
            "query.hyde_with_query",
        ),
        "query.hyde is none",
        lambda c, _: c.query.hyde == "none",
    ),
    _Idle(
        ("prompts.understanding",),
        "no model is asked to understand the question",
        lambda c, _: c.query.understanding != "llm" or not c.query.understands,
    ),
    _Idle(("prompts.phrasings",), "query.phrasings is 0", lambda c, _: not c.query.phrasings),
    _Idle(
        ("prompts.hyde",),
        "no model writes hypothetical documents",
        lambda c, _: c.query.hyde == "none" or c.query.hyde_writer != "llm",
    ),
    _Idle(
        ("prompts.answer",),
        "no model answers from passages",
        lambda c, readers: not _answers(c, readers) or c.answer.name not in ("llm", "text") or _is_closed(c),
    ),
    _Idle(("query.class_to_hyde",), "query.hyde is not classified", lambda c, _: c.query.hyde != "classified"),
    _Idle(
        ("retrieval.diversity", "retrieval.fetch_k", "retrieval.mmr_trade_off"),
        "no search compares embeddings",
        lambda c, _: not c.searches_vectors,
    ),
    _Idle(
        ("retrieval.fetch_k", "retrieval.mmr_trade_off"),
        "retrieval.diversity is none",
        lambda c, _: c.retrieval.diversity == "none",
    ),
    _Idle(
        ("retrieval.units",),
        "no search is by TF-IDF",
        lambda c, _: "tfidf" not in searches_of(c.retrieval.mode),
    ),
    _Idle(
        (_ANALYZER,),
        "no search is by words",
        lambda c, _: not {"bm25", "tfidf"} & set(searches_of(c.retrieval.mode)),
    ),
    *map(_weight, ("dense", "bm25", "tfidf")),
    _Idle(
        ("retrieval.normalization", "retrieval.rrf_constant"),
        "there is one search",
        lambda c, _: len(searches_of(c.retrieval.mode)) == 1,
    ),
    _Idle(
        ("retrieval.normalization",),
        "retrieval.mode adds reciprocal ranks",
        lambda c, _: combines_ranks(c.retrieval.mode),
    ),
    _Idle(("rerank.passage", "rerank.retrieval_weight"), "rerank.name is none", lambda c, _: c.rerank.name == "none"),
    _Idle(("rerank.retrieval_weight",), "rerank.name is cross_encoder", lambda c, _: c.rerank.name == "cross_encoder"),
    _Idle(
        ("models.cross_encoder",),
        "rerank.name is not cross_encoder",
        lambda c, _: c.rerank.name != "cross_encoder",
    ),
    _Idle(
        ("models.likelihood",),
        "rerank.name is not query_likelihood",
        lambda c, _: c.rerank.name != "query_likelihood",
    ),
    _Idle(
        ("select.mmr_trade_off",),
        "select.diversity is not mmr",
        lambda c, _: c.select.diversity != "mmr" and c.select.name == "cut",
    ),
    _Idle(("answer.name",), "no question is answered", lambda c, readers: not readers.answers),
    _Idle(
        _OF_REPLY,
        "no question is answered",
        lambda c, readers: not _answers(c, readers),
    ),
    _Idle(
        _OF_REPLY,
        "answer.name is extract",
        lambda c, _: c.answer.name == "extract",
    ),
    _Idle(
        ("answer.quote_sentences", "answer.quote_word_weight", "answer.quote_min_score"),
        "answer.name is not extract",
        lambda c, readers: c.answer.name != "extract" or not readers.answers,
    ),
    _Idle(
        ("answer.thinking_tokens",),
        "answer.thinking is off",
        lambda c, _: not c.answer.thinking and c.answer.name in READERS.built_in,
    ),
    _Idle(
        _SAMPLING,
        "answer.temperature is 0 and answer.thinking is off",
        lambda c, _: c.answer.temperature == 0 and not c.answer.thinking and c.answer.name in READERS.built_in,
    ),
    _Idle(
        ("answer.context", "answer.context_tokens", "answer.context_bytes", "models.generation"),
        "no question is answered and no metric reads the context",
        lambda c, readers: not _answers(c, readers) and not readers.contexts,
    ),
    _Idle(("answer.context_tokens", "answer.context_bytes"), "answer.context is none", lambda c, _: _is_closed(c)),
    _Idle(
        ("on_truncation",),
        "no model is sent anything",
        lambda c, readers: not _embeds(c) and c.rerank.name == "none" and not _samples(c, readers),
    ),
    _Idle(("seed",), "no reply of a model is sampled", lambda c, readers: not _samples(c, readers)),
)
