"""A job as it can be sent to another machine, without paths of the one that sends it, and its results as one text."""

import base64
import io
import json
import os
import re
import shutil
import uuid
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import rag_lab
from rag_lab._kit import digest, registry
from rag_lab.data.dataset import STATES_VARIABLE, Dataset
from rag_lab.errors import DatasetError, RagLabError
from rag_lab.experiment.config import NOTEBOOK, SAYS, checkout_file
from rag_lab.experiment.executors.local import Done, Job, Origin
from rag_lab.experiment.manifest import code_digest
from rag_lab.memory import results
from rag_lab.memory.ledger import LEDGER_VARIABLE, PAYER_VARIABLE

# Of a job's environment; the rest is of the machine.
_SENT = (LEDGER_VARIABLE, PAYER_VARIABLE, results.RETRY_VARIABLE, STATES_VARIABLE)
_DATASET, _OUT = "dataset", "out"
MOST_BYTES = 1 << 30  # of the files of one job, unpacked
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # of a file, which lies in no folder


@dataclass(frozen=True, slots=True)
class Task:
    """A job for any machine; `cold` and `cell_minutes` as in `Job`."""

    name: str  # of the variant
    origin: Origin
    values: Mapping[str, Any]  # parameters that are no paths
    places: Mapping[str, str]  # parameters that are: the dataset's, or that of the folder for results
    files: Mapping[str, tuple[str, str]]  # by parameter: where a file lies from the folder for results, and its text
    environment: Mapping[str, str]
    modules: str  # the folder of custom modules
    versions: Mapping[str, str]  # what must be the same where it runs, by what it is called in a sentence
    cold: bool
    cell_minutes: float

    @classmethod
    def of(cls, job: Job) -> "Task":
        """Return the task of a job."""
        if job.origin is None:
            raise RagLabError(f"{job.name} cannot run on another machine; use --executor local.")
        out = job.output.parent
        values, places, files = dict[str, Any](), dict[str, str](), dict[str, tuple[str, str]]()
        known = {job.origin.dataset_path: _DATASET, str(out): _OUT}
        for name, value in job.parameters.items():
            path = Path(value) if isinstance(value, str) else Path()
            if str(value) in known:
                places[name] = known[str(value)]
            elif path.is_absolute() and path.is_file():
                lies = path.name if path.parent == out else name
                if path.parent == out.parents[1]:  # as the plan's does
                    lies = f"../../{path.name}"
                files[name] = (lies, path.read_text(encoding="utf-8"))
            else:
                values[name] = value
        environment, modules = {n: job.environment[n] for n in _SENT if n in job.environment}, registry.modules_folder()
        versions = _versions(job.notebook, modules)
        of_run = (environment, str(modules), versions, job.cold, job.cell_minutes)
        return cls(job.name, job.origin, values, places, files, *of_run)

    def job(self, folder: Path, dataset: str = "", modules: str = "") -> Job:
        """Return the job here, its results to be written below `folder`.

        `dataset` and `modules` are paths on this machine; where empty, the path or name that they have at home. A
        RagLabError where this machine has another version, another corpus, or no sight of the run's ledger.
        """
        beside = modules or self.modules
        here = _versions(checkout_file(NOTEBOOK), Path(beside))
        other = next((what for what, value in self.versions.items() if value and here.get(what) != value), "")
        if other == "custom modules":
            raise RagLabError(SAYS["custom_modules"].format(run=self.origin.run, folder=Path(beside)))
        if other:
            ours, theirs = here[other][:12], self.versions[other][:12]
            raise RagLabError(SAYS["other_version"].format(what=other, ours=ours, run=self.origin.run, theirs=theirs))
        ledger = self.environment.get(LEDGER_VARIABLE, "")
        if ledger and not os.environ.get("RAG_LAB_STORE") and not Path(ledger).parent.is_dir():
            raise RagLabError(SAYS["no_ledger"].format(run=self.origin.run, ledger=ledger))
        out = folder / "variants" / self.name
        out.mkdir(parents=True)
        places = {_OUT: str(out), _DATASET: str(_dataset(self.origin, dataset))}
        paths = {}
        for name, (place, content) in self.files.items():
            path = (out / place).resolve()
            if path.parent not in (out.resolve(), out.resolve().parents[1]):
                raise RagLabError(f"A task names the file {place!r}, which lies outside of its folder; it is not run.")
            path.write_text(content, encoding="utf-8")
            paths[name] = str(path)
        return Job(
            self.name,
            checkout_file(NOTEBOOK),
            out / "notebook.ipynb",
            {**self.values, **{name: places[place] for name, place in self.places.items()}, **paths},
            out / "log.txt",
            {**self.environment, registry.MODULES_VARIABLE: beside},
            self.cold,
            self.cell_minutes,
        )


