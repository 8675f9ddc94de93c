"""Office files are ZIP archives: what is checked before one is unpacked, and how its parts are read."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_lab.corpus.load.loader import LoadError, parsing

_MAX_PARTS = 20_000
_MAX_BYTES = 2**30  # of all parts, pictures included, unpacked
_MAX_PART_BYTES = 100 * 2**20  # of a part, unpacked
_MAX_LIST_BYTES = 10 * 2**20  # of one that lists other parts: each entry of it becomes an object
_MAX_TAGS = 3_000_000  # and attributes, of all parts that are parsed: a thousand pages of text have fewer
_LISTS = (".rels", "[Content_Types].xml")
_MEDIA_SHRINK = 5  # pictures and films are packed already and shrink less than this; text shrinks more
_STRICT = re.compile(rb"([\"'])http://purl\.oclc\.org/ooxml/(\w{1,40})/(\w{1,40}(?:/\w{1,40})?)\1")
_USUAL = rb"\1http://schemas.openxmlformats.org/\2/2006/\3\1"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_ZIP, _OLE = b"PK", b"\xd0\xcf\x11\xe0"


class Archive(zipfile.ZipFile):
    """An Office file, and how many XML tags and attributes may be parsed: a small file can hold millions of them."""

    max_tags = _MAX_TAGS
    n_tags = 0  # so far


@contextmanager
def opened_archive(path: Path, kind: str) -> Iterator[Archive]:
    """Open an Office file whose parts, unpacked, are of a size that can be handled; `kind` is what it should be.

    `zipfile` unpacks no part beyond the size that the archive declares, so the declared sizes can be relied on.

    Raises:
        LoadError: if it is empty, encrypted, damaged, something else, or unpacks to more than is read.
    """
    check_kind(path, kind, _ZIP)
    try:
        archive = Archive(path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise LoadError(f"the {kind} is damaged and cannot be unpacked; replace or remove it.") from None
    with archive:
        parts = archive.infolist()
        size = sum(part.file_size for part in parts)
        if len(parts) > _MAX_PARTS or size > _MAX_BYTES:
            raise LoadError(f"the {kind} unpacks to {len(parts):,} parts of {size / 2**20:,.0f} MiB; it was not read.")
        if any(part.flag_bits & 1 for part in parts):
            raise LoadError(f"the {kind} is encrypted; save it without a password.")
        if large := next((part for part in parts if part.file_size > _most_bytes(part)), None):
            size = large.file_size
            raise LoadError(f"the {kind} unpacks to {size / 2**20:,.0f} MiB of {large.filename}; it was not read.")
        yield archive


def _most_bytes(part: zipfile.ZipInfo) -> int:
    """Return how large a part may be; which parts are parsed is for the file to say, so names promise little."""
    if part.filename.endswith(_LISTS):
        return _MAX_LIST_BYTES
    is_media = "/media/" in part.filename and part.file_size < _MEDIA_SHRINK * part.compress_size
    return _MAX_BYTES if is_media else _MAX_PART_BYTES


def check_kind(path: Path, kind: str, mark: bytes) -> None:
    """Refuse a file that does not begin with `mark`, and say what it is instead."""
    with path.open("rb") as file:
        head = file.read(8)
    if not head:
        raise LoadError(f"the {kind} is empty (0 bytes); replace or remove it.")
    if head.startswith(mark):
        return
    if head.startswith(_OLE):
        raise LoadError(f"the {kind} is encrypted or of the format before 2007; save it anew, without a password.")
    raise LoadError(f"the file is no {kind} although its name ends so; replace, rename or remove it.")


def parsed_part(archive: Archive, name: str, kind: str) -> Any:
    """Return the root element of an XML part, None where the archive has no such part.

    Entities are not expanded and nothing is fetched. The strict form of the format is read as the usual one, which has
    other names for the same.

    Raises:
        LoadError: if the part is damaged, or the parts so far have more tags and attributes than are read.
    """
    from lxml import etree

    if name not in archive.namelist():
        return None
    content = archive.read(name)
    archive.n_tags += sum(map(content.count, (b"<", b'="', b"='")))
    if archive.n_tags > archive.max_tags:
        raise LoadError(
            f"the {kind} has more than {archive.max_tags:,} XML tags and attributes; it was not read, split it."
        )
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    with parsing(kind):
        return etree.fromstring(_STRICT.sub(_USUAL, content), parser)


def own_title(archive: Archive, kind: str) -> str:
    """Return the title that a file says it has, "" where it says none."""
    properties = parsed_part(archive, "docProps/core.xml", kind)
    return str(properties.findtext(_TITLE) or "") if properties is not None else ""
