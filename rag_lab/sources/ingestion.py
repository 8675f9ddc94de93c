"""The engine: it keeps a corpus folder equal to what sources hold, one file a key, and knows nothing of any source.

What was last seen stands in ingest.sqlite in the data set's folder. Before a file is written, its row names it without
a fingerprint; after that the row gets the fingerprint. So what a kill leaves half done is fetched again, or deleted
once its key is gone, and to do it twice is to do it once. Files appear by renaming, whole. A key is gone only where a
listing that came to its end does not name it.

attributes.yaml gets a rule for each label before the first file that it is for is there: no document is public for a
moment. Documents of another label than their connector's stand in a folder of that label.
"""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path

from filelock import FileLock, Timeout

from rag_lab._kit.digest import digest, whole_file
from rag_lab._kit.wording import counted
from rag_lab.corpus.rules import ATTRIBUTES_FILE, CORPUS_FOLDER, Attributes
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.memory.open_store import opened
from rag_lab.redaction import CONTROL
from rag_lab.sources.config import SUFFIX, Connector
from rag_lab.sources.source import AsBefore, Entry, Pass, Source, SourceDown, UnusableItem, guarded

STATE = "ingest.sqlite"
_SCHEMA = Path(__file__).with_name("ingest.sql").read_text(encoding="utf-8")
_REMEDY = "delete it with its -wal and -shm files and the folders of the connectors in the corpus, and ingest again"
_BEGIN, _END = "# What rag-lab ingest wrote; your own rules stand below.\n", "# End of what rag-lab ingest wrote.\n"
_STAGING, _LOCK, _BATCH_LOCK = ".ingest", ".ingest.lock", ".ingest-batch.lock"
_AT_ONCE = 500  # keys: what a kill costs at most, and what a batch holds in memory
_LISTED_AT_ONCE = 5000  # keys compared at a time
_PLAIN = re.compile(r"(?!for-|.*-[0-9a-f]{16}$)[a-z0-9][a-z0-9_-]{0,79}")


