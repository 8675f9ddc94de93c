"""Sources that list all their keys: a folder, a SQL database by SQLAlchemy, and a bucket of S3 by s3fs."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, ClassVar

from rag_lab._kit.digest import digest
from rag_lab.corpus.folder import is_ignored, refusal, sources_below
from rag_lab.redaction import one_line
from rag_lab.sources.source import Content, Entry, Source, SourceDown, UnusableItem

_ROWS = 1000  # fetched at a time
_LOOK_S = 1.0  # how long a wait for a notice lasts before it looks whether to end
_CONNECT_S = 10.0
_LONGEST_SUFFIX = 20  # characters, so that it can be a file's


@dataclass(frozen=True, eq=False)
class FolderSource(Source):
    """The files below a folder, by their paths; size and time of a file are its fingerprint."""

    path: Path
    suffixes: tuple[str, ...] = ()  # of the files that are taken; all where there are none
    version: ClassVar[int] = 1

    def entries(self, cursor: str, keys: Collection[str] = ()) -> Iterator[Entry]:
        """Yield the files that are there now."""
        folder = self.path.expanduser()
        if not folder.is_dir():
            raise OSError(f"there is no folder {folder}")
        names, closed = ([key for key in keys if (folder / key).is_file()], []) if keys else sources_below(folder)
        if closed:  # what lies below is not known, so it is not gone
            raise OSError(str(closed[0]))
        for name in names:
            if keys and any(is_ignored(folder / part) for part in [Path(name), *Path(name).parents][:-1]):
                continue
            file = folder / name
            if self.suffixes and file.suffix.lower() not in self.suffixes:
                continue
            if reason := refusal(file, folder):
                yield Entry(name.encode(errors="backslashreplace").decode(), problem=reason)
                continue
            status = file.stat()
            yield Entry(name, f"{status.st_size}:{status.st_mtime_ns}:{status.st_ino}", status.st_mtime, raw=file)

    def contents(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Content | UnusableItem]]:
        """Yield the path of each file that is still there."""
        yield from ((entry, entry.raw) for entry in entries if entry.raw.is_file())

    def watch(self, changed: Callable[..., object], stop: Event) -> None:
        """Call `changed` with the files that changed."""
        from watchfiles import watch

        folder = self.path.expanduser().resolve()
        for events in watch(folder, stop_event=stop, debounce=200, step=50, raise_interrupt=False):
            changed(*{Path(path).relative_to(folder).as_posix() for _, path in events})


@dataclass(frozen=True, eq=False)
class SqlSource(Source):
    """The rows of `query`, one an item.

    Where `version` names a column, keys and versions alone are listed, and rows are read that differ; it must differ
    wherever the row does. Without it, all rows are read at each listing.
    """

    url: str
    query: str
    key: str
    version_column: str = ""
    notify: str = ""  # PostgreSQL: the channel of which a NOTIFY says that rows changed
    version: ClassVar[int] = 1

    @cached_property
    def _engine(self) -> Any:
        from sqlalchemy import create_engine

        return create_engine(self.url, pool_pre_ping=True, hide_parameters=True)

    def _rows(self, columns: Sequence[str], raw: Collection[Any] = (), texts: Collection[str] = ()) -> Iterator[Any]:
        """Yield the rows of the query, with these columns or all, a thousand at a time; of some keys, or texts."""
        from sqlalchemy import String, cast, column, select, text

        known: list[Any] = [column(name) for name in dict.fromkeys([self.key, *columns])]
        # Names are qualified: SQLite takes one that is quoted and no column for a text.
        listed = text(self.query.strip().rstrip(";")).columns(*known).subquery("listed")
        wanted: list[Any] = [listed.c[name] for name in columns] or [text("*")]
        found = select(*wanted).select_from(listed)
        if raw:
            found = found.where(listed.c[self.key].in_(raw))
        if texts:
            found = found.where(cast(listed.c[self.key], String).in_(texts))
        with self._engine.connect() as connection:
            rows = connection.execution_options(yield_per=_ROWS).execute(found)
            yield from rows if columns else rows.mappings()

    def entries(self, cursor: str, keys: Collection[str] = ()) -> Iterator[Entry]:
        """Yield the key and the version of each row."""
        for row in self._rows([self.key, self.version_column] if self.version_column else (), texts=keys):
            key, version = row if self.version_column else (row[self.key], "")
            if key is None or version is None:
                yield Entry(f"{key}", problem="the row has no key or no version; fill both columns.")
            elif self.version_column:
                moment = version.timestamp() if hasattr(version, "timestamp") else version
                yield Entry(str(key), str(version), moment if isinstance(moment, int | float) else None, raw=key)
            else:
                record = dict(row)
                yield Entry(str(key), digest({name: repr(value) for name, value in record.items()}), content=record)

    def contents(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Content | UnusableItem]]:
        """Yield the rows with these keys; of two with one key the first."""
        waiting = {entry.raw: entry for entry in entries}
        for row in self._rows((), waiting) if waiting else ():
            if entry := waiting.pop(row[self.key], None):
                yield entry, dict(row)

    def watch(self, changed: Callable[..., object], stop: Event) -> None:
        """Call `changed` at each NOTIFY on the channel, where one is named; its payload is the key of a row."""
        if not self.notify:
            return
        import psycopg
        from psycopg.sql import SQL, Identifier

        address = self._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(SQL("LISTEN {}").format(Identifier(self.notify)))
            changed()  # what was notified before is not heard
            while not stop.is_set():
                for notice in connection.notifies(timeout=_LOOK_S):
                    changed(*filter(None, [notice.payload]))


@dataclass(frozen=True, eq=False)
class S3Source(Source):
    """The objects of a bucket, by their keys; the ETag and the size of one are its fingerprint."""

    bucket: str
    prefix: str = ""
    suffixes: tuple[str, ...] = ()  # of the objects that are taken; all where there are none
    endpoint_url: str = ""  # of a service other than Amazon's
    access_key: str = ""  # with `secret_key`; without them what AWS's own variables and files say
    secret_key: str = ""
    version: ClassVar[int] = 1

    @cached_property
    def _service(self) -> tuple[Any, TemporaryDirectory[str]]:  # and where files wait for the corpus
        from s3fs import S3FileSystem

        once = {"retries": {"max_attempts": 0}, "connect_timeout": _CONNECT_S}  # a source that is down is tried again
        names = {"key": self.access_key, "secret": self.secret_key, "endpoint_url": self.endpoint_url}
        given = {name: value for name, value in names.items() if value}
        return S3FileSystem(**given, config_kwargs=once, skip_instance_cache=True), TemporaryDirectory()

    def entries(self, cursor: str, keys: Collection[str] = ()) -> Iterator[Entry]:
        """Yield the objects that are there now, page by page."""
        service, behind = self._service[0], dict[str, str]()
        while True:
            try:
                page = service.call_s3("list_objects_v2", Bucket=self.bucket, Prefix=self.prefix, **behind)
            except (FileNotFoundError, PermissionError) as error:
                where = self.endpoint_url or "Amazon S3"
                raise SourceDown(f"{where} does not list the bucket {self.bucket!r}: {one_line(str(error))}") from error
            for found in page.get("Contents", ()):
                suffix = PurePosixPath(found["Key"]).suffix.lower()
                is_folder = found["Key"].endswith("/")  # as consoles make them
                if is_folder or (self.suffixes and suffix not in self.suffixes):
                    continue
                size, moment = found["Size"], found["LastModified"].timestamp()
                yield Entry(found["Key"], f"{found['ETag']}:{size}", moment, raw=suffix, n_bytes=size)
            if not page["IsTruncated"]:
                return
            behind = {"ContinuationToken": page["NextContinuationToken"]}

    def contents(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Content | UnusableItem]]:
        """Yield a file of each object that is still there; they stay until others are asked for."""
        service, folder = self._service
        for before in Path(folder.name).iterdir():
            before.unlink()
        for n, entry in enumerate(entries):
            file = Path(folder.name) / f"{n}{entry.raw[:_LONGEST_SUFFIX]}"
            try:
                service.get_file(f"{self.bucket}/{entry.key}", str(file))
                yield entry, file
            except FileNotFoundError:
                continue
            except PermissionError as error:
                yield entry, UnusableItem(f"the service does not give it ({one_line(str(error))}); it is asked again.")
