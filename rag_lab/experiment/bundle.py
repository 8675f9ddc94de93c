"""A run as one file that a stranger can check: `bundle` writes it, `verify` computes all that it says once more.

It is a zip of what reports are made of: plan, manifest (versions, prompts, digests of data and code), configurations,
traces and scores of each question, what people added, and the report. The texts of documents are left out, unless they
are asked for. `numbers.json` holds every mean, interval, p and sentence. Names stand in order and under one date, so
that a run gives the same bytes each time.
"""

import hashlib
import json
import math
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from rag_lab._kit.digest import whole_file
from rag_lab._kit.wording import counted, some_of
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.comparison.tables.reliability import known_judge
from rag_lab.data.dataset import Dataset
from rag_lab.errors import RagLabError
from rag_lab.evaluation.judge_check import load_check, save_check
from rag_lab.experiment.manifest import code_digest, package_versions
from rag_lab.records import Trace
from rag_lab.report.page.report_page import HTML_FILE, MARKDOWN_FILE, write_report
from rag_lab.report.sections import named_tables, verdict_box
from rag_lab.runs import run_folder as files
from rag_lab.runs.variant_files import write_traces

SUFFIX = ".ragrun.zip"
LIST_FILE, NUMBERS_FILE = "bundle.json", "numbers.json"
FORMAT = 1
MOST_BYTES, MOST_FILES = 4 * 2**30, 100_000  # unpacked
_OF_RUN = ("*.json", "*.jsonl", "*.yaml", files.SCORES_FILE)
_OF_VARIANT = (files.CONFIG_FILE, files.RECORD_FILE, files.DONE_FILE, files.SCORES_FILE)
_NOT_OF_RUN = {LIST_FILE, NUMBERS_FILE, "live.json", "checked.json", "made_of.json"}
_CLOSE = 1e-9  # relative: the last digits of a sum differ between processors
_NAMED = 5

Numbers = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was computed or read again. `agrees` is None for what is not here to be compared."""

    what: str
    agrees: bool | None
    detail: str
    is_of_machine: bool = False  # another machine may have another one, and the run is as good


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found, in the order of the checks."""

    name: str
    checks: tuple[Check, ...]

    @property
    def agrees(self) -> bool:
        """Whether all that the file says follows from what it holds."""
        return not any(check.agrees is False and not check.is_of_machine for check in self.checks)

    def __str__(self) -> str:
        words = {True: "agrees", False: "DIFFERS", None: "not here"}
        lines = [f"{words[one.agrees]:<9} {one.what}: {one.detail}" for one in self.checks]
        end = "follows from the file" if self.agrees else "does not follow from the file"
        return "\n".join([*lines, f"What {self.name} says {end}."])


def bundle(run_dir: Path | str, target: Path | str | None = None, *, documents: bool = False) -> Path:
    """Write a finished run as one file and return its path; `<name of the folder>.ragrun.zip` here where None.

    With the texts of `documents` the report in it is that of the run, to the byte; without them its passages are blank.

    Raises:
        RagLabError: if the folder is no run, or one that is not finished.
    """
    run = files.RunFolder.open(run_dir)
    if not (run.path / files.MANIFEST_FILE).is_file():
        raise RagLabError(
            f"{run.path} is not finished: it has no {files.MANIFEST_FILE}; run the sweep to its end first."
        )
    path = Path(target or f"{run.path.resolve().name}{SUFFIX}")
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder, "run")
        _copy(run, copied, documents)
        comparison = read_comparison(copied)
        write_report(comparison)
        files.write_json(copied / NUMBERS_FILE, _numbers(comparison))
        names = sorted(one.relative_to(copied).as_posix() for one in copied.rglob("*") if one.is_file())
        listed = {"format": FORMAT, "documents": documents, "files": {name: _sha256(copied / name) for name in names}}
        files.write_json(copied / LIST_FILE, listed)
        with whole_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in (LIST_FILE, *names):
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), (copied / name).read_bytes(), 8, 9)
    return path


