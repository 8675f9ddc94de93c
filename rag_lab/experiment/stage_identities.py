"""What the stages of a configuration are made of, which variants are the same, and which models they need.

No document, weights or index is loaded for it. Each stage has the identity that its results are remembered under. So
two configurations with the same stages have the same results, and a model that stands in no stage's identity is not
used. Nobody writes by hand which key is read when.

Variants may be told apart by a setting alone that nothing in them reads, as a dense search has no analyzer: they would
be run for nothing, and dilute the effect of the setting where it matters.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import listing
from rag_lab.config import PipelineConfig, choices_of, dotted_keys, module_kinds
from rag_lab.corpus.build_index import Recipe
from rag_lab.corpus.chunks import Contexts
from rag_lab.corpus.reading import Reading
from rag_lab.corpus.splitters import splitter_of
from rag_lab.errors import ConfigError, ModelError, RagLabError
from rag_lab.evaluation.registry import parse_name
from rag_lab.experiment.config import Limits, checkout_file
from rag_lab.experiment.design import Expansion, Variant
from rag_lab.models import prices, protocols, providers, shared, weights
from rag_lab.models.config import ModelsConfig, alternatives
from rag_lab.models.model_card import downloaded_folder
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question
from rag_lab.redaction import redact_value
from rag_lab.runs.omissions import SamePipeline, same_pipeline_sentences
from rag_lab.stages import conversation, run_stage, steps
from rag_lab.stages.stage import Off, Parts
from rag_lab.stores import registry
from rag_lab.stores.sparse import analyzer_for

_ANALYZER = "retrieval.analyzer"
_MISSING_READERS = {
    "answers": "no question is answered",
    "contexts": "no metric reads the context",
    "turns": "no question has turns before it",
}
_NOWHERE = Path("/nowhere")  # nothing is read or written there
CHAT_ROLES = ("understanding", "hyde", "generation", "judge")
KINDS = {"embedding": providers.EMBEDDERS, **providers.SCORERS, **providers.ENCODERS}
_OF_WEIGHTS = ("transformers", "unsloth", "sentence_transformers")


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


def stage_identities(config: PipelineConfig, readers: Readers) -> dict[str, Mapping[str, Any]]:
    """Return the identity of each stage that is on and whose result somebody reads, by its name.

    A RagLabError where a module, a store or a prompt that the configuration names cannot be used.
    """
    embedder = cast(protocols.Embedder, _Model("embedding", config.models.embedding))
    index: Any = _Index(config, embedder, readers.language)
    pipeline = Pipeline.on(index, embedder, config)
    pipeline.parts = _Parts(**{**vars(pipeline.parts), "retrieval": config.retrieval.in_language(readers.language)})
    read = {"ranked", *(["answer"] if readers.answers else []), *(["passages"] if readers.contexts else [])}
    on = [stage for stage in run_stage.with_readers(pipeline.stages, read) if not isinstance(stage, Off)]
    return {stage.name: stage.identity() for stage in on if readers.turns or stage.name != conversation.REMEMBER}


def roles_used(config: PipelineConfig, readers: Readers) -> set[str]:
    """Return the keys of `models` that the stages use; what cannot be used here is taken for what is built in."""
    try:
        found = stage_identities(config, readers)
    except RagLabError:
        defaults, now = PipelineConfig().flat(), config.flat()
        texts = {key: [*value.values()] if isinstance(value, Mapping) else [value] for key, value in now.items()}
        bad = [key for key, kind in module_kinds().items() if any(map(kind.problem, texts[key]))]
        usable = config.override({key: defaults[key] for key in (*bad, "store.name", "store.url", "store.vectors")})
        found = stage_identities(usable, readers)
    return {model["role"] for model in models_in(found)}


def n_chats(config: PipelineConfig) -> int:
    """Return how many stages ask a chat model for each question."""
    with suppress(RagLabError):
        return sum("model" in one for one in stage_identities(config, Readers(contexts=False)).values())
    return 0


def models_in(value: Any) -> Iterator[Mapping[str, str]]:
    """Yield the role and the name of every model in identities."""
    if isinstance(value, Mapping):
        if value.keys() == {"role", "model"}:
            yield value
        for inner in value.values():
            yield from models_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from models_in(inner)


@dataclass(frozen=True)
class _Model:
    role: str
    model: str

    def identity(self) -> Mapping[str, str]:
        return {"role": self.role, "model": self.model}


@dataclass(frozen=True)
class _Parts(Parts):  # whose models are names
    def chat(self, role: str, purpose: str = "") -> Any:
        return _Model(role, self.model(role))

    encoder = scorer = chat


class _Index:
    """An index with the identity that it would have."""

    corpus_dir = _NOWHERE
    labels: Collection[str] = frozenset()

    def __init__(self, config: PipelineConfig, embedder: protocols.Embedder, language: str) -> None:
        corpus = config.corpus
        vision = cast(protocols.ChatModel, _Model("vision", config.models.vision)) if corpus.pdf == "vision" else None
        reading = Reading(corpus, vision, _NOWHERE)
        self.language = language
        also = {"also": config.retrieval.also} if config.retrieval.also else {}  # which are indexed, too
        self.digest = {**Recipe(corpus, reading, splitter_of(corpus, embedder)).identity(), **also}
        writer = cast(protocols.ChatModel, _Model("understanding", config.models.understanding))
        asked = writer if corpus.context == "llm" else None
        self.contexts = Contexts(corpus.context, asked, rows=corpus.sheet_rows == "one")
        vectors = {"embedder": embedder.identity(), "store": registry.identity(config.store)}
        self.vectors_identity = {**vectors, **self.contexts.identity()}

    def analyzer(self, choice: Any) -> str:
        return analyzer_for(choice, self.language) if self.language else choice

    def is_visible(self, source: str, question: Question) -> bool:
        return True


def run_once(expansion: Expansion, readers: Readers) -> Expansion:
    """Return the variants without those that are the same pipeline as an earlier one by construction, each named."""
    seen: dict[str, Variant] = {}
    run_as: dict[str, str] = {}
    same: list[SamePipeline] = []
    reasons = _Reasons(readers)
    for variant in expansion.variants:
        first = seen.setdefault(digest(effective(variant.config, readers)), variant)
        run_as[variant.variant_id] = first.variant_id
        if first is not variant:
            why = reasons.why_same(variant.config, first.config)
            same.append(SamePipeline(variant.label, dict(variant.changes), first.variant_id, why))
    before = [replace(one, run_as=run_as.get(one.run_as, one.run_as)) for one in expansion.same]
    notices = [*expansion.notices, *same_pipeline_sentences(same)]
    chosen = sorted({one.config.models.generation for one in expansion.variants} - {ModelsConfig().generation})
    if readers.answers and chosen and all(one.config.answer.name == "extract" for one in expansion.variants):
        notices.append(
            f"{listing(chosen)} answers nothing, since answer.name is extract; set answer.name=llm to ask the model."
        )
    return Expansion(tuple(seen.values()), tuple(notices), (*before, *same))


def effective(config: PipelineConfig, readers: Readers, *, usable: bool = False) -> dict[str, Any]:
    """Return all that can change a result: pipelines that have the same do the same with every question.

    Where a module or a prompt cannot be used here, that is the whole configuration, or a RagLabError if it must be
    `usable`.
    """
    try:
        stages = stage_identities(config, readers)
    except RagLabError:
        if usable:
            raise
        return config.flat()
    return {"stages": stages, **({"on_truncation": config.on_truncation} if any(models_in(stages)) else {})}


def is_read(config: PipelineConfig, key: str, other: Any, readers: Readers) -> bool:
    """Tell whether another value of a key makes another pipeline; a RagLabError where one of the two cannot be used."""
    changed = config.override({key: other})
    return effective(config, readers, usable=True) != effective(changed, readers, usable=True)


def settings_without_effect(config: PipelineConfig, keys: Collection[str]) -> list[str]:
    """Return a sentence for each reason why some of the set `keys` change nothing, with what would let them."""
    reasons, defaults = _Reasons(Readers()), PipelineConfig().flat()
    idle: dict[str, list[str]] = {}
    for key in keys:
        if key == "models.generation" and not config.answer.asks_model:
            idle.setdefault(f"answer.name is {config.answer.name}", []).append(key)
        elif config.flat()[key] != defaults[key]:
            with suppress(RagLabError):  # of what cannot be used, which is said where it is used
                if not is_read(config, key, defaults[key], reasons.readers):
                    idle.setdefault(reasons.where(config, key, defaults[key]), []).append(key)
    cure = "; set answer.name=llm to ask the model"
    return [
        f"Nothing reads {listing(found)} where {where}{cure if 'answer.name' in where else ''}."
        for where, found in idle.items()
    ]


@dataclass(frozen=True)
class _Reasons:
    """Finds out which other setting would let a key be read."""

    readers: Readers
    _found: dict[str, str] = field(default_factory=dict)

    def why_same(self, one: PipelineConfig, other: PipelineConfig) -> str:
        """Return why two pipelines are the same: for each group of keys that differ, where nothing reads it."""
        now, before = one.flat(), other.flat()
        groups: dict[str, list[str]] = {}
        reasons = []
        for key in (key for key in now if now[key] != before[key]):
            chosen = {analyzer_for(values[_ANALYZER], self.readers.language) for values in (now, before)}
            if key == _ANALYZER and self.readers.language and len(chosen) == 1:
                reasons.append(f"`auto` is {chosen.pop()} for this dataset")
            else:
                groups.setdefault(self.where(one, key, before[key]), []).append(key)
        unread = [f"nothing reads {listing(keys)} where {where}" for where, keys in groups.items()]
        return ", and ".join([*unread, *reasons])

    def where(self, config: PipelineConfig, key: str, other: Any) -> str:
        """Return which setting keeps a key from being read: one which, if it were another, would let it be read."""
        known = digest([key, {name: config.flat()[name] for name in _switches(key)}])
        if known not in self._found:
            self._found[known] = next(self._obstacles(config, key, other))
        return self._found[known]

    def _obstacles(self, config: PipelineConfig, key: str, other: Any) -> Iterator[str]:
        values, step = config.flat(), steps.step_of(key)
        for name, sentence in _MISSING_READERS.items():
            more: Any = {name: True}
            if not getattr(self.readers, name) and is_read(config, key, other, replace(self.readers, **more)):
                yield sentence
        for switch in _switches(key):
            for choice in choices_of(switch, values[switch]):
                with suppress(RagLabError):
                    if is_read(config.override({switch: choice}), key, other, self.readers):
                        yield f"{switch} is {values[switch]}"
        yield " and ".join(f"{switch} is {values[switch]}" for switch in (step.switches if step else ()))


def _switches(key: str) -> Iterator[str]:
    """Yield the keys that may keep another one from being read: of its own step first, then of all others."""
    step = steps.step_of(key)
    near = [name for name in dotted_keys() if step and steps.step_of(name) is step and choices_of(name, None)]
    found = dict.fromkeys([*(step.switches if step else ()), *near, *(s for one in steps.STEPS for s in one.switches)])
    return (name for name in found if name != key)


def models_used(config: PipelineConfig, metrics: Iterable[str] | None = None, *, asked: bool = False) -> dict[str, str]:
    """Return the role and `provider:name` of every model that this pipeline uses; roles that are off are left out.

    The generation model counts the tokens of the context where no answer is generated, too: where one of `metrics`
    reads the context, or somebody looks at it (None). Where they are to be `asked` it is not among them then.
    """
    contexts, embeds = metrics is None, False
    for metric in metrics or ():
        with suppress(ConfigError):  # which is said where metrics are checked
            info = parse_name(metric).info
            # An answer is read wherever there is one; a context also where nothing is answered.
            contexts = contexts or ("passages" in info.reads and "answer" not in info.needs)
            embeds = embeds or "embeddings" in info.needs
    roles = roles_used(config, Readers(contexts=contexts)) | ({"embedding"} if embeds else set())
    roles -= {"generation"} if asked and not config.answer.asks_model else set()
    return {role: name for role, name in config.models.model_dump().items() if role in roles}


def model_problem(role: str, text: str) -> str:
    """Return why the model `text` cannot play `role` (a key of `models`, or `judge`) here, in one sentence, or ''.

    Of `first | second` one must be able to, and no name may be malformed.
    """
    kind, names, found = KINDS.get(role, providers.CHAT_MODELS), alternatives(text), dict[str, str]()
    try:
        for name in names:
            if providers.split_name(name, kind)[0] in kind.built_in:
                providers.ModelSpec.parse(name, kind)
            else:
                shared.model_of(kind, name)
    except ModelError as error:
        found = {name: str(error)}
    else:
        missing = {name: _blindness(role, name) or shared.missing_requirement(kind, name) for name in names}
        found = missing if all(missing.values()) else {}
    key = role if role == "judge" else f"models.{role}"
    return "; ".join(f"{key} ({redact_value(name)}): {problem}" for name, problem in found.items())


def _blindness(role: str, name: str) -> str:
    """Return why a model that reads pages cannot see them, or ''."""
    known = providers.providers_of(providers.CHAT_MODELS)
    provider = providers.split_name(name, providers.CHAT_MODELS)[0] if role == "vision" else ""
    if provider not in known or known[provider].sees_images:
        return ""
    seeing = ", ".join(sorted(name for name, other in known.items() if other.sees_images))
    return f"the provider {provider} shows no images to a model; allowed are {seeing}."


def limit_problems(limits: Limits, models: Iterable[tuple[str, str]]) -> list[str]:
    """Return why a limit cannot be kept, one sentence each; `models` are the roles with their models."""
    if limits.cost_usd is None:
        return []
    problems = []
    for spec in sorted({name for role, text in models if role in CHAT_ROLES for name in alternatives(text)}):
        with suppress(ModelError):  # which is among the problems of models
            if price_of(spec) is None:
                where = prices.user_file() or "a file prices.toml in the home folder"
                needs = f"limits.cost_usd needs a price for {spec}, and none is known"
                problems.append(f"{needs}; add one to {where}:\n{prices.EXAMPLE}")
    return problems


def price_of(spec: str, *, embeds: bool = False) -> prices.Price | Literal["free"] | None:
    """Return the price of a chat model's calls, or of what an embedding model reads.

    It is 'free' where they cost nothing, None where no table has a price.
    """
    model: Any = shared.embedder(spec) if embeds else shared.chat_model(spec)
    is_priced = getattr(model, "priced", False)
    return prices.price(model.provider, model.name, writes=not embeds) if is_priced else "free"


def shipped_presets() -> dict[str, tuple[str, ...]]:
    """Return for each preset, in order of their names, why it cannot run here, a sentence each; none where it can."""
    found = {}
    for path in sorted(checkout_file("experiments/presets").glob("*.yaml")):
        used, problems = models_used(PipelineConfig.load(path)), list[str]()
        for model in dict.fromkeys(used.values()):
            first, *others = [role for role, other in used.items() if other == model]
            roles = "|".join([first, *others])
            if problem := model_problem(first, model):
                problems.append(problem.replace(f"models.{first}", f"models.{roles}"))
            else:
                missing = [_not_downloaded(roles, name) for name in alternatives(model)]
                problems += missing if all(missing) else []
        found[path.stem] = tuple(dict.fromkeys(problems))
    return found


def _not_downloaded(role: str, model: str) -> str:
    """Return that weights of the hub have not been downloaded, which the first use would do, or ''."""
    provider, name, _ = providers.split_name(model, providers.CHAT_MODELS)
    source = weights.find(name) if provider in _OF_WEIGHTS else None
    if source is None or not source.on_hub or downloaded_folder(source.location):
        return ""
    return f"models.{role}: {source.location} has not been downloaded; its first use fetches it from the model hub."
