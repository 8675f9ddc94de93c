"""Every kind of module, in the order of a pipeline, then those of experiments: how one is written and named.

The table in docs/adding_a_module.md shows the same; a test compares them.
"""

from dataclasses import dataclass
from pathlib import Path

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.registry import Kind
from rag_lab.corpus.config import FILE_READERS, SPLITTERS
from rag_lab.evaluation.registry import METRICS
from rag_lab.experiment.design import DESIGNS
from rag_lab.models import providers as models
from rag_lab.sources.source import SOURCES
from rag_lab.stages import steps
from rag_lab.stores.config import VECTOR_STORES


@dataclass(frozen=True, slots=True)
class ModuleKind:
    """One kind as a command names it, with the simple form of a module and the keys that name one."""

    word: str
    kind: Kind
    takes: str  # and returns
    keys: str
    langchain: str = ""  # what `langchain:module:factory` may return, or load with


_KINDS = (
    *(FILE_READERS, SOURCES, SPLITTERS, models.EMBEDDERS, VECTOR_STORES),
    *(steps.UNDERSTANDINGS, steps.REWRITINGS, steps.HYDE_WRITERS, steps.SEARCHES, steps.FUSIONS, steps.RERANKERS),
    *(models.CROSS_ENCODERS, models.QUERY_LIKELIHOODS, models.LATE_INTERACTIONS, models.SPARSE_ENCODERS),
    *(steps.SELECTIONS, steps.CONTEXTS, steps.READERS, models.CHAT_MODELS, METRICS, DESIGNS),
)
MODULE_KINDS = tuple(
    ModuleKind(word, kind, **form)
    for kind, (word, form) in zip(
        _KINDS, read_shipped(Path(__file__).with_name("module_kinds.yaml")).items(), strict=True
    )
)
