"""Which models a pipeline needs, what they cost, and what keeps one from being used. No weights are loaded for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal
from urllib.parse import urlsplit

from rag_lab._kit.registry import Kind
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, ModelError
from rag_lab.evaluation.metric import MetricInfo
from rag_lab.evaluation.registry import parse_name
from rag_lab.experiment.config import Limits
from rag_lab.models import shared
from rag_lab.models.prices import EXAMPLE, Price, price, user_file
from rag_lab.models.providers import (
    CHAT_MODELS,
    CROSS_ENCODERS,
    EMBEDDERS,
    QUERY_LIKELIHOODS,
    Provider,
    providers_of,
)
from rag_lab.models.requirements import cuda_problem, missing_key
from rag_lab.models.spec import ModelSpec, split_name
from rag_lab.models.weights import find
from rag_lab.redaction import redact_value

CHAT_ROLES = ("understanding", "hyde", "generation", "judge")

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_KINDS = {"embedding": EMBEDDERS, "cross_encoder": CROSS_ENCODERS, "likelihood": QUERY_LIKELIHOODS}  # others chat


def asks_understanding(config: PipelineConfig) -> bool:
    """Tell whether the understanding model is asked: to classify and rewrite, or for other phrasings."""
    query = config.query
    understands = query.rewrite == "llm" or query.hyde == "classified"
    return (understands and query.understanding == "llm") or query.phrasings > 0


def models_used(config: PipelineConfig, metrics: Iterable[str] | None = None) -> dict[str, str]:
    """Return the role and `provider:name` of every model that this pipeline uses; roles that are off are left out.

    The generation model counts the tokens of the context where no answer is generated, too: where one of `metrics`
    reads the context, or somebody looks at it (None).
    """
    infos = [info for metric in metrics or () if (info := _info(metric))]
    needed = {
        "embedding": embeds(config) or any("embeddings" in info.needs for info in infos),
        "understanding": asks_understanding(config),
        "hyde": config.query.hyde != "none" and config.query.hyde_writer == "llm",
        "generation": config.answer.is_on or metrics is None or any(map(_reads_context, infos)),
        "cross_encoder": config.rerank.name == "cross_encoder",
        "likelihood": config.rerank.name == "query_likelihood",
        "vision": config.corpus.pdf == "vision",
    }
    return {role: getattr(config.models, role) for role, is_needed in needed.items() if is_needed}


def embeds(config: PipelineConfig) -> bool:
    """Tell whether a search, a splitter, the guard of rewrites or the selection compares embeddings."""
    return (
        config.searches_vectors
        or config.corpus.splitter == "semantic"
        or config.query.rewrite != "none"
        or config.select.diversity == "mmr"
    )


def _reads_context(metric: MetricInfo) -> bool:
    """Tell whether a metric reads the context of a question that is not answered."""
    return "passages" in metric.reads and "answer" not in metric.needs


def _info(metric: str) -> MetricInfo | None:
    try:
        return parse_name(metric).info
    except ConfigError:  # which is said elsewhere
        return None


def model_problem(role: str, text: str) -> str:
    """Return why the model `text` cannot play `role` (a key of `models`, or `judge`) here, in one sentence, or ''."""
    kind = _KINDS.get(role, CHAT_MODELS)
    try:
        if split_name(text, kind)[0] in kind.built_in:
            found = _provider_problem(role, kind, ModelSpec.parse(text, kind))
        else:
            shared.model_of(kind, text)
            found = ""
    except ModelError as error:
        found = str(error)
    return f"{role if role == 'judge' else f'models.{role}'} ({redact_value(text)}): {found}" if found else ""


def _provider_problem(role: str, kind: Kind, spec: ModelSpec) -> str:
    providers = providers_of(kind)
    provider = providers[spec.provider]
    if role == "vision" and not provider.sees_images:
        seeing = ", ".join(sorted(name for name, other in providers.items() if other.sees_images))
        return f"the provider {spec.provider} shows no images to a model; allowed are {seeing}."
    if found := _missing(provider, spec):
        return found
    if not provider.env:
        find(spec.name)
    return ""


def _missing(provider: Provider, spec: ModelSpec) -> str:
    """Return what is not installed or not set. A server on this machine needs no key."""
    is_local = urlsplit(str(spec.options.get("base_url", ""))).hostname in _LOOPBACK
    return (
        provider.missing
        or ("" if is_local else missing_key(provider.env))
        or (cuda_problem(spec.provider) if provider.needs_cuda else "")
    )


def limit_problems(limits: Limits, models: Iterable[tuple[str, str]]) -> list[str]:
    """Return why a limit cannot be kept, one sentence each; `models` are the roles with their models."""
    if limits.cost_usd is None:
        return []
    problems = []
    for spec in sorted({spec for role, spec in models if role in CHAT_ROLES}):
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


def price_of(spec: str) -> Price | Literal["free"] | None:
    """Return the price of a chat model's calls, 'free' where they cost nothing, None where no table has a price.

    Raises:
        ModelError: if there is no such model.
        ConfigError: if the user's price table cannot be read.
    """
    model: Any = shared.chat_model(spec)
    return price(model.provider, model.name) if getattr(model, "priced", False) else "free"
