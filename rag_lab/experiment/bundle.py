"""A run for others: one file that a stranger can check, and TREC's files for whoever scores rankings.

`bundle` writes the file, and `verify` computes all that it says once more. It is a zip of what reports are made of:
plan, manifest (versions, prompts, digests of data and code), configurations, traces and scores of each question, what
people added, and the report. The texts of documents are left out, unless they are asked for. `numbers.json` holds every
mean, interval, p and sentence. Names stand in order and under one date, so that a run gives the same bytes each time.
"""

import json
import math
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from rag_lab._kit.digest import whole_file
from rag_lab._kit.wording import counted, some_of
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.comparison.tables.reliability import known_judge
from rag_lab.corpus.folder import file_digests
from rag_lab.data.dataset import Dataset
from rag_lab.data.formats import Qrels, qrels_of, run_of, write_qrels, write_run, write_topics
from rag_lab.data.labels import distinct
from rag_lab.errors import RagLabError
from rag_lab.evaluation.judge_check import load_check, save_check
from rag_lab.evaluation.metric import find_gap
from rag_lab.evaluation.retrieval import counted_ranks
from rag_lab.experiment.manifest import code_digest, package_versions
from rag_lab.records import Problem, Trace
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
        why = f"it has no {files.MANIFEST_FILE}; run the sweep to its end first"
        raise RagLabError(f"{run.path} is not finished: {why}.")
    path = Path(target or f"{run.path.resolve().name}{SUFFIX}")
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder, "run")
        _copy(run, copied, documents)
        comparison = read_comparison(copied)
        write_report(comparison)
        files.write_json(copied / NUMBERS_FILE, _numbers(comparison))
        names = sorted(one.relative_to(copied).as_posix() for one in copied.rglob("*") if one.is_file())
        digests = file_digests({name: copied / name for name in names})
        listed = {"format": FORMAT, "documents": documents, "files": digests}
        files.write_json(copied / LIST_FILE, listed)
        with whole_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in (LIST_FILE, *names):
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), (copied / name).read_bytes(), 8, 9)
    return path


def _copy(run: files.RunFolder, target: Path, documents: bool) -> None:
    target.mkdir()
    for source in (one for pattern in _OF_RUN for one in run.path.glob(pattern)):
        if source.is_file() and source.name not in _NOT_OF_RUN:
            shutil.copyfile(source, target / source.name)
    for plan in run.variants:
        copied = target / "variants" / plan.variant_id
        copied.mkdir(parents=True)
        for name in (*_OF_VARIANT, *([files.PASSAGES_FILE] if documents else [])):
            if (source := run.variant_dir(plan.variant_id) / name).is_file():
                shutil.copyfile(source, copied / name)
        if traces := run.traces(plan.variant_id):
            write_traces(copied / files.TRACES_FILE, traces if documents else map(_without_documents, traces))
    language = str(run.manifest().get("judge_language") or "")
    judges = {*run.scores()["judge"].dropna()} - {""}  # whose trials the report shows, which lie in the home folder
    for judge in judges:
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
    tables = {name: [asdict(table) for table in some] for name, some in named_tables(comparison).items()}
    found = {
        "means and intervals": comparison.summary.to_dict("records"),
        "differences, intervals and p": comparison.differences.to_dict("records"),
        "effects, intervals and p": comparison.effects.table.to_dict("records"),
        "sentences": [*conclusions(comparison), *(text for _, texts in box.lines for text in texts), *box.details],
        "cells of tables": [tables],
    }
    return dict(json.loads(json.dumps(_plain(found), default=str)))


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
        digests_now = file_digests({name: copied / name for name in listed})
        wrong = [name for name, digest in listed.items() if digests_now[name] != digest]
        before = {name: (copied / name).read_bytes() for name in pages}
        written = files.read_json(copied / NUMBERS_FILE)
        comparison = read_comparison(copied)
        numbers = []
        for name, value in _numbers(comparison).items():
            different, n = list(_differences(written.get(name), value, "")), _n_leaves(value)
            seen = f"{len(different):,} of {n:,}: {some_of(different, _NAMED)}" if different else f"{n:,} compared"
            numbers.append(Check(name, not different, seen))
        write_report(comparison)
        now = {name: (copied / name).read_bytes() if (copied / name).is_file() else None for name in pages}
        others = [name for name in pages if now[name] != before[name]]
        # What is here beside what the run had: data, code and packages.
        manifest, here, found = comparison.manifest, "", package_versions()
        data, versions = manifest.get("dataset", {}), manifest.get("versions", {})
        with suppress(RagLabError):
            here = Dataset.load(str(data.get("name"))).digest
        is_same = here == data.get("digest")
        digests = f"{str(data.get('digest'))[:12]}{f', here {here[:12]}' if here and not is_same else ''}"
        pairs = ((name, one, found.get(name, "none")) for name, one in versions.items() if found.get(name) != one)
        unlike = [f"{name} {one}, here {ours}" for name, one, ours in pairs]
        checks = [
            Check("files", not wrong, some_of(wrong, _NAMED) or f"{len(listed):,}, by SHA-256"),
            *numbers,
            Check("report", not others, some_of(others, _NAMED) or f"{counted(len(pages), 'page')}, to the byte"),
            Check("data set", is_same if here else None, f"{data.get('name')} {digests}", True),
            Check("code", code_digest() == manifest.get("code"), f"commit {str(manifest.get('commit'))[:12]}", True),
            Check("packages", not unlike, some_of(unlike, _NAMED) or counted(len(versions), "version"), True),
        ]
    return Verification(path.name, tuple(checks))


