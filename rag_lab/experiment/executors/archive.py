"""The results of a job as one text that can lie in the store, and be unpacked on another machine."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import uuid
import zipfile
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from rag_lab._kit.whole_file import put_in_place
from rag_lab.errors import RagLabError

MOST_BYTES = 1 << 30  # of the files of one job, unpacked
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # of a file, which lies in no folder


class BadArchiveError(RagLabError):
    """What should be the results of a job is not."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended somewhere: why it failed, or '', after how many seconds, and on which machine."""

    reason: str
    seconds: float
    where: str


def pack(folder: Path, ended: Ended) -> str:
    """Return the files of `folder`, and how the job ended that made them.

    Raises:
        BadArchiveError: if they are larger than `MOST_BYTES`.
    """
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and _NAME.fullmatch(path.name)]
    if (size := sum(path.stat().st_size for path in files)) > MOST_BYTES:
        raise BadArchiveError(
            f"The results are {size / 1e9:.1f} GB, and {MOST_BYTES / 1e9:.1f} GB can be sent; ask fewer questions, or "
            "run the sweep with --executor local."
        )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in files:
            archive.write(path, path.name)
    content = packed.getvalue()
    files_text = base64.b64encode(content).decode()
    return json.dumps(asdict(ended) | {"sum": sha256(content).hexdigest(), "files": files_text})


def unpack(text: str, folder: Path) -> Ended:
    """Replace `folder` by the packed files, all of them or none, and return how the job ended.

    Raises:
        BadArchiveError: if it was changed on its way, or holds anything but files of a job.
    """
    try:
        known = json.loads(text)
        content = base64.b64decode(known["files"], validate=True)
        ended = Ended(str(known["reason"]), float(known["seconds"]), str(known["where"]))
        if known["sum"] != sha256(content).hexdigest():
            raise BadArchiveError(f"The results for {folder} were changed on their way; start the sweep again.")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _refuse_strange(archive, folder)
            _extract(archive, folder)
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise BadArchiveError(f"What came for {folder} are no results ({error}); start the sweep again.") from None
    return ended


def _refuse_strange(archive: zipfile.ZipFile, folder: Path) -> None:
    for entry in archive.infolist():
        if not _NAME.fullmatch(entry.filename):
            raise BadArchiveError(f"The results for {folder} hold {entry.filename!r}, which is no file of a variant.")
    if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
        raise BadArchiveError(f"The results for {folder} are larger than {MOST_BYTES / 1e9:.1f} GB; they are refused.")


def _extract(archive: zipfile.ZipFile, folder: Path) -> None:
    for leftover in folder.parent.glob(f"{folder.name}.partial-*"):  # of a sweep that was killed
        shutil.rmtree(leftover)
    partial = folder.with_name(f"{folder.name}.partial-{uuid.uuid4().hex}")
    partial.mkdir(parents=True)
    try:
        for entry in archive.infolist():  # which checks each file's sum, and that it is not longer than it says
            (partial / entry.filename).write_bytes(archive.read(entry))
        put_in_place(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
