"""Conversations by id, kept in the memory of the workbench: a turn is written when asked, and again when answered.

So a kill loses no question, and whoever asks again finds the calls that were made remembered.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag_lab.errors import ConfigError, RagLabError
from rag_lab.memory.open_store import opened_store
from rag_lab.records import Citation

FILE = "sessions.sqlite"
MOST_ID_CHARS = 100
_MEND = "move it away, and conversations begin anew"
_SCHEMA = Path(__file__).with_name("sessions.sql").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class SavedTurn:
    """A question with its answer. `seen` are the files that the answer may repeat: read for it, or for turns before."""

    number: int  # from 1
    question: str
    answer: str | None = None  # None while it is asked, and where its process was killed
    citations: tuple[Citation, ...] = ()
    seen: tuple[str, ...] = ()
    at: float = field(default=0.0, compare=False)  # seconds since 1970


@dataclass(frozen=True)
class Sessions:
    """The conversations of one home. Several processes may go on with one: each turn is kept, in the order asked."""

    home: Path

    @property
    def path(self) -> Path:
        """The file that holds them, where no shared store does."""
        return self.home / FILE

    def begin(self, session: str, person: str, corpus: str) -> None:
        """Make a session, or go on with one of the same person and corpus."""
        if not session.strip() or len(session) > MOST_ID_CHARS or not session.isprintable():
            raise ConfigError(
                f"{session!r:.60} cannot name a session: it takes 1 to {MOST_ID_CHARS} printable characters."
            )
        with opened_store(self.path, _SCHEMA, _MEND) as store, store:
            store.lock()
            found = store.execute("SELECT person, corpus FROM sessions WHERE id = ?", (session,)).fetchone()
            if found is None:
                store.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", (session, person, corpus, time.time()))
        if found is not None and tuple(found) != (person, corpus):
            # The same sentence for another person and another corpus: whose sessions there are is no answer.
            raise ConfigError(
                f"The session {session!r} is not one of this person on these documents; choose another id."
            )

    def latest(self, person: str, corpus: str) -> str | None:
        """Return the session of a person in which was asked last; None where there is none."""
        with opened_store(self.path, _SCHEMA, _MEND) as store:
            row = store.execute(
                "SELECT sessions.id FROM sessions LEFT JOIN turns ON turns.session = sessions.id "
                "WHERE person = ? AND corpus = ? ORDER BY coalesce(turns.at, began) DESC, sessions.id LIMIT 1",
                (person, corpus),
            ).fetchone()
        return None if row is None else str(row[0])

    def turns(self, session: str) -> list[SavedTurn]:
        """Return the turns in the order in which they were asked."""
        with opened_store(self.path, _SCHEMA, _MEND) as store:
            rows = store.execute(
                "SELECT number, question, answer, citations, seen, at FROM turns WHERE session = ? ORDER BY number",
                (session,),
            ).fetchall()
        try:
            return [
                SavedTurn(number, question, answer, tuple(Citation(**one) for one in json.loads(citations)),
                          tuple(json.loads(seen)), at)
                for number, question, answer, citations, seen, at in rows
            ]  # fmt: skip
        except (ValueError, TypeError):
            raise RagLabError(f"{self.path} is damaged: a turn of {session!r} cannot be read; {_MEND}.") from None

    def ask(self, session: str, question: str) -> int:
        """Write down a question; return its number."""
        with opened_store(self.path, _SCHEMA, _MEND) as store, store:
            store.lock()
            (last,) = store.execute(
                "SELECT coalesce(max(number), 0) FROM turns WHERE session = ?", (session,)
            ).fetchone()
            store.execute(
                "INSERT INTO turns VALUES (?, ?, ?, NULL, '[]', '[]', ?)", (session, last + 1, question, time.time())
            )
        return int(last) + 1

    def answer(
        self, session: str, number: int, answer: str, citations: Sequence[Citation], seen: Sequence[str]
    ) -> None:
        """Write down the answer to a question, in place of one that it had."""
        cited = [{"number": c.number, "source": c.source, "page": c.page, "quote": c.quote} for c in citations]
        with opened_store(self.path, _SCHEMA, _MEND) as store, store:
            store.execute(
                "UPDATE turns SET answer = ?, citations = ?, seen = ? WHERE session = ? AND number = ?",
                (answer, json.dumps(cited), json.dumps(sorted(seen)), session, number),
            )
