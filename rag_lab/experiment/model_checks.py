"""Which models a pipeline needs, what they cost, and what keeps one from being used. No weights are loaded for it."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from rag_lab._kit.registry import Kind
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, ModelError
from rag_lab.evaluation.registry import parse_name
from rag_lab.experiment.checkout import checkout_file
from rag_lab.experiment.config import Limits
from rag_lab.experiment.stage_identities import Readers, roles_used
from rag_lab.models import providers as model_providers
from rag_lab.models import shared
from rag_lab.models.card.weight_facts import downloaded_folder
from rag_lab.models.config import alternatives
from rag_lab.models.failover import missing_requirement
from rag_lab.models.prices import EXAMPLE, Price, price, user_file
from rag_lab.models.weights import find
from rag_lab.redaction import redact_value

CHAT_ROLES = ("understanding", "hyde", "generation", "judge")

_KINDS = {
    "embedding": model_providers.EMBEDDERS,
    "cross_encoder": model_providers.CROSS_ENCODERS,
    "likelihood": model_providers.QUERY_LIKELIHOODS,
}  # others chat
_OF_WEIGHTS = ("transformers", "unsloth", "sentence_transformers")


def models_used(config: PipelineConfig, metrics: Iterable[str] | None = None) -> dict[str, str]:
    """Return the role and `provider:name` of every model that this pipeline uses; roles that are off are left out.

    The generation model counts the tokens of the context where no answer is generated, too: where one of `metrics`
    reads the context, or somebody looks at it (None).
    """
    contexts, embeds = metrics is None, False
    for metric in metrics or ():
        with suppress(ConfigError):  # which is said where metrics are checked
            info = parse_name(metric).info
            # An answer is read wherever there is one; a context also where nothing is answered.
            contexts = contexts or ("passages" in info.reads and "answer" not in info.needs)
            embeds = embeds or "embeddings" in info.needs
    roles = roles_used(config, Readers(contexts=contexts)) | ({"embedding"} if embeds else set())
    return {role: name for role, name in config.models.model_dump().items() if role in roles}


def models_asked(config: PipelineConfig, metrics: Iterable[str]) -> dict[str, str]:
    """Return the same without a generation model that is never called, as its tokenizer alone is used."""
    used = models_used(config, metrics)
    return {role: name for role, name in used.items() if role != "generation" or config.answer.asks_model}


def kind_of_role(role: str) -> Kind:
    """Return the kind of model that plays a role, a key of `models` or `judge`."""
    return _KINDS.get(role, model_providers.CHAT_MODELS)


def model_problem(role: str, text: str) -> str:
    """Return why the model `text` cannot play `role` (a key of `models`, or `judge`) here, in one sentence, or ''.

    Of `first | second` one must be able to, and no name may be malformed.
    """
    kind, names = kind_of_role(role), alternatives(text)
    malformed: list[tuple[str, str]] = []
    for name in names:
        try:
            if model_providers.split_name(name, kind)[0] in kind.built_in:
                model_providers.ModelSpec.parse(name, kind)
            else:
                shared.model_of(kind, name)
        except ModelError as error:
            malformed.append((name, str(error)))
    missing = []
    if not malformed:
        missing = [(name, why) for name in names if (why := _blindness(role, name) or missing_requirement(kind, name))]
    found = malformed[:1] or (missing if len(missing) == len(names) else [])
    key = role if role == "judge" else f"models.{role}"
    return "; ".join(f"{key} ({redact_value(name)}): {problem}" for name, problem in found)


def _blindness(role: str, name: str) -> str:
    """Return why a model that reads pages cannot see them, or ''."""
    provider, _, _ = model_providers.split_name(name, model_providers.CHAT_MODELS) if role == "vision" else ("", "", "")
    providers = model_providers.providers_of(model_providers.CHAT_MODELS)
    if provider not in providers or providers[provider].sees_images:
        return ""
    seeing = ", ".join(sorted(name for name, other in providers.items() if other.sees_images))
    return f"the provider {provider} shows no images to a model; allowed are {seeing}."


def limit_problems(limits: Limits, models: Iterable[tuple[str, str]]) -> list[str]:
    """Return why a limit cannot be kept, one sentence each; `models` are the roles with their models."""
    if limits.cost_usd is None:
        return []
    problems = []
    chat = (name for role, spec in models if role in CHAT_ROLES for name in alternatives(spec))
    for spec in sorted({*chat}):
        try:
            is_unknown = price_of(spec) is None
        except ModelError:
            continue  # told elsewhere
        if is_unknown:
            where = user_file() or "a file prices.toml in the home folder"
            problems.append(
                f"limits.cost_usd needs a price for {spec}, and none is known; add one to {where}:\n{EXAMPLE}"
            )
    return problems


def embedding_price(spec: str) -> Price | None:
    """Return the price of what an embedding model reads; None where it costs nothing, or no table has a price."""
    model: Any = shared.embedder(spec)
    return price(model.provider, model.name, writes=False) if getattr(model, "priced", False) else None


def price_of(spec: str) -> Price | Literal["free"] | None:
    """Return the price of a chat model's calls, 'free' where they cost nothing, None where no table has a price.

    Raises:
        ModelError: if there is no such model.
        ConfigError: if the user's price table cannot be read.
    """
    model: Any = shared.chat_model(spec)
    return price(model.provider, model.name) if getattr(model, "priced", False) else "free"


@dataclass(frozen=True, slots=True)
class PresetState:
    """A preset, and why it cannot run here, a sentence each; none where it can."""

    name: str
    lacks: tuple[str, ...]


def shipped_presets() -> list[PresetState]:
    """Return the state of each preset, in order of their names."""
    found = []
    for path in sorted(checkout_file("experiments/presets").glob("*.yaml")):
        used, lacks = models_used(PipelineConfig.load(path)), list[str]()
        for model in dict.fromkeys(used.values()):
            first, *others = [role for role, other in used.items() if other == model]
            roles = "|".join([first, *others])
            if problem := model_problem(first, model):
                lacks.append(problem.replace(f"models.{first}", f"models.{roles}"))
            else:
                missing = [_not_downloaded(roles, name) for name in alternatives(model)]
                lacks += missing if all(missing) else []
        found.append(PresetState(path.stem, tuple(dict.fromkeys(lacks))))
    return found


def _not_downloaded(role: str, model: str) -> str:
    """Return that weights of the hub have not been downloaded, which the first use would do, or ''."""
    provider, name, _ = model_providers.split_name(model, model_providers.CHAT_MODELS)
    source = find(name) if provider in _OF_WEIGHTS else None
    if source is None or not source.on_hub or downloaded_folder(source.location):
        return ""
    return f"models.{role}: {source.location} has not been downloaded; its first use fetches it from the model hub."
