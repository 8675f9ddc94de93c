"""What a source is: which keys exist now, each with a fingerprint and an ordinal, and the content of a key.

A source is a frozen dataclass whose fields are the `options` of connectors.yaml. It keeps nothing between two listings
that it could not make again: what was seen is the engine's to keep.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, Protocol

from rag_lab._kit.registry import kinds_of
from rag_lab.errors import RagLabError

(SOURCES,) = kinds_of(Path(__file__).with_name("modules.yaml"), "rag_lab.sources")

Content = Mapping[str, Any] | Path  # a record, or a file that the corpus reads by its suffix


class UnusableItem(RagLabError):  # noqa: N818 - it says what is so
    """One item that can be no document; the sentence says why, without source and key. The others go on."""


class SourceDown(RagLabError):  # noqa: N818 - it says what is so
    """A source that does not answer, or whose listing broke off: it is tried again, and nothing of it is deleted."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a source, or what a log says about one."""

    key: str
    fingerprint: str = ""  # another one wherever the content is another
    ordinal: float | None = None  # version, time or offset, for people
    raw: Any = None  # the key as the source has it
    content: Content | None = None  # where the listing holds it already
    is_gone: bool = False  # a log says that the key was deleted
    problem: str = ""  # why it can be no document, as a sentence
    cursor: str = ""  # where a log goes on behind it


class Source(Protocol):
    """Where documents come from. Whatever it raises beside `UnusableItem` means that the source is down."""

    version: ClassVar[int]
    is_log: ClassVar[bool] = False  # it lists what changed behind a cursor; else all keys there are: others are gone

    def entries(self, cursor: str) -> Iterator[Entry]:
        """Yield the keys that exist now, or what a log holds behind `cursor` ('' for its beginning)."""
        ...

    def contents(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Content | UnusableItem]]:
        """Yield the content of each key; one that is gone meanwhile is left out."""
        yield from ()  # of a source whose entries have theirs

    def watch(self, changed: Callable[[], None], stop: Event) -> None:
        """Call `changed` whenever something may have changed, until `stop`; return at once where none can tell."""

    def settle(self, cursor: str) -> None:
        """Do what is to be done once the corpus has everything up to `cursor`."""
