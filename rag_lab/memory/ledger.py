"""The ledger of one run: which calls of chat models were made, and what may still be called. Processes share it.

A call is entered before it is made, at the most it can cost, and corrected when its reply is there; so variants that
run side by side cannot pass a limit together. An entry that was never corrected (its process was killed) stays at the
most it can have cost: limits are on the safe side. All starts of a sweep share the ledger of its run folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rag_lab._kit.machine import Process
from rag_lab.memory.open_store import Database, is_there, opened_store

_SCHEMA = Path(__file__).with_name("ledger.sql").read_text(encoding="utf-8")
_ENTER = (
    "INSERT INTO calls (payer, purpose, model, host, system, pid, began, cost_usd, open) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1) RETURNING id"
)
_CALLING = "SELECT DISTINCT host, system, pid, began FROM calls WHERE open = 1 AND cost_usd > 0"
_CALLER = ("payer", "purpose", "model")  # what is known of who calls
LEDGER_VARIABLE = "RAG_LAB_LEDGER"
PAYER_VARIABLE = "RAG_LAB_PAYER"
_MEND = "delete it with its -wal and -shm files, and limits count from zero again"
_CENT_FRACTION = 1e-9  # sums of floats that should be equal


@dataclass(frozen=True, slots=True)
class Used:
    """What a run has used of each limit, all its starts together."""

    cost_usd: float = 0.0
    calls: int = 0
    minutes: float = 0.0

    def __add__(self, other: Used) -> Used:
        return Used(self.cost_usd + other.cost_usd, self.calls + other.calls, self.minutes + other.minutes)


_NOTHING = Used()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls (a variant), what for (a stage or a metric), and which model."""

    payer: str
    purpose: str
    model: str


@dataclass(frozen=True, slots=True)
class Grant:
    """The calls that may be made now, by their numbers; where there are none, `reason` says why, or that one waits."""

    numbers: tuple[int, ...]
    reason: str = ""
    wait: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """What a call turned out to be."""

    tokens_in: int
    tokens_out: int
    cost_usd: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Failing:
    """How often calls of a model failed in a row, and attempts timed out; `reason` is that of the last one."""

    calls: int = 0
    time_outs: int = 0
    reason: str = ""


