"""What a source is: which keys exist now, each with a fingerprint and an ordinal, and the content of a key.

A source is a frozen dataclass whose fields are the `options` of connectors.yaml. It keeps nothing between two listings
that it could not make again: what was seen is the engine's to keep.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, Protocol, TypeVar

from rag_lab._kit.registry import kinds_of
from rag_lab._kit.wording import counted
from rag_lab.errors import RagLabError
from rag_lab.redaction import one_line

(SOURCES,) = kinds_of(Path(__file__).with_name("modules.yaml"), "rag_lab.sources")

Content = Mapping[str, Any] | Path  # a record, or a file that the corpus reads by its suffix

T = TypeVar("T")


class UnusableItem(RagLabError):  # noqa: N818 - it says what is so
    """One item that can be no document; the sentence says why, without source and key. The others go on."""


class SourceDown(RagLabError):  # noqa: N818 - it says what is so
    """A source that does not answer, or whose listing broke off: it is tried again, and nothing of it is deleted."""


class AsBefore(Exception):  # noqa: N818 - it says what is so
    """A source says without a list that nothing changed behind the cursor."""


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
    cursor: str = ""  # where a log goes on behind it; of a list, what says that it is as before
    n_bytes: int = 0  # of the content, where the listing says so: one that is too large is not fetched


class Source(Protocol):
    """Where documents come from. Whatever it raises beside `UnusableItem` means that the source is down."""

    version: ClassVar[int]
    is_log: bool = False  # it lists what changed behind a cursor; else all keys there are, so that others are gone

    def entries(self, cursor: str, keys: Collection[str] = ()) -> Iterator[Entry]:
        """Yield the keys that exist now, or what a log holds behind `cursor` ('' for its beginning).

        Where `keys` are named, which only a source is asked for whose events do so, those of them alone.
        """
        ...

    def contents(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Content | UnusableItem]]:
        """Yield the content of each key; one that is gone meanwhile is left out."""
        yield from ()  # of a source whose entries have theirs

    def watch(self, changed: Callable[..., object], stop: Event) -> None:
        """Call `changed`, with the keys where they are known, until `stop`; return at once where nothing can tell."""

    def settle(self, cursor: str) -> None:
        """Do what is to be done once the corpus has everything up to `cursor`."""


def guarded(items: Iterable[T]) -> Iterator[T]:
    """Yield what a source yields; whatever it raises means that it is down."""
    try:
        yield from items
    except (SourceDown, AsBefore):
        raise
    except Exception as error:
        raise SourceDown(f"{type(error).__name__}: {one_line(str(error))}") from error


@dataclass
class Pass:
    """What one look at a source found; `problems` are sentences on single items."""

    source: str
    new: int = 0
    changed: int = 0
    gone: int = 0
    same: int = 0
    problems: dict[str, str] = field(default_factory=dict)  # by key, the first hundred
    n_problems: int = 0
    failure: str = ""
    whole: bool = False  # the listing came to its end

    def __str__(self) -> str:
        parts = [f"{self.new:,} new", f"{self.changed:,} changed", f"{self.gone:,} gone", f"{self.same:,} as before"]
        found = f"{self.source}: {', '.join(parts)}"
        found += f", {counted(self.n_problems, 'item')} left out" if self.n_problems else ""
        return found + (f"; down: {self.failure}" if self.failure else "" if self.whole else "; not all was looked at")

    def note(self, key: str, reason: object) -> None:
        """Keep why an item is left out."""
        self.n_problems += 1
        if len(self.problems) < 100:
            self.problems[key] = one_line(f"{self.source}, key {key[:200]!r}: {reason}", 500)
