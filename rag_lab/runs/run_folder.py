"""The folder of one run: what was planned, what each variant did, what it scored. Reports read it through here.

`plan.json` is written first and `manifest.json` last: a folder without a manifest is an unfinished run.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from rag_lab._kit.digest import whole_file
from rag_lab._kit.section import adapter_of
from rag_lab.errors import DamagedFile, RagLabError
from rag_lab.evaluation.metric import MetricInfo
from rag_lab.evaluation.registry import find_info
from rag_lab.records import MOST_ID_CHARS, Trace
from rag_lab.redaction import hide_known_json, visible_json
from rag_lab.runs.omissions import SamePipeline
from rag_lab.runs.variant_files import Questions, read_traces

if TYPE_CHECKING:
    import pandas as pd

    from rag_lab.config import PipelineConfig


Recorded = TypeVar("Recorded")

MAX_METRICS = 500  # of a run: each is computed, and shown, by itself
PLAN_FILE = "plan.json"
MANIFEST_FILE = "manifest.json"
SCORES_FILE = "scores.parquet"
TRACES_FILE = "traces.jsonl"
CONFIG_FILE = "config.yaml"
NOTEBOOK_FILE = "notebook.ipynb"
RECORD_FILE = "record.json"  # what the variant's notebook says about what it ran
PASSAGES_FILE = "passages.json"  # the texts of its rankings that no trace holds, for the report
DONE_FILE = "done.json"  # written by the sweep once a variant is whole
LEDGER_FILE = "ledger.sqlite"  # every call of a chat model
BILL_FILE = "bill.json"  # what the sweep was going to cost, before it ran
LOCK_FILE = ".lock"
MAX_REPEATS = 100  # of a question
DRAFT_FILE = "manifest.draft.json"  # the manifest while the report is made; becomes manifest.json at the very end
_MOST = 1e30  # that a number is on either side of zero: a run writes no larger one, and sums of these are numbers
NAME_FILE = ".name"


@dataclass(frozen=True, slots=True)
class VariantPlan:
    """One variant as planned: its file-safe id, a label for people, and the dotted keys that differ from the base."""

    variant_id: str
    label: str
    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """A published figure that a run checks: reproduced where the mean is nearer to `value` than `tolerance`."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    paper: str
    metric: str
    variant: str  # an id or a label
    value: Annotated[float, Field(ge=-_MOST, le=_MOST)]
    tolerance: Annotated[float, Field(ge=0, le=_MOST)] = 0.01
    differs: str = ""  # what is another one here than in the paper's set-up, in words


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run on disk. `variants` stand in the order of the plan; `baseline` is one of their ids."""

    path: Path
    name: str
    question: str
    dataset: str
    baseline: str
    metrics: tuple[str, ...]
    repeats: int
    variants: tuple[VariantPlan, ...]
    questions: tuple[str, ...] = ()  # ids asked
    answered: tuple[str, ...] = ()  # ids for which answers are generated, a subset of `questions`
    clusters: str = "none"  # which questions are not independent of each other, see `data.clusters`
    left_out: dict[str, int] = field(default_factory=dict)  # questions not asked, by reason; see `runs.omissions`
    own_metrics: dict[str, MetricInfo] = field(default_factory=dict)  # as planned: who reads a run imports none
    design: str = ""  # which combinations were planned; "" where an older plan does not say it
    pairs: tuple[tuple[str, str], ...] = ()  # (variant, against): what the design declares; else each and the baseline
    margins: dict[str, float] = field(
        default_factory=dict
    )  # by metric: the loss that may be borne; see `runs.human_input`
    post_hoc_margins: tuple[str, ...] = ()  # metrics whose margin came when variants had been scored
    changed_late: tuple[str, ...] = ()  # what else of the plan was changed then: see `runs.human_input`
    same: tuple[SamePipeline, ...] = ()  # combinations that are not run, since a variant is the same pipeline
    strict: bool = False  # one 5% for all that is concluded, instead of 5% for each family
    claims: tuple[Claim, ...] = ()  # each of a variant's id and a metric of the run
    file: str = ""  # of the experiment, as it was named; "" where there is none

    def __post_init__(self) -> None:
        """Declare each variant against the baseline where no pairs are declared."""
        if not self.pairs:
            others = (plan.variant_id for plan in self.variants if plan.variant_id != self.baseline)
            object.__setattr__(self, "pairs", tuple((variant_id, self.baseline) for variant_id in others))

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """Read the plan in `path`; a RagLabError where that is no run folder, or a link in it leads out of it."""
        path = Path(path)
        refuse_links_out(path)
        try:
            run = _RUN.validate_python(strict_json((path / PLAN_FILE).read_bytes()) | {"path": path})
            reason = run._problem()
            if not reason:
                return run
        except OSError:
            reason = f"it has no {PLAN_FILE}" if path.is_dir() else "there is no such folder"
        except (ValueError, TypeError):
            reason = f"its {PLAN_FILE} is not a plan"
        raise RagLabError(f"{path} is no run folder: {reason}; give a folder written by `rag-lab sweep`.")

    def _problem(self) -> str:
        """Return what no plan can be, or ''."""
        ids = [variant.variant_id for variant in self.variants]
        if not 1 <= self.repeats <= MAX_REPEATS:
            return f"its {PLAN_FILE} asks each question {self.repeats} times, of at most {MAX_REPEATS}"
        if len(self.metrics) > MAX_METRICS:
            return f"its {PLAN_FILE} has {len(self.metrics):,} metrics, where {MAX_METRICS} are the most"
        for what, names in (("variant", ids), ("question", self.questions), ("metric", self.metrics)):
            if n := max((len(name) for name in names if len(name) > MOST_ID_CHARS), default=0):
                return f"a {what} in its {PLAN_FILE} has a name of {n:,} characters, where {MOST_ID_CHARS} are the most"
        if len(set(ids)) < len(ids):
            return f"its {PLAN_FILE} has {len(ids)} variants, of which only {len(set(ids))} have a name of their own"
        if strangers := [
            name for name in ids if Path(name).name != name or set(name) & {"\\", "\0"} or name in ("", "..")
        ]:
            return f"the variant {strangers[0]!r} in its {PLAN_FILE} cannot be the name of a folder"
        if self.baseline not in ids:
            return f"the baseline in its {PLAN_FILE}, {self.baseline!r}, is none of its {len(ids)} variants"
        if strangers := [name for pair in self.pairs for name in pair if name not in ids]:
            return f"a pair in its {PLAN_FILE} names {strangers[0]!r}, which is none of its {len(ids)} variants"
        return ""

    def metric(self, name: str) -> MetricInfo | None:
        """Return what a metric of the run is; None for one that neither the plan nor the registry knows."""
        return self.own_metrics.get(name) or find_info(name)

    def variant_dir(self, variant_id: str) -> Path:
        """Return the folder of one variant, which may not exist yet."""
        return self.path / "variants" / variant_id

    def config(self, variant_id: str) -> PipelineConfig | None:
        """Return the pipeline of a variant, or None where none was written."""
        path = self.variant_dir(variant_id) / CONFIG_FILE
        return _config(path, path.read_bytes()) if path.is_file() else None

    def has_traces(self, variant_id: str) -> bool:
        """Tell whether the variant has run to its end, without reading what it did."""
        return (self.variant_dir(variant_id) / TRACES_FILE).is_file()

    def traces(self, variant_id: str, known: Questions | None = None) -> list[Trace]:
        """Return the variant's traces in the order of the questions; none where it failed or has not run.

        `known` are questions of other variants, which are kept once; see `read_traces`. A DamagedFile where a line is
        no trace, or where traces of the questions planned are missing.
        """
        if not self.has_traces(variant_id):
            return []
        path, n_planned = self.variant_dir(variant_id) / TRACES_FILE, len(self.questions) * self.repeats
        traces = read_traces(path, known)
        if self.questions and len(traces) != n_planned:
            raise DamagedFile(path, f"it holds {len(traces)} traces where {n_planned} are planned")
        return traces

    def passages(self) -> dict[str, str]:
        """Return the texts of ranked passages that nobody read, of all variants, by the id of what was retrieved."""
        paths = (self.variant_dir(variant.variant_id) / PASSAGES_FILE for variant in self.variants)
        return {key: str(text) for path in paths if path.is_file() for key, text in read_json(path).items()}

    def recorded(self, variant_id: str, key: str, kind: type[Recorded], damage: str) -> Recorded | None:
        """Return what a variant's record says under `key`; None where it recorded nothing of it."""
        path = self.variant_dir(variant_id) / RECORD_FILE
        found = read_json(path).get(key) if path.is_file() else None
        try:
            value: Recorded | None = None if found is None else adapter_of(kind).validate_python(found)
        except ValidationError:
            raise DamagedFile(path, damage) from None
        return value

    def scored(self) -> list[str]:
        """Return the variants that a sweep has found whole, in the order of the plan."""
        ids = (variant.variant_id for variant in self.variants)
        return [variant_id for variant_id in ids if (self.variant_dir(variant_id) / DONE_FILE).is_file()]

    def scores(self) -> pd.DataFrame:
        """Return the scores of all variants, one row a (variant, question, metric, repeat).

        While a sweep runs, and after it was stopped, they are those of the variants that are whole. A RagLabError where
        no variant has been scored yet.
        """
        from rag_lab.runs.variant_files import read_scores

        path = self.path / SCORES_FILE
        parts = [self.variant_dir(variant_id) / SCORES_FILE for variant_id in self.scored()]
        if not path.is_file() and not parts:
            raise RagLabError(f"{self.path} has no {SCORES_FILE} yet; run the sweep again and it goes on from there.")
        scores = read_scores(*([path] if path.is_file() else parts))
        ids = [variant.variant_id for variant in self.variants]
        if strangers := sorted(set(scores["variant_id"].unique()) - set(ids)):
            raise DamagedFile(path, f"it holds scores of {strangers[0]}, which is none of the variants planned")
        return scores

    def manifest(self) -> dict[str, Any]:
        """Return the manifest, or nothing while variants are still to run."""
        path = next((path for name in (MANIFEST_FILE, DRAFT_FILE) if (path := self.path / name).is_file()), None)
        manifest = read_json(path) if path else {}
        variants = manifest.get("variants", {})
        if path and not (isinstance(variants, dict) and all(isinstance(one, dict) for one in variants.values())):
            raise DamagedFile(path, "it does not say how variants ended")
        return manifest

    def planned(self) -> dict[str, Any]:
        """Return what `plan.json` says, as JSON values."""
        plan = {name: value for name, value in asdict(self).items() if name != "path"}
        infos = {name: adapter_of(MetricInfo).dump_python(one, mode="json") for name, one in self.own_metrics.items()}
        for info in infos.values():
            info |= {key: sorted(value) for key, value in info.items() if isinstance(value, list)}  # sets, in order
        return plan | {"own_metrics": infos}

    def write_plan(self) -> None:
        """Write `plan.json`, which makes `path` a run folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / PLAN_FILE, self.planned())


_RUN = TypeAdapter(RunFolder)


def write_json(path: Path, value: Any) -> None:
    """Write `value`, JSON or a dataclass, replacing `path` at the end: it is whole, and holds no known secret."""
    if is_dataclass(value):
        value = adapter_of(type(value)).dump_python(value, mode="json")
    text = hide_known_json(json.dumps(value, indent=2, ensure_ascii=False), indent=2)
    with whole_file(path) as partial:
        partial.write_text(visible_json(text) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read the object that `write_json` wrote, or raise a DamagedFile."""
    try:
        value = strict_json(path.read_bytes())
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise DamagedFile(path, "it holds no JSON object")
    return value