class Ledger:
    """The ledger in the file at `path`. Each call opens its own connection, so threads may share an instance."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(
        self, cost_usd: float | None, calls: int | None, minutes: float | None, elsewhere: Used = _NOTHING
    ) -> None:
        """Begin a start of the sweep with these limits (None is no limit); what was refused before may be tried.

        What was used `elsewhere`, by other sweeps that share the limits, counts for them.
        Nobody waits for the calls of earlier starts, whose processes have ended, wherever they ran. Models that were
        given up are called again.
        """
        limits = {"cost_usd": cost_usd, "calls": calls, "minutes": minutes}
        with self._change() as database:
            database.execute("UPDATE calls SET open = 0")
            for table in ("refused", "failing", "limits", "elsewhere"):
                database.execute(f"DELETE FROM {table}")  # noqa: S608 - our names
            used = (elsewhere.cost_usd, elsewhere.calls, elsewhere.minutes)
            database.execute("INSERT INTO elsewhere VALUES (?, ?, ?)", used)
            rows = [(name, value) for name, value in limits.items() if value is not None]
            database.executemany("INSERT INTO limits VALUES (?, ?)", rows)
            database.execute("INSERT INTO starts (began, seen) VALUES (?, ?)", (time.time(), time.time()))

    def tick(self) -> None:
        """Note that the sweep is still running."""
        with self._change() as database:
            database.execute("UPDATE starts SET seen = ? WHERE id = (SELECT max(id) FROM starts)", (time.time(),))

    def ask(self, caller: Caller, most_usd: Sequence[float]) -> Grant:
        """Enter the first of the calls wanted (each with the most it can cost) that still fit, and permit them."""
        with self._change() as database:
            used, fitting, reason = _used(database), list[float](), ""
            for cost in most_usd:
                wanted_usd = used.cost_usd + (sum(fitting) + cost) - _CENT_FRACTION
                reason = (
                    _reason(database, "minutes", used.minutes)
                    or _reason(database, "calls", used.calls + len(fitting))
                    or _reason(database, "cost_usd", wanted_usd, passed=used.cost_usd)
                )
                if reason:
                    break
                fitting.append(cost)
            if fitting or not most_usd:
                me = (caller.payer, caller.purpose, caller.model, *Process.of())
                return Grant(tuple(database.execute(_ENTER, (*me, cost)).fetchone()[0] for cost in fitting))
            # Calls under way may yet turn out cheaper than they were entered.
            if "cost_usd" in reason and any(
                Process(*row).runs() is not False for row in database.execute(_CALLING).fetchall()
            ):
                return Grant((), reason, wait=True)
            database.execute(
                "INSERT INTO refused VALUES (?, ?) ON CONFLICT (payer) DO UPDATE SET reason = excluded.reason",
                (caller.payer, reason),
            )
            return Grant((), reason)

    def correct(self, numbers: Sequence[int], made: Sequence[Made]) -> None:
        """Write down what permitted calls turned out to be."""
        rows = [(m.tokens_in, m.tokens_out, m.cost_usd, m.seconds, n) for n, m in zip(numbers, made, strict=True)]
        change = "UPDATE calls SET open = 0, tokens_in = ?, tokens_out = ?, cost_usd = ?, seconds = ? WHERE id = ?"
        with self._change() as database:
            database.executemany(change, rows)

    def close(self, numbers: Sequence[int]) -> None:
        """Leave calls whose end is not known at the most they can have cost."""
        with self._change() as database:
            database.executemany("UPDATE calls SET open = 0 WHERE id = ?", [(number,) for number in numbers])

    def strike(self, numbers: Sequence[int]) -> None:
        """Take back calls that were permitted and not made."""
        with self._change() as database:
            database.executemany("DELETE FROM calls WHERE id = ?", [(number,) for number in numbers])

    def failing(self) -> dict[str, Failing]:
        """Return by model how its calls have failed since its last answer in the present start."""
        if not is_there(self.path):
            return {}
        with self._opened() as database:
            rows = database.execute("SELECT model, calls, time_outs, reason FROM failing ORDER BY model").fetchall()
        return {row[0]: Failing(*row[1:]) for row in rows}

    def failed(self, model: str, more: Failing) -> None:
        """Add to how calls of `model` have failed."""
        change = (
            "INSERT INTO failing VALUES (?, ?, ?, ?) ON CONFLICT (model) DO UPDATE SET "
            "calls = failing.calls + excluded.calls, "
            "time_outs = failing.time_outs + excluded.time_outs, reason = excluded.reason"
        )
        with self._change() as database:
            database.execute(change, (model, more.calls, more.time_outs, more.reason))

    def answered(self, model: str) -> None:
        """Note that `model` answers."""
        with self._change() as database:
            database.execute("DELETE FROM failing WHERE model = ?", (model,))

    def used(self, *, elsewhere: bool = True) -> Used:
        """Return what has been used so far, elsewhere too, or by this sweep alone."""
        if not is_there(self.path):
            return Used()
        with self._opened() as database:
            return _used(database, elsewhere=elsewhere)

    def refused(self) -> dict[str, str]:
        """Return those whose calls were refused in the present start, with the reason."""
        with self._change() as database:
            return dict(database.execute("SELECT payer, reason FROM refused"))

    def out_of_time(self) -> str:
        """Return why no time is left, or ''."""
        with self._change() as database:
            return _reason(database, "minutes", _used(database).minutes)

    def calls(self, by: Collection[str] = _CALLER, *, answered: bool = False) -> list[tuple[Caller, int, Made]]:
        """Return number and totals of all calls, or those `answered`, by what `by` names of callers, as first used."""
        caller = ", ".join(name if name in by else f"'' AS {name}" for name in _CALLER)
        query = (
            f"SELECT {caller}, count(*), CAST(sum(tokens_in) AS BIGINT), "  # noqa: S608 - our own names
            "CAST(sum(tokens_out) AS BIGINT), sum(cost_usd), sum(seconds) "
            f"FROM calls WHERE seconds > 0 OR NOT ? GROUP BY {', '.join(by)} ORDER BY min(id)"
        )
        if not is_there(self.path):
            return []
        with self._opened() as database:
            return [(Caller(*row[:3]), row[3], Made(*row[4:])) for row in database.execute(query, [answered])]

    @contextmanager
    def _change(self) -> Iterator[Database]:
        with self._opened() as database, database:
            database.lock()
            yield database

    def _opened(self) -> AbstractContextManager[Database]:
        return opened_store(self.path, _SCHEMA, _MEND, private=False)  # whoever reads the run may read it


def environment_ledger() -> tuple[Ledger | None, str]:
    """Return the ledger that the sweep named for this process (None outside a sweep), and who pays from it."""
    path = os.environ.get(LEDGER_VARIABLE)
    return Ledger(Path(path)) if path else None, os.environ.get(PAYER_VARIABLE, "")


def _reason(database: Database, name: str, wanted: float, passed: float | None = None) -> str:
    row = database.execute("SELECT value FROM limits WHERE name = ?", (name,)).fetchone()
    if row is None or wanted < row[0]:
        return ""
    used = "" if passed is None else f", of which {passed:.4f} are spent and the next call may cost the rest"
    return f"stopped by limits.{name} = {row[0]:g}{used}; raise it and start the sweep again, and it goes on"


def _used(database: Database, *, elsewhere: bool = True) -> Used:
    row = database.execute("SELECT cost_usd, calls, minutes FROM elsewhere").fetchone()
    calls, cost = database.execute("SELECT count(*), coalesce(sum(cost_usd), 0) FROM calls").fetchone()
    (seconds,) = database.execute("SELECT coalesce(sum(seen - began), 0) FROM starts").fetchone()
    return Used(float(cost), int(calls), float(seconds) / 60) + (Used(*row) if row and elsewhere else Used())
