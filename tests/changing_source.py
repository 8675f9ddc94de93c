"""Sources that tests change, break and kill."""

from dataclasses import dataclass, field
from typing import ClassVar

from rag_lab.sources.config import Connector
from rag_lab.sources.ingestion import Ingestion
from rag_lab.sources.source import SOURCES, Entry, Source


class Killed(BaseException):
    """The end of a process, in a test."""


@dataclass(eq=False)
class Rows(Source):
    """Records by key; a listing ends in the middle behind `breaks` keys, a fetch kills behind `kills`."""

    rows: dict = field(default_factory=dict)
    breaks: int | None = None
    kills: int | None = None
    fetched: list = field(default_factory=list)
    version: ClassVar[int] = 1

    def entries(self, cursor):
        for n, (key, record) in enumerate(list(self.rows.items())):
            if n == self.breaks:
                raise ConnectionError("the line went dead")
            yield Entry(key, str(record), raw=key)
        if self.breaks is not None and self.breaks >= len(self.rows):
            raise ConnectionError("the line went dead")

    def contents(self, entries):
        for n, entry in enumerate(entries):
            if n == self.kills:
                raise Killed
            self.fetched.append(entry.key)
            yield entry, self.rows[entry.key]


def connector(name="plant", **rest):
    return Connector(name=name, kind=next(iter(SOURCES.built_in)), **rest)


def look(folder, source, dry=False, **rest):
    ingestion = Ingestion(folder, [connector(**rest)])
    if dry:
        return ingestion.look("plant", source, dry=True)
    with ingestion.writing():
        return ingestion.look("plant", source)


def texts(folder, name="plant"):
    """The documents that are there, in order."""
    return sorted(path.read_text() for path in (folder / "corpus" / name).rglob("*") if path.is_file())
