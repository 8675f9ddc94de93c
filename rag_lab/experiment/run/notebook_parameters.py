"""The names that researchers know, and the configuration keys behind them.

papermill injects scalars only, so a notebook takes these by name and everything else from a YAML file.
"""

from collections.abc import Mapping
from typing import Any

from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.records import QUERY_CLASSES

CLASS_TO_HYDE = "CLASS2HYDE"
NAMES: dict[str, str] = {
    "CHUNK_SIZE": "corpus.chunk_size",
    "CHUNK_OVERLAP": "corpus.chunk_overlap",
    "USE_QUERY_REWRITER": "query.rewrite",
    "USE_HYDE": "query.hyde",
    CLASS_TO_HYDE: "query.class_to_hyde",
    "RETRIEVAL_MODE": "retrieval.mode",
    "BASE_RETRIEVER_K": "retrieval.base_k",
    "HYDE_RETRIEVER_K": "retrieval.hyde_k",
    "RERANKER_INPUT_LIMIT": "rerank.input_limit",
    "USE_RERANKER": "rerank.name",
    "FINAL_K": "rerank.final_k",
    "READER": "answer.name",
    "QWEN3_THINKING_MODE": "answer.thinking",
    "EMBEDDING_MODEL": "models.embedding",
    "UNDERSTANDING_MODEL": "models.understanding",
    "HYDE_MODEL": "models.hyde",
    "GENERATION_MODEL": "models.generation",
}


def to_parameters(config: PipelineConfig) -> dict[str, Any]:
    """Return the scalars by which a notebook takes `config`, in the order of `NAMES`."""
    flat = config.flat()
    values = {name: flat[key] for name, key in NAMES.items()}
    return values | {CLASS_TO_HYDE: ",".join(name for name, gets_it in values[CLASS_TO_HYDE].items() if gets_it)}


def from_parameters(base: PipelineConfig, values: Mapping[str, Any]) -> PipelineConfig:
    """Return `base` with `values` (researchers' names to scalars) put in.

    Raises:
        ConfigError: naming every unknown name, unknown class and impossible value at once.
    """
    problems = [unknown_name("parameter", name, NAMES) for name in values if name not in NAMES]
    changes = {NAMES[name]: value for name, value in values.items() if name in NAMES and name != CLASS_TO_HYDE}
    if CLASS_TO_HYDE in values:
        classes = {part.strip() for part in str(values[CLASS_TO_HYDE]).split(",") if part.strip()}
        problems += [unknown_name("class in CLASS2HYDE", name, QUERY_CLASSES) for name in classes - set(QUERY_CLASSES)]
        changes[NAMES[CLASS_TO_HYDE]] = {name: name in classes for name in QUERY_CLASSES}
    try:
        config = base.override(changes)
    except ConfigError as error:
        complaints = str(error)  # about keys, with the researchers' names before them
        for name, key in NAMES.items():
            complaints = complaints.replace(f"{key}: ", f"{name} ({key}): ")
        raise ConfigError("; ".join([*problems, complaints])) from None
    if problems:
        raise ConfigError("; ".join(problems))
    return config


def parameters_in(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the researchers' names that `namespace` (a notebook's `globals()`) sets, with their values."""
    return {name: namespace[name] for name in NAMES if name in namespace}
