"""What a variant's results depend on, so that a resumed sweep knows which variants are whole."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import rag_lab
from rag_lab._kit.digest import digest
from rag_lab._kit.module_files import modules_from
from rag_lab.evaluation.metric import Tools
from rag_lab.evaluation.registry import build_metric
from rag_lab.experiment.design import Variant
from rag_lab.experiment.plan import Plan


def run_identities(plan: Plan, notebook: Path) -> dict[str, str]:
    """Return for each variant's id a digest of all that can change its results.

    That is pipeline, data, questions, metrics, judge, the package's code and the notebook.
    """
    shared = {
        "dataset": plan.dataset.digest,
        "questions": plan.questions,
        "answered": plan.answered,
        "metrics": _metrics(plan),
        "metric_embedding": plan.expansion.baseline.config.models.embedding,
        "judge": plan.experiment.judge,
        "judge_language": plan.experiment.judge_language,
        "repeats": plan.experiment.repeats,
        "code": code_digest(),
        "notebook": hashlib.sha256(notebook.read_bytes()).hexdigest(),
    }
    with modules_from(plan.folder):
        return {v.variant_id: digest(shared | _of_variant(v)) for v in plan.variants}


def _of_variant(variant: Variant) -> dict[str, Any]:
    """Return its configuration, and the texts of the files that it names as prompts."""
    texts = {place: prompt.digest for place, prompt in variant.config.prompts.own().items()}
    return {"config": variant.config.model_dump(), **({"prompts": texts} if texts else {})}


def _metrics(plan: Plan) -> list[Any]:
    """Return the metrics by name, those of one's own also by their source."""
    with modules_from(plan.folder):
        given = zip(plan.metrics, plan.experiment.metrics, strict=True)
        return [dict(build_metric(name, Tools()).identity()) if known.is_custom else name for known, name in given]


def code_digest() -> str:
    """Return the SHA-256 of the package's Python files."""
    package = Path(rag_lab.__file__).parent
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        found.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
