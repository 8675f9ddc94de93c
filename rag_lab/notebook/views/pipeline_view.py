"""A configuration, and a pipeline drawn as its stages: what each does, what is off, and what differs.

Nothing is loaded for it.
"""

from collections.abc import Mapping

from rag_lab._kit.wording import counted
from rag_lab.config import PipelineConfig
from rag_lab.experiment.stage_identities import Readers, roles_used
from rag_lab.notebook.views.view import Box, View
from rag_lab.pipeline import Pipeline
from rag_lab.report.page.templates import setting
from rag_lab.report.table import Table
from rag_lab.stages.steps import STEPS

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


def config_view(config: PipelineConfig) -> View:
    """Return what differs from where a configuration came from; the whole stands folded."""
    origin, changes = config.origin.name or "the defaults", config.changes()
    differs = f"differs in {len(changes)}" if changes else "nothing differs"
    rows = tuple((one.key, setting(one.value), setting(one.before)) for one in changes)
    table = Table("", ("key", "here", f"in {origin}"), rows, names=3)
    return View(
        title=f"PipelineConfig from {origin}: {differs}",
        tables=(table,) if rows else (),
        folded=(("The whole, as YAML", config.to_yaml()),),
    )


def boxes(config: PipelineConfig, replaced: Mapping[str, str]) -> tuple[Box, ...]:
    """Return the stages in their order; `replaced` are the objects in place of what the configuration names."""
    changes: dict[str, list[str]] = {name: [] for name in _KEYS}
    for change in config.changes():
        changes[box_of(change.key)].append(f"{change.key} = {setting(change.value)}")
    objects: dict[str, dict[str, str]] = {name: {} for name in _KEYS}
    for slot, what in replaced.items():
        key = (_MODULES | _OF_DOCUMENTS).get(slot) or f"models.{slot.removesuffix('_model')}"  # which it replaces
        objects[box_of(key)][slot] = what
    found = []
    for name, text in _texts(config).items():
        # An object in the place of the stage itself stands instead of what the configuration says.
        whole = [what for slot, what in objects[name].items() if slot in _MODULES and slot != "fusion"]
        others = [f"{slot}: {what}" for slot, what in objects[name].items() if slot not in _MODULES or slot == "fusion"]
        shown = ", ".join(filter(None, [*(whole or [text]), *others]))
        notes = (*changes[name], *("replaced by an object" for _ in objects[name]))
        found.append(Box(name, shown, bool(text or whole), notes))
    return tuple(found)


def box_of(key: str) -> str:
    """Return the box of a key: the one that names the longest beginning of it."""
    fitting = [(len(start), name) for name, starts in _KEYS.items() for start in starts if key.startswith(start)]
    return max(fitting)[1]


def _texts(config: PipelineConfig) -> dict[str, str]:
    """Return what each stage does, '' where it is off."""
    corpus, models, query, select, answer = config.corpus, config.models, config.query, config.select, config.answer
    size = f"{corpus.chunk_words} words" if corpus.splitter == "sentences" else f"{corpus.chunk_size:,} characters"
    parents = {"fixed": f"{corpus.parent_size:,} characters", "none": "piece"}.get(corpus.parents, corpus.parents)
    reads = {"child": "piece", "document": "document"}.get(config.retrieval.level, parents)
    units = {"child": "pieces", "parent": "parents", "document": "documents"}[config.retrieval.level]
    understands = models.understanding if query.understanding == "llm" else query.understanding
    by_model = {"none": "", "llm": "by the same model"}
    by_model["follow_ups"] = "of questions with a conversation, by the same model"
    phrasings = counted(query.phrasings, "other phrasing") if query.phrasings else ""
    classes = ", ".join(name for name, is_on in query.class_to_hyde.items() if is_on) or "no"
    times = {"always": "always", "suggested": "where the understanding suggests it"}
    hyde = f"{times.get(query.hyde, f'for {classes} questions')}, by "
    hyde += models.hyde if query.hyde_writer == "llm" else query.hyde_writer
    role = next(iter(roles_used(config, Readers()) & {"cross_encoder", "likelihood"}), "")
    scorer = f" by {getattr(models, role)}" if role else ""
    cuts = ["" if select.cut == "none" else f"cut at the {select.cut}", "" if select.diversity == "none" else "MMR"]
    selection = ", ".join(filter(None, cuts)) if select.name == "cut" else select.name
    labelled = {"gold": "the labelled evidence", "document": "the files of the labelled evidence"}
    context = labelled.get(answer.context, f"the first {config.rerank.final_k}")
    readers = {"none": "", "llm": models.generation, "text": f"{models.generation}, in text"}
    readers["extract"] = f"quotes of at most {counted(answer.quote_sentences, 'sentence')}, by {models.embedding}"
    return {
        "Documents": f"{corpus.splitter} pieces of {size}; the reader gets the {reads}",
        "Vectors": f"{models.embedding} in {config.store.name}" if config.searches_vectors else "",
        "Understanding": understands if query.understands else "",
        "Rewriting": ", ".join(filter(None, [by_model.get(query.rewrite, query.rewrite), phrasings])),
        "HyDE": "" if query.hyde == "none" else hyde,
        "Search": f"{config.retrieval.mode}, the {config.retrieval.base_k} best {units}",
        "Reranking": ""
        if config.rerank.name == "none"
        else f"{config.rerank.name}{scorer}, of {config.rerank.input_limit} candidates",
        "Selection": selection if select.is_on else "",
        "Context": "" if answer.context == "none" else f"{context}, at most {answer.context_tokens:,} tokens",
        "Answer": readers.get(answer.name, answer.name),
    }


def pipeline_view(pipeline: Pipeline) -> View:
    """Return the drawing, what differs, and the whole configuration folded."""
    config = pipeline.config
    changed = [f"{one.key} = {setting(one.value)} (there {setting(one.before)})" for one in config.changes()]
    replaced = [f"{place} = {what}" for place, what in pipeline.replaced.items()]
    return View(
        title=f"Pipeline on {pipeline.corpus_name}",
        boxes=boxes(config, pipeline.replaced),
        facts=(
            ("Made from", config.origin.name or "the defaults"),
            ("Changed", ", ".join(changed)),
            ("Replaced", ", ".join(replaced)),
        ),
        folded=(("The whole configuration, as YAML", config.to_yaml()),),
    )
