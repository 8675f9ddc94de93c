"""rag_lab: find out which parts of a RAG pipeline earn their keep.

The public names, each loaded on first use. On the ground beside them stands what every room speaks of; a room imports
only those that stand above it, in the order of CONTRIBUTING.md.
"""

from importlib import import_module
from typing import Any

# Public name -> module. Resolved on first use, so that importing the package loads no model library.
_PUBLIC = {
    "Bench": "rag_lab.notebook.bench.bench",
    "Chat": "rag_lab.assistant.chat",
    "Dataset": "rag_lab.data.dataset",
    "Metric": "rag_lab.evaluation.metric",
    "Pipeline": "rag_lab.pipeline",
    "PipelineConfig": "rag_lab.config",
    "Question": "rag_lab.records",
    "RagLabError": "rag_lab.errors",
    "Score": "rag_lab.records",
    "Trace": "rag_lab.records",
    "compare": "rag_lab.experiment.run.compare_pipelines",
    "evaluate": "rag_lab.evaluation.evaluate",
    "label": "rag_lab.notebook.judgements",
    "prefer": "rag_lab.notebook.judgements",
    "profile": "rag_lab.corpus_profile.corpus_profile",
    "rate": "rag_lab.notebook.judgements",
    "review": "rag_lab.notebook.review",
    "status": "rag_lab.notebook.display",
    "sweep": "rag_lab.experiment.run.sweep",
    "talk": "rag_lab.notebook.views.data_view",
    "traced": "rag_lab._kit.observability",
    "write": "rag_lab.assistant.report_writer",
}

__all__ = sorted(_PUBLIC)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rag_lab' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