def _unpack(path: Path, target: Path) -> dict[str, str]:
    """Write the files of a bundle below `target` and return their digests; no name leads out of it."""
    refused = f"{path} is no bundle of a run"
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            n_bytes = sum(one.file_size for one in entries)
            if len(entries) > MOST_FILES or n_bytes > MOST_BYTES:
                held = f"{len(entries):,} files of {n_bytes:,} bytes"
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
        why = f"it has no {LIST_FILE} of format {FORMAT}"
        raise RagLabError(f"{refused}: {why}; give a file written by `rag-lab bundle`.")
    if missing := [name for name in names if not (target / PurePosixPath(name)).is_file()]:
        raise RagLabError(f"{path} is damaged: {some_of(missing, _NAMED)} is not in it; ask for the file again.")
    return {str(name): str(digest) for name, digest in names.items()}


def _n_leaves(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return sum(map(_n_leaves, inner)) if isinstance(value, dict | list) else 1


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


def export_run(run: files.RunFolder, target: Path | str) -> tuple[list[Path], list[Problem]]:
    """Write the run's `topics.txt` and `qrels.txt`, and a ranking a variant; return the rankings' paths, as planned.

    A ranking is called `<variant>.run`, with repeats `<variant>.1.run` and so on. A variant without traces has none.
    The problems name, for each ranking, the questions that it scores otherwise than the report does.
    """
    finished = {one.variant_id: run.traces(one.variant_id) for one in run.variants if run.has_traces(one.variant_id)}
    target = Path(target)
    if not finished:
        raise RagLabError(f"{run.path} has no traces yet: run its sweep first.")
    questions = [trace.question for trace in next(iter(finished.values())) if trace.repeat == 0]
    qrels = qrels_of(questions)
    try:
        target.mkdir(parents=True)
        write_topics(target / "topics.txt", questions)
        write_qrels(target / "qrels.txt", qrels)
        written, problems = list[Path](), list[Problem]()
        for variant_id, traces in finished.items():
            for repeat in range(run.repeats):
                name = variant_id if run.repeats == 1 else f"{variant_id}.{repeat + 1}"
                of_repeat = [trace for trace in traces if trace.repeat == repeat]
                written.append(target / f"{name}.run")
                write_run(written[-1], run_of(of_repeat), name)
                problems += _other_ranks(written[-1], of_repeat, qrels)
    except FileExistsError:
        raise RagLabError(f"{target} exists and is never overwritten; choose another name or remove it.") from None
    except OSError as error:
        raise RagLabError(f"Cannot write {target}: {error.strerror}; choose another place.") from None
    return written, problems


def _other_ranks(path: Path, traces: Sequence[Trace], qrels: Qrels) -> list[Problem]:
    """Return a problem where relevant units stand at other ranks in the report's reckoning than in the files."""
    rankings, others = run_of(traces), list[str]()
    for name, trace in {trace.question.question_id: trace for trace in traces}.items():
        if gap := find_gap(trace, frozenset({"ranking", "evidence"})):
            is_alike = gap.status == "not_applicable"
        else:
            found = list(rankings[name])
            ours = counted_ranks(trace.ranked, distinct(trace.question.evidence)).ranks
            theirs = [found.index(unit) + 1 if unit in found else None for unit in qrels.get(name, {})]
            is_alike = (ours.count(None), set(ours)) == (theirs.count(None), set(theirs))
        if not is_alike:
            others.append(name)
    reason = (
        f"{len(others):,} of {counted(len(rankings), 'question')} can have other values than in the report, which "
        f"scores passages, not pages and files, and leaves out what failed: {some_of(others)}."
    )
    return [Problem(str(path), reason)] if others else []