def _versions(notebook: Path, modules: Path) -> dict[str, str]:
    files = b"\0".join(path.name.encode() + path.read_bytes() for path in sorted(modules.glob("*.py")))
    return {
        "version of rag_lab": rag_lab.__version__,
        "code of rag_lab": code_digest(),
        f"notebook {NOTEBOOK}": sha256(notebook.read_bytes()).hexdigest(),
        "custom modules": sha256(files).hexdigest() if files else "",
    }


def _dataset(origin: Origin, given: str) -> Path:
    """Return where the dataset of a run lies here, which must be the same to the byte."""
    tried = [given] if given else [origin.dataset_path, origin.dataset]
    for name in tried:
        with suppress(DatasetError):
            found = Dataset.load(name)
            if found.digest == origin.dataset_digest:
                return found.location.resolve()
            raise RagLabError(SAYS["other_dataset"].format(found=found.location, origin=origin))
    raise RagLabError(SAYS["no_dataset"].format(origin=origin, tried=", ".join(tried)))


class BadArchiveError(RagLabError):
    """What should be the results of a job is not."""


def pack(done: Done) -> str:
    """Return the files that a job has made, and how it ended."""
    folder = done.job.output.parent
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and _NAME.fullmatch(path.name)]
    if (size := sum(path.stat().st_size for path in files)) > MOST_BYTES:
        raise BadArchiveError(SAYS["large_results"].format(size=size / 1e9, most=MOST_BYTES / 1e9))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in files:
            archive.write(path, path.name)
    content = packed.getvalue()
    sent = {"sum": sha256(content).hexdigest(), "files": base64.b64encode(content).decode()}
    return json.dumps({"reason": done.reason, "seconds": done.seconds, **sent})


def unpack(text: str, job: Job) -> Done:
    """Replace the folder of `job` by the packed files, all of them or none, and return how it ended elsewhere.

    A BadArchiveError where the text was changed on its way, or holds anything but files of a job.
    """
    folder = job.output.parent
    try:
        known = json.loads(text)
        content = base64.b64decode(known["files"], validate=True)
        done = Done(job, str(known["reason"]), float(known["seconds"]))
        if known["sum"] != sha256(content).hexdigest():
            raise BadArchiveError(f"The results for {folder} were changed on their way; start the sweep again.")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            strange = [entry.filename for entry in archive.infolist() if not _NAME.fullmatch(entry.filename)]
            if strange:
                raise BadArchiveError(f"The results for {folder} hold {strange[0]!r}, which is no file of a variant.")
            if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
                most = f"{MOST_BYTES / 1e9:.1f} GB"
                raise BadArchiveError(f"The results for {folder} are larger than {most}; they are refused.")
            for leftover in folder.parent.glob(f"{folder.name}.partial-*"):  # of a sweep that was killed
                shutil.rmtree(leftover)
            partial = folder.with_name(f"{folder.name}.partial-{uuid.uuid4().hex}")
            partial.mkdir(parents=True)
            try:
                for entry in archive.infolist():  # which checks each file's sum, and that it is as long as it says
                    (partial / entry.filename).write_bytes(archive.read(entry))
                digest.put_in_place(partial, folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise BadArchiveError(f"What came for {folder} are no results ({error}); start the sweep again.") from None
    return done
