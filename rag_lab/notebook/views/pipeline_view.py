"""A configuration, and a pipeline drawn as its stages: what each does, what is off, and what differs.

Nothing is loaded for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rag_lab._kit.wording import counted
from rag_lab.config import PipelineConfig
from rag_lab.experiment.stage_identities import Readers, roles_used
from rag_lab.notebook.views.view import Box, View
from rag_lab.pipeline import Pipeline
from rag_lab.report.page.templates import setting
from rag_lab.report.tables.table import Table
from rag_lab.stages.steps import STEPS


def came_from(config: PipelineConfig) -> str:
    """Return what the configuration was made from."""
    return config.origin.name or "the defaults"


def config_view(config: PipelineConfig) -> View:
    """Return what differs from where a configuration came from; the whole stands folded."""
    origin, changes = came_from(config), config.changes()
    differs = f"differs in {len(changes)}" if changes else "nothing differs"
    rows = tuple((one.key, setting(one.value), setting(one.before)) for one in changes)
    table = Table("", ("key", "here", f"in {origin}"), rows, names=3)
    return View(
        title=f"PipelineConfig from {origin}: {differs}",
        tables=(table,) if rows else (),
        folded=(("The whole, as YAML", config.to_yaml()),),
    )


# What belongs to each box: the keys of the configuration, or their beginnings, and the places of objects.
_KEYS: dict[str, tuple[str, ...]] = {
    "Documents": ("corpus.", "models.vision", "on_truncation"),
    "Vectors": ("store.", "models.embedding"),
    "Understanding": (
        "query.understanding",
        "models.understanding",
        "prompts.understanding",
        "prompts.summary",
        "conversation.",
    ),
    "Rewriting": ("query.rewrite", "query.guard", "query.min_similarity", "query.phrasings", "prompts.phrasings"),
    "HyDE": ("query.hyde", "query.class_to_hyde", "models.hyde", "prompts.hyde", "retrieval.hyde_k", "retrieval.merge"),
    "Search": ("retrieval.",),
    "Reranking": ("rerank.", "models.cross_encoder", "models.likelihood"),
    "Selection": ("select.",),
    "Context": ("answer.context",),
    "Answer": ("answer.", "models.generation", "prompts.answer", "seed"),
}
_MODULES = {step.slot: step.module for step in STEPS if step.slot}  # by slot, the key that an object replaces
_OF_DOCUMENTS = {"splitter": "corpus.splitter", "file_readers": "corpus.readers", "store": "store.name"}


def boxes(config: PipelineConfig, replaced: Mapping[str, str]) -> tuple[Box, ...]:
    """Return the stages in their order; `replaced` are the objects in place of what the configuration names."""
    changes: dict[str, list[str]] = {name: [] for name in _KEYS}
    for change in config.changes():
        changes[box_of(change.key)].append(f"{change.key} = {setting(change.value)}")
    said = _said(config)
    return tuple(_box(name, said[name], tuple(changes[name]), replaced) for name in _KEYS)


def _box(name: str, said: str, changes: tuple[str, ...], replaced: Mapping[str, str]) -> Box:
    """Return one box; an object in the place of the stage itself stands instead of what the configuration says."""
    objects = {slot: what for slot, what in replaced.items() if box_of(_key_of(slot)) == name}
    whole = [what for slot, what in objects.items() if slot in _MODULES and slot != "fusion"]
    beside = [f"{slot}: {what}" for slot, what in objects.items() if slot not in _MODULES or slot == "fusion"]
    told = ", ".join(filter(None, [*(whole or [said]), *beside]))
    return Box(name, told, bool(said or whole), (*changes, *("replaced by an object" for _ in objects)))


def _key_of(slot: str) -> str:
    """Return the key that names what an object in this slot replaces."""
    return (_MODULES | _OF_DOCUMENTS).get(slot) or f"models.{slot.removesuffix('_model')}"


def box_of(key: str) -> str:
    """Return the box of a key: the one that names the longest beginning of it."""
    fitting = [(len(start), name) for name, starts in _KEYS.items() for start in starts if key.startswith(start)]
    return max(fitting)[1]


def _said(config: PipelineConfig) -> dict[str, str]:
    """Return what each stage does, '' where it is off."""
    models, query = config.models, config.query
    return {
        "Documents": _documents(config),
        "Vectors": f"{models.embedding} in {config.store.name}" if config.searches_vectors else "",
        "Understanding": _named(query.understanding, "llm", models.understanding) if query.understands else "",
        "Rewriting": _rewriting(config),
        "HyDE": "" if query.hyde == "none" else f"{_hyde(config)}, by {_named(query.hyde_writer, 'llm', models.hyde)}",
        "Search": f"{config.retrieval.mode}, the {config.retrieval.base_k} best {_units(config)}",
        "Reranking": "" if config.rerank.name == "none" else _reranking(config),
        "Selection": _selection(config),
        "Context": _context(config),
        "Answer": _answer(config),
    }


def _context(config: PipelineConfig) -> str:
    what = {"gold": "the labelled evidence", "document": "the files of the labelled evidence"}
    answer = config.answer
    which = what.get(answer.context, f"the first {config.rerank.final_k}")
    return "" if answer.context == "none" else f"{which}, at most {answer.context_tokens:,} tokens"


def _answer(config: PipelineConfig) -> str:
    answer, models = config.answer, config.models
    if answer.name == "extract":
        return f"quotes of at most {counted(answer.quote_sentences, 'sentence')}, by {models.embedding}"
    return {"none": "", "llm": models.generation, "text": f"{models.generation}, in text"}.get(answer.name, answer.name)


def _documents(config: PipelineConfig) -> str:
    corpus = config.corpus
    size = f"{corpus.chunk_words} words" if corpus.splitter == "sentences" else f"{corpus.chunk_size:,} characters"
    return f"{corpus.splitter} pieces of {size}; the reader gets the {_parent(config)}"


def _parent(config: PipelineConfig) -> str:
    if config.retrieval.level != "parent":
        return "piece" if config.retrieval.level == "child" else "document"
    names = {"fixed": f"{config.corpus.parent_size:,} characters", "neighbours": "neighbours", "none": "piece"}
    return names.get(config.corpus.parents, config.corpus.parents)


def _units(config: PipelineConfig) -> str:
    return {"child": "pieces", "parent": "parents", "document": "documents"}[config.retrieval.level]


def _rewriting(config: PipelineConfig) -> str:
    query = config.query
    said = {"none": "", "llm": "by the same model", "follow_ups": "of questions with a conversation, by the same model"}
    rewrites = said.get(query.rewrite, query.rewrite)
    phrasings = counted(query.phrasings, "other phrasing") if query.phrasings else ""
    return ", ".join(filter(None, [rewrites, phrasings]))


def _hyde(config: PipelineConfig) -> str:
    if config.query.hyde in ("always", "suggested"):
        return "always" if config.query.hyde == "always" else "where the understanding suggests it"
    return f"for {', '.join(name for name, on in config.query.class_to_hyde.items() if on) or 'no'} questions"


def _reranking(config: PipelineConfig) -> str:
    rerank = config.rerank
    role = next(iter(roles_used(config, Readers()) & {"cross_encoder", "likelihood"}), "")
    model = getattr(config.models, role) if role else ""
    return f"{rerank.name}{f' by {model}' if model else ''}, of {rerank.input_limit} candidates"


def _selection(config: PipelineConfig) -> str:
    select = config.select
    if not select.is_on:
        return ""
    parts = ["" if select.cut == "none" else f"cut at the {select.cut}", "" if select.diversity == "none" else "MMR"]
    return ", ".join(filter(None, parts)) if select.name == "cut" else select.name


def _named(name: str, usual: str, model: str) -> str:
    return model if name == usual else name


def pipeline_view(pipeline: Pipeline) -> View:
    """Return the drawing, what differs, and the whole configuration folded."""
    config = pipeline.config
    told = [f"{one.key} = {setting(one.value)} (there {setting(one.before)})" for one in config.changes()]
    replaced = [f"{place} = {what}" for place, what in pipeline.replaced.items()]
    return View(
        title=f"Pipeline on {pipeline.corpus_name}",
        boxes=boxes(config, pipeline.replaced),
        facts=(
            ("Made from", came_from(config)),
            ("Changed", ", ".join(told)),
            ("Replaced", ", ".join(replaced)),
        ),
        folded=(("The whole configuration, as YAML", config.to_yaml()),),
    )
