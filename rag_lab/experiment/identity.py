"""What a variant's results depend on, so that a resumed sweep knows which variants are whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

import rag_lab
from rag_lab._kit.digest import digest
from rag_lab.experiment.plan import Plan


def run_identities(plan: Plan, notebook: Path) -> dict[str, str]:
    """Return for each variant's id a digest of all that can change its results.

    That is pipeline, data, questions, metrics, judge, the package's code and the notebook.
    """
    shared = {
        "dataset": plan.dataset.digest,
        "questions": plan.questions,
        "answered": plan.answered,
        "metrics": plan.experiment.metrics,
        "metric_embedding": plan.expansion.baseline.config.models.embedding,
        "judge": plan.experiment.judge,
        "judge_language": plan.experiment.judge_language,
        "repeats": plan.experiment.repeats,
        "code": code_digest(),
        "notebook": hashlib.sha256(notebook.read_bytes()).hexdigest(),
    }
    return {v.variant_id: digest(shared | {"config": v.config.model_dump()}) for v in plan.variants}


def code_digest() -> str:
    """Return the SHA-256 of the package's Python files."""
    package = Path(rag_lab.__file__).parent
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        found.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