def _copy(run: files.RunFolder, target: Path, documents: bool) -> None:
    found = {one.name: one for pattern in _OF_RUN for one in run.path.glob(pattern) if one.is_file()}
    copies = {name: one for name, one in found.items() if name not in _NOT_OF_RUN}
    for plan in run.variants:
        folder, names = run.variant_dir(plan.variant_id), [*_OF_VARIANT, *([files.PASSAGES_FILE] if documents else [])]
        copies |= {f"variants/{plan.variant_id}/{name}": folder / name for name in names if (folder / name).is_file()}
    for plan in run.variants:
        (target / "variants" / plan.variant_id).mkdir(parents=True)
    for name, source in copies.items():
        (target / name).write_bytes(source.read_bytes())
    for plan in run.variants:
        if traces := run.traces(plan.variant_id):
            kept = traces if documents else map(_without_documents, traces)
            write_traces(target / "variants" / plan.variant_id / files.TRACES_FILE, kept)
    language = str(run.manifest().get("judge_language") or "")
    for judge in {*run.scores()["judge"].dropna()} - {
        ""
    }:  # whose trial the report shows, which lies in the home folder
        if check := load_check(known_judge(run.manifest(), judge), language=language):
            save_check(check, target)


def _without_documents(trace: Trace) -> Trace:
    """Return a trace without the texts of passages; places, labels, answers and their quotes stay."""
    asked = trace.question
    passages = tuple(replace(one, text="", parent_text="") for one in trace.passages)
    evidence, others = (tuple(replace(e, context="") for e in some) for some in (asked.evidence, asked.not_relevant))
    question = replace(asked, evidence=evidence, not_relevant=others)
    return replace(trace, question=question, passages=passages, prompt=None)


def _numbers(comparison: Comparison) -> Numbers:
    """Return all that a report says of a run: tables of numbers in full, and as texts what is made of them."""
    box = verdict_box(comparison)
    frames = {
        "means and intervals": comparison.summary,
        "differences, intervals and p": comparison.differences,
        "effects, intervals and p": comparison.effects.table,
    }
    tables = {name: [asdict(table) for table in some] for name, some in named_tables(comparison).items()}
    found: dict[str, Any] = {name: frame.to_dict("records") for name, frame in frames.items()}
    found["sentences"] = [*conclusions(comparison), *(text for _, texts in box.lines for text in texts), *box.details]
    found["cells of tables"] = [tables]
    numbers: Numbers = json.loads(json.dumps(_plain(found), default=str))
    return numbers


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; what is no number is null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def verify(bundled: Path | str) -> Verification:
    """Compute every mean, interval, p, sentence and the report of a bundle once more, and compare.

    Nothing of the file is run, and nothing is written beside it.

    Raises:
        RagLabError: if it is no bundle, or a file in it is damaged.
    """
    path = Path(bundled)
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder, "run")
        listed = _unpack(path, copied)
        pages = [one for one in listed if one.startswith("questions/") or one in (HTML_FILE, MARKDOWN_FILE)]
        wrong = [name for name, digest in listed.items() if _sha256(copied / name) != digest]
        before = {name: (copied / name).read_bytes() for name in pages}
        written = files.read_json(copied / NUMBERS_FILE)
        comparison = read_comparison(copied)
        numbers = []
        for name, value in _numbers(comparison).items():
            different, n = list(_differences(written.get(name), value, "")), sum(1 for _ in _leaves(value))
            found = f"{len(different):,} of {n:,}: {some_of(different, _NAMED)}" if different else f"{n:,} compared"
            numbers.append(Check(name, not different, found))
        write_report(comparison)
        others = [
            name for name in pages if not (copied / name).is_file() or (copied / name).read_bytes() != before[name]
        ]
        checks = [
            Check("files", not wrong, f"{some_of(wrong, _NAMED)}" if wrong else f"{len(listed):,}, by SHA-256"),
            *numbers,
            Check(
                "report",
                not others,
                some_of(others, _NAMED) if others else counted(len(pages), "page") + ", to the byte",
            ),
            *_of_machine(comparison.manifest),
        ]
    return Verification(path.name, tuple(checks))