def read_record(path: Path, kind: type[Recorded], damage: str) -> Recorded | None:
    """Return the dataclass that `write_json` wrote; None without a file, and a DamagedFile where it holds none."""
    try:
        value: Recorded | None = adapter_of(kind).validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError:
        raise DamagedFile(path, damage) from None
    return value


@lru_cache(maxsize=1024)
def _config(path: Path, written: bytes) -> PipelineConfig:
    """Read a configuration; a report asks for each several times, and YAML takes long to read."""
    from rag_lab.config import PipelineConfig

    return PipelineConfig.load(path)


def strict_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; a ValueError if it is none, too deep, or holds a number that cannot be."""
    try:
        return json.loads(text, parse_constant=_number, parse_float=_number, parse_int=partial(_number, kind=int))
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _number(text: str, kind: type[float] = float) -> float:
    if not -_MOST < float(text) < _MOST:  # a NaN is not, either
        raise ValueError(f"{text:.20} is no number that can be")
    return kind(text)


def refuse_links_out(folder: Path) -> None:
    """Refuse a run folder in which a link leads out of it, or something lies that is neither a file nor a folder."""
    inside = folder.resolve()
    for entry in _entries(folder):
        path = Path(entry.path)
        if entry.is_symlink():
            with suppress(OSError, RuntimeError):  # links that lead to each other
                if path.resolve().is_relative_to(inside):
                    continue
            raise RagLabError(
                f"{path} is a link that leads out of the run, so nothing is read or written there; replace it by what "
                "it leads to, or remove it."
            )
        if not (entry.is_file() or entry.is_dir()):
            raise RagLabError(f"{path} is neither a file nor a folder, as no run has one; remove it.")


def _entries(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:  # a sweep may be at work there
        for entry in found:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path)


def run_name(folder: Path) -> str:
    """Return the name of the run in `folder`, given to it where it has none."""
    if found := known_name(folder):
        return found
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", folder.resolve().name).strip("._-") or "run"
    with whole_file(folder / NAME_FILE) as partial:
        partial.write_text(f"{plain}-{uuid.uuid4().hex[:8]}", encoding="utf-8")
    return known_name(folder)


def known_name(folder: Path) -> str:
    """Return the name of the run in `folder`; '' where it has none."""
    try:
        return (folder / NAME_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