class Ingestion:
    """The corpus of one data set and its connectors; as a context it is the only one that writes there."""

    def __init__(
        self, folder: Path, connectors: Iterable[Connector], advance: Callable[[int], object] = lambda n: None
    ):
        self.folder, self.corpus = folder, folder / CORPUS_FOLDER
        self.connectors = {connector.name: connector for connector in connectors}
        self.advance = advance  # is called with the number of keys that were looked at
        self.stops: Callable[[], bool] = lambda: False  # asked between two batches
        self.files = set[str]()  # that are others in the corpus, until somebody clears it; "" stands for thousands

    @contextmanager
    def writing(self) -> Iterator["Ingestion"]:
        """Hold the data set, its folders made, for this process alone."""
        (self.folder / _STAGING).mkdir(parents=True, exist_ok=True)
        self.corpus.mkdir(exist_ok=True)
        try:
            with FileLock(self.folder / _LOCK, timeout=0):
                shutil.rmtree(self.folder / _STAGING, ignore_errors=True)  # of a process that was killed
                (self.folder / _STAGING).mkdir()
                metadata = self.folder / "dataset.yaml"
                if not metadata.exists():
                    metadata.write_text(f"name: {json.dumps(self.folder.resolve().name)}\n", encoding="utf-8")
                with self._state() as state:
                    self._mend(state)
                yield self
        except Timeout:
            raise ConfigError(f"Another rag-lab ingest writes {self.folder} now; end it, or wait.") from None

    def look(self, name: str, source: Source, dry: bool = False, keys: Collection[str] = ()) -> Pass:
        """Compare a source with the corpus and let the corpus follow; with `dry` nothing is written.

        Where `keys` are named, these alone; the pass is whole where all of them are there. None is deleted for that.
        """
        found = Pass(name)
        with self._state(dry) as state:
            state.execute("CREATE TEMP TABLE seen (key TEXT PRIMARY KEY) WITHOUT ROWID")
            try:
                self._follow(state, name, source, found, dry, keys)
            except AsBefore:
                count = "SELECT count(*) FROM documents WHERE source = ? AND path != ''"
                found.whole, found.same = True, state.execute(count, (name,)).fetchone()[0]
            except SourceDown as error:
                found.failure = str(error)
            if not dry:
                moment = datetime.now().timestamp() if found.whole and not keys else None
                state.execute(
                    "UPDATE sources SET seen = coalesce(?, seen), failure = ? WHERE name = ?",
                    (moment, found.failure, name),
                )
                state.commit()
                self._mend(state)
        return found

    def _follow(
        self, state: sqlite3.Connection, name: str, source: Source, found: Pass, dry: bool, keys: Collection[str]
    ) -> None:
        made_of = self.connectors[name].digest
        row = state.execute("SELECT cursor FROM sources WHERE name = ? AND made_of = ?", (name, made_of)).fetchone()
        cursor = row[0] if row else ""  # a log is read from its beginning where its documents are made in another way
        if row is None and not dry:
            state.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, '', NULL, '')", (name, made_of))
            state.commit()
        listing, last = guarded(source.entries(cursor, keys) if keys else source.entries(cursor)), ""
        while chunk := list(islice(listing, _AT_ONCE if source.is_log else _LISTED_AT_ONCE)):
            todo = self._differing(state, name, chunk, found, source.is_log)
            self.files = self.files if len(self.files) <= _LISTED_AT_ONCE else {""}
            for start in range(0, len(todo), _AT_ONCE):
                if self.stops():
                    return
                self._apply(state, name, source, todo[start : start + _AT_ONCE], found, dry)
            self.advance(len(chunk))
            if (last := chunk[-1].cursor) and source.is_log and not dry:
                state.execute("UPDATE sources SET cursor = ? WHERE name = ?", (last, name))
                state.commit()
                source.settle(last)
            if self.stops():
                return
        found.whole = not keys or state.execute("SELECT count(*) FROM seen").fetchone()[0] == len(keys)
        if not source.is_log and not keys:
            absent = "FROM documents WHERE source = ? AND key NOT IN (SELECT key FROM seen)"
            found.gone += state.execute(f"SELECT count(*) {absent} AND path != ''", (name,)).fetchone()[0]
            while not dry and (rows := state.execute(f"SELECT key, path {absent} LIMIT 500", (name,)).fetchall()):
                self._delete(state, name, rows)
            if not dry:  # where an item was left out, all is listed again
                after = "" if found.n_problems else last
                state.execute("UPDATE sources SET cursor = ? WHERE name = ?", (after, name))

    def _differing(
        self, state: sqlite3.Connection, name: str, chunk: list[Entry], found: Pass, is_log: bool
    ) -> list[tuple[Entry, str]]:
        """Return the entries that the corpus does not have so, each with the path of its document ('' for none yet)."""
        latest: dict[str, Entry] = {}
        keys, listed = json.dumps([entry.key for entry in chunk]), "SELECT value FROM json_each(?)"
        seen = {key for (key,) in state.execute(f"SELECT key FROM seen WHERE key IN ({listed})", (keys,))}  # noqa: S608
        for entry in chunk:
            problem = entry.problem or (CONTROL.search(entry.key) and "its key has control characters or half a one.")
            problem = problem or self.connectors[name].too_large(entry.n_bytes)
            if problem:
                found.note(entry.key, problem)
            if not is_log and entry.key in seen:
                found.note(entry.key, "two items have this key, and the first one stands; make keys unique.")
            elif not problem:
                latest.pop(entry.key, None)  # of a log the last one counts
                latest[entry.key] = entry
            seen.add(entry.key)
        if not is_log:
            state.execute(f"INSERT OR IGNORE INTO seen {listed}", (keys,))
        query = f"SELECT key, fingerprint, path FROM documents WHERE source = ? AND key IN ({listed})"  # noqa: S608
        known = {key: (fingerprint, path) for key, fingerprint, path in state.execute(query, (name, keys))}
        made_of, differing = self.connectors[name].digest, []
        for entry in latest.values():
            fingerprint, path = known.get(entry.key, ("", ""))
            if fingerprint == f"{made_of}:{entry.fingerprint}" if not entry.is_gone else not path:
                found.same += 1
            else:
                differing.append((entry, path))
        return differing

    def _apply(
        self,
        state: sqlite3.Connection,
        name: str,
        source: Source,
        todo: list[tuple[Entry, str]],
        found: Pass,
        dry: bool,
    ) -> None:
        paths = {entry.key: path for entry, path in todo}
        gone = [(entry.key, path) for entry, path in todo if entry.is_gone]
        found.gone += len(gone)
        wanted = [entry for entry, _ in todo if not entry.is_gone]
        if dry:
            found.new += sum(not paths[entry.key] for entry in wanted)
            found.changed += sum(bool(paths[entry.key]) for entry in wanted)
            return
        ready = [(entry, entry.content) for entry in wanted if entry.content is not None]
        ready += list(guarded(source.contents([entry for entry in wanted if entry.content is None])))  # type: ignore[arg-type]
        connector = self.connectors[name]
        files: list[tuple[Entry, str | Path, str, str]] = []
        records = {entry.key: content for entry, content in ready if isinstance(content, dict)}
        for entry, text in guarded(connector.texts(ready)):
            try:
                label = connector.label(records.get(entry.key, {}))
                if isinstance(text, RagLabError):
                    raise text
                if isinstance(text, str) and not text.strip():
                    found.note(entry.key, "it has no text; fill it, or mend the template.")
                    found.gone += bool(paths[entry.key])
                    files.append((entry, "", "", ""))
                    continue
            except RagLabError as error:  # what stands in the corpus stays: it is tried again at the next listing
                found.note(entry.key, error)
                continue
            suffix = text.suffix.lower() if isinstance(text, Path) else SUFFIX
            whose = json.dumps([label.namespace, label.permissions])
            files.append((entry, text, whose, f"{_place(name, label)}/{file_name(entry.key)}{suffix}"))
        with batch_lock(self.folder):
            moved = [(entry.key, paths[entry.key]) for entry, _, _, path in files if paths[entry.key] != path]
            self._delete(state, name, [*gone, *moved])
            rows = [(name, entry.key, "", entry.ordinal, path, whose) for entry, _, whose, path in files]
            state.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?)", rows)
            state.commit()
            self._write_rules(state)
            for entry, text, _, path in files:
                if path and self._put(entry, text, path, found):
                    found.changed += bool(paths[entry.key])
                    found.new += not paths[entry.key]
                elif path:
                    continue
                fingerprint = f"{connector.digest}:{entry.fingerprint}"
                state.execute(
                    "UPDATE documents SET fingerprint = ? WHERE source = ? AND key = ?", (fingerprint, name, entry.key)
                )
            state.commit()

    def _put(self, entry: Entry, text: str | Path, path: str, found: Pass) -> bool:
        """Let the document appear, whole."""
        target, partial = self.corpus / path, self.folder / _STAGING / "partial"
        try:
            if isinstance(text, Path):
                shutil.copy2(text, partial)
            else:
                partial.write_bytes(text.encode(errors="replace"))
            target.parent.mkdir(parents=True, exist_ok=True)
            partial.replace(target)
            self.files.add(path)
        except FileNotFoundError:  # the file of a folder went meanwhile
            found.note(entry.key, UnusableItem("it went while it was read; the next listing says what became of it."))
            return False
        return True

    def _delete(self, state: sqlite3.Connection, name: str, rows: list[tuple[str, str]]) -> None:
        """Delete documents and their rows; the file first, so that no file is without a row."""
        self.files |= {path for _, path in rows if path}
        for _, path in rows:
            if path:
                (self.corpus / path).unlink(missing_ok=True)
                with suppress(OSError):  # not empty
                    (self.corpus / path).parent.rmdir()
        state.executemany("DELETE FROM documents WHERE source = ? AND key = ?", [(name, key) for key, _ in rows])
        state.commit()

    def _mend(self, state: sqlite3.Connection) -> None:
        """Forget files that were announced and never written, and write the rules for those that are there."""
        with batch_lock(self.folder):
            announced = state.execute("SELECT source, key, path FROM documents WHERE fingerprint = ''").fetchall()
            absent = [(name, key) for name, key, path in announced if not (self.corpus / path).is_file()]
            state.executemany("DELETE FROM documents WHERE source = ? AND key = ?", absent)
            state.commit()
            self._write_rules(state)

    def _write_rules(self, state: sqlite3.Connection) -> None:
        """Write a rule for each label that a document has, before those that people wrote."""
        lines = []
        for name, label in state.execute("SELECT DISTINCT source, label FROM documents WHERE label != ''"):
            namespace, permissions = json.loads(label)
            place = _place(name, Attributes(namespace, tuple(permissions)))
            rule = {"files": f"{place}/*", "namespace": namespace, "permissions": permissions}
            if namespace or permissions:
                lines.append(f"- {json.dumps({k: v for k, v in rule.items() if v}, ensure_ascii=False)}\n")
        path = self.folder / ATTRIBUTES_FILE
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        own = before.partition(_END)[2] if before.startswith(_BEGIN) else before
        after = f"{_BEGIN}{''.join(sorted(lines))}{_END}{own}" if lines else own
        if after != before and after.strip():
            with whole_file(path) as partial:
                partial.write_text(after, encoding="utf-8")
        elif after != before:
            path.unlink()

    @contextmanager
    def _state(self, dry: bool = False) -> Iterator[sqlite3.Connection]:
        if dry and not (self.folder / STATE).exists():
            with closing(sqlite3.connect(":memory:")) as nothing:
                nothing.executescript(_SCHEMA)
                yield nothing
        else:
            with opened(self.folder / STATE, _SCHEMA, _REMEDY, private=False) as state:
                yield state

    def status(self) -> dict[str, str]:
        """Return of each source how many documents it has, when its last whole listing ended, and why it is down."""
        if not (self.folder / STATE).exists():
            return {}
        found = {}
        with self._state() as state:
            query = """SELECT name, (SELECT count(*) FROM documents WHERE source = name AND path != ''), seen, failure
                FROM sources ORDER BY name"""
            for name, n, seen, failure in state.execute(query):
                known = f"as of {datetime.fromtimestamp(seen):%Y-%m-%d %H:%M:%S}" if seen else "never listed whole"
                found[name] = f"{name}: {counted(n, 'document')}, {known}{failure and f'; down: {failure}'}"
        return found


def _place(name: str, label: Attributes) -> str:
    """Return the folder of a connector's documents with this label: none holds documents of two."""
    usual = label == Attributes(name, (name,))
    return name if usual else f"{name}/for-{digest([label.namespace, label.permissions])[:12]}"


def batch_lock(folder: Path) -> FileLock:
    """Return the lock under which a batch is written: who holds it sees a corpus between two batches."""
    return FileLock(folder / _BATCH_LOCK)


def file_name(key: str) -> str:
    """Return a name for the file of a key that is no path, and another one for each key, letters' case aside."""
    if _PLAIN.fullmatch(key):
        return key
    plain = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")[:60]
    return f"{plain or 'key'}-{sha256(key.encode(errors='surrogatepass')).hexdigest()[:16]}"
