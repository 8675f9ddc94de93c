"""`rl.Chat`: a conversation with a pipeline, kept by its session; settings may change between turns.

A turn, as Homer's: the question is made self-contained from what is remembered, passages are found for it alone, and
the answer reads them with the summary and the last exchange. What the asker may not see, or may see no longer, is not
in the history that any model reads: a turn counts only while every file that it may repeat is visible.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from rag_lab.data.questions_file import write_questions
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.memory.open_store import opened_store
from rag_lab.pipeline import Pipeline
from rag_lab.records import Citation, Evidence, Question, Trace, Turn
from rag_lab.rich_display import rich_display

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
    thinking: str = ""  # of the model, before it answered: shown, and read by no model


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
                "SELECT number, question, answer, citations, seen, thinking FROM turns WHERE session = ? ORDER BY 1",
                (session,),
            ).fetchall()
        try:
            return [
                SavedTurn(
                    n, q, a, tuple(Citation(**one) for one in json.loads(cited)), tuple(json.loads(seen)), thought
                )
                for n, q, a, cited, seen, thought in rows
            ]
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
                "INSERT INTO turns VALUES (?, ?, ?, NULL, '[]', '[]', ?, '')",
                (session, last + 1, question, time.time()),
            )
        return int(last) + 1

    def answer(self, session: str, turn: SavedTurn) -> None:
        """Write down the answer to a question, in place of one that it had."""
        cited = json.dumps([asdict(citation) for citation in turn.citations])
        with opened_store(self.path, _SCHEMA, _MEND) as store, store:
            store.execute(
                "UPDATE turns SET answer = ?, citations = ?, seen = ?, thinking = ? WHERE session = ? AND number = ?",
                (turn.answer, cited, json.dumps(turn.seen), turn.thinking, session, turn.number),
            )


def quoted_citations(trace: Trace) -> tuple[Citation, ...]:
    """Return what an answer cites; where the model quoted nothing, the quote is the passage that it read."""
    read = {passage.number: passage.text for passage in trace.passages}
    cited = trace.answer.citations if trace.answer else ()
    return tuple(replace(one, quote=one.quote or read.get(one.number, "")) for one in cited)


OnText = Callable[[str], object]

# What a conversation needs and a single question does not, unless the configuration says otherwise already.
DEFAULTS = {"conversation.memory": "summary_and_exchange", "query.rewrite": "follow_ups"}


@rich_display("rag_lab.notebook.views.data_view:chat_view")
class Chat:
    """One conversation.

    Args:
        pipeline: what answers; memory and rewriting that it leaves at their defaults are those of a conversation.
        session: the id of a conversation to go on with; a new one where None.
        person: whose it is; nobody else goes on with it.
        may_see: the permissions of the person, None for all; they may change from one start to the next.
        namespace: the documents that are searched; all where None.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        session: str | None = None,
        *,
        person: str = "",
        may_see: tuple[str, ...] | None = None,
        namespace: str | None = None,
    ) -> None:
        changed = pipeline.config.differing()
        self.pipeline = pipeline.set({key: value for key, value in DEFAULTS.items() if key not in changed})
        self.session = f"{datetime.now():%Y-%m-%d-%H%M}-{uuid4().hex[:4]}" if session is None else session
        self.may_see, self.namespace = may_see, namespace
        self.last: tuple[Pipeline, Trace] | None = None  # what was answered last in this process, and by what
        self._sessions = Sessions(pipeline.home)
        self._sessions.begin(self.session, person, str(pipeline.dataset.corpus_dir.resolve()))

    @property
    def turns(self) -> list[SavedTurn]:
        """The turns whose asker may still see all that they may repeat, in order; one without an answer is the last."""
        index, kept = self.pipeline.index, []
        for turn in self._sessions.turns(self.session):  # a file that is gone may have been anybody's
            if all(index.chunks.documents(name) and index.is_visible(name, self._asker) for name in turn.seen):
                kept.append(turn)
        return kept

    @property
    def pending(self) -> SavedTurn | None:
        """The last question, where it was never answered: its process was killed."""
        turns = self._sessions.turns(self.session)
        return turns[-1] if turns and turns[-1].answer is None else None

    def ask(self, text: str, on_text: OnText | None = None) -> Trace:
        """Answer the next question of the conversation; `on_text` is called with pieces of the answer as they come."""
        if not text.strip():
            raise ConfigError("The question is empty; ask something.")
        return self._answer(self._sessions.ask(self.session, text.strip()), text.strip(), on_text)

    def again(self, on_text: OnText | None = None) -> Trace:
        """Answer the last question once more, under the settings of now; its answer takes the place of the last."""
        turns = self._sessions.turns(self.session)
        if not turns:
            raise ConfigError("Nothing was asked yet; ask something first.")
        return self._answer(turns[-1].number, turns[-1].question, on_text)

    def set(self, key: str | Mapping[str, Any], value: Any = None) -> Self:
        """Change settings for the turns to come, as `Pipeline.set` does; return this conversation."""
        self.pipeline = self.pipeline.set(key, value)
        return self

    def export(self, path: Path | str) -> int:
        """Write the turns as follow-up questions, with their answers and what they cite as labels; return how many."""
        found: list[Question] = []
        history: tuple[Turn, ...] = ()
        for turn in self.turns:
            if turn.answer is None:
                continue
            places = dict.fromkeys((one.source, one.page) for one in turn.citations)
            evidence = tuple(Evidence(source, page) for source, page in places)
            name = f"{self.session}-{turn.number}"
            found.append(Question(name, turn.question, (turn.answer,), evidence=evidence, history=history))
            history = (*history, Turn("user", turn.question), Turn("assistant", turn.answer))
        write_questions(Path(path), found)
        return len(found)

    def _answer(self, number: int, text: str, on_text: OnText | None) -> Trace:
        before = [turn for turn in self.turns if turn.number < number and turn.answer]
        history = tuple(
            said for turn in before for said in (Turn("user", turn.question), Turn("assistant", turn.answer or ""))
        )
        question = replace(self._asker, question_id=f"{self.session}-{number}", text=text, history=history)
        (trace,) = self.pipeline.run([question], on_text=on_text)
        self.last = self.pipeline, trace
        if trace.answer is not None:
            seen = {passage.source for passage in trace.passages} | {name for turn in before for name in turn.seen}
            answer = trace.answer
            turn = SavedTurn(number, text, answer.text, quoted_citations(trace), tuple(sorted(seen)), answer.thinking)
            self._sessions.answer(self.session, turn)
        return trace

    @property
    def _asker(self) -> Question:
        return Question("asked", "", may_see=self.may_see, namespace=self.namespace)

    def __repr__(self) -> str:
        return f"Chat({self.session!r}, {len(self.turns)} turns)"