def _unpack(path: Path, target: Path) -> dict[str, str]:
    """Write the files of a bundle below `target` and return their digests; no name leads out of it."""
    refused = f"{path} is no bundle of a run"
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_FILES or sum(one.file_size for one in entries) > MOST_BYTES:
                held = f"{len(entries):,} files of {sum(one.file_size for one in entries):,} bytes"
                raise RagLabError(f"{path} holds {held}; at most {MOST_FILES:,} of {MOST_BYTES:,} bytes are read.")
            for entry in entries:
                name = PurePosixPath(entry.filename)
                if name.is_absolute() or {"..", ""} & {*name.parts} or "\\" in entry.filename or entry.is_dir():
                    raise RagLabError(f"{refused}: the name {entry.filename!r:.80} in it may lead out of its folder.")
                place = target / name
                place.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, place.open("wb") as file:
                    file.write(source.read(entry.file_size + 1))
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise RagLabError(f"{refused} ({error}); give a file written by `rag-lab bundle`.") from None
    listed = files.read_json(target / LIST_FILE) if (target / LIST_FILE).is_file() else {}
    names = listed.get("files")
    if listed.get("format") != FORMAT or not isinstance(names, dict) or NUMBERS_FILE not in names:
        raise RagLabError(
            f"{refused}: it has no {LIST_FILE} of format {FORMAT}; give a file written by `rag-lab bundle`."
        )
    if missing := [name for name in names if not (target / PurePosixPath(name)).is_file()]:
        raise RagLabError(f"{path} is damaged: {some_of(missing, _NAMED)} is not in it; ask for the file again.")
    return {str(name): str(digest) for name, digest in names.items()}


def _leaves(value: Any) -> Iterable[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        yield value
    else:
        for one in inner:
            yield from _leaves(one)


def _differences(first: Any, second: Any, place: str) -> Iterable[str]:
    """Yield a text for each value that differs: where, what is written, what was computed."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        for key in first:
            yield from _differences(first[key], second[key], f"{place} {key}".strip())
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (one, other) in enumerate(zip(first, second, strict=True), start=1):
            named = " ".join(str(one[key]) for key in ("variant_id", "metric") if isinstance(one, dict) and key in one)
            yield from _differences(one, other, f"{place} {named or number}".strip())
    elif first != second:
        numbers = isinstance(first, float | int) and isinstance(second, float | int)
        if not (numbers and math.isclose(first, second, rel_tol=_CLOSE, abs_tol=_CLOSE)):
            yield f"{place}: {first!r:.60} is written, {second!r:.60} computed"


def _of_machine(manifest: Mapping[str, Any]) -> list[Check]:
    """Compare data, code and packages here with those of the run."""
    data, versions = manifest.get("dataset", {}), manifest.get("versions", {})
    here, found = "", package_versions()
    with suppress(RagLabError):
        here = Dataset.load(str(data.get("name"))).digest
    is_same = here == data.get("digest")
    digests = f"{str(data.get('digest'))[:12]}{f', here {here[:12]}' if here and not is_same else ''}"
    other = [
        f"{name} {one}, here {found.get(name, 'none')}" for name, one in versions.items() if found.get(name) != one
    ]
    return [
        Check("data set", is_same if here else None, f"{data.get('name')} {digests}", True),
        Check("code", code_digest() == manifest.get("code"), f"commit {str(manifest.get('commit'))[:12]}", True),
        Check("packages", not other, some_of(other, _NAMED) if other else counted(len(versions), "version"), True),
    ]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
