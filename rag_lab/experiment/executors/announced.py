"""The jobs of a sweep as they stand in the store: announced, claimed by whoever computes them, and handed in.

A job has a key. What is stored under it is its parcel, or a word that says why there is none any more; as long as
nothing is, it is to be done, by whoever claims the key.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rag_lab._kit.home import home
from rag_lab._kit.process import Process
from rag_lab.errors import RagLabError
from rag_lab.experiment.executors.task import Task
from rag_lab.memory.results import Memory

FILE = "variants.sqlite"
_ROOM = "variants"
_TAKEN = json.dumps("taken")
_WITHDRAWN = json.dumps("withdrawn")


@dataclass(frozen=True, slots=True)
class Announced:
    """The jobs of the run of this name."""

    run: str
    memory: Memory

    @classmethod
    def of(cls, run: str) -> Announced:
        """Return those in the store that the environment names."""
        return cls(run, Memory(home() / FILE))

    def announce(self, tasks: Sequence[Task]) -> dict[str, str]:
        """Announce these alone and return their keys by name; what was handed in for an earlier start is theirs."""
        before = self._listed()
        used = self.memory.recall(_key(one["key"]) for one in before.values())
        keys = {}
        for task in tasks:
            known = before.get(task.name)
            is_left = known is not None and used.get(_key(known["key"])) not in (_TAKEN, _WITHDRAWN)
            fits = known is not None and known["identity"] == task.origin.identity
            keys[task.name] = known["key"] if known and is_left and fits else uuid.uuid4().hex
        self.memory.store(_ROOM, {_task(keys[task.name]): task.to_json() for task in tasks})
        listed = {task.name: {"key": keys[task.name], "identity": task.origin.identity} for task in tasks}
        self.memory.store(_ROOM, {self._list: json.dumps(listed)})
        return keys

    def keys(self) -> list[str] | None:
        """Return the keys of the jobs that are announced; None where nobody has announced any."""
        listed = self.memory.recall([self._list])
        return [one["key"] for one in json.loads(listed[self._list]).values()] if listed else None

    def task(self, key: str) -> Task:
        """Return an announced job.

        Raises:
            RagLabError: if it was announced by a version with other tasks.
        """
        try:
            return Task.from_json(self.memory.recall([_task(key)])[_task(key)])
        except (KeyError, TypeError, ValueError):
            raise RagLabError(
                f"The run {self.run} was announced by another version of rag_lab; install the same here."
            ) from None

    def claim(self, keys: Iterable[str]) -> str:
        """Claim one of the jobs that nobody has done or does; '' where there is none."""
        mine = self.memory.claim([_key(key) for key in keys], 1)
        return mine[0].partition(" ")[2] if mine else ""

    def keeping(self, key: str) -> AbstractContextManager[None]:
        """Keep the claim on a job in this block; at its end give it up."""
        return self.memory.keeping([_key(key)])

    def holders(self, keys: Iterable[str]) -> list[Process]:
        """Return those who have claims on any of these jobs."""
        return self.memory.holders(_key(key) for key in keys)

    def hand_in(self, key: str, parcel: str) -> None:
        """Store the results of a job, which was claimed."""
        self.memory.store(_ROOM, {_key(key): parcel})

    def say(self, key: str, said: str) -> None:
        """Store what a job says of itself while it runs."""
        self.memory.store(_ROOM, {_said(key): said})

    def said(self, keys: Iterable[str]) -> dict[str, str]:
        """Return what those of the jobs that have said anything said last, by their keys."""
        by_key = {_said(key): key for key in keys}
        return {by_key[name]: said for name, said in self.memory.recall(by_key).items()}

    def collect(self, keys: Mapping[str, str]) -> tuple[str, str] | None:
        """Return the name and the parcel of one of the jobs (keys by name) that is done; None where none is."""
        for name, key in keys.items():
            if found := self.memory.recall([_key(key)]):
                return name, found[_key(key)]
        return None

    def is_over(self, key: str) -> bool:
        """Tell whether nobody waits for the job any more, or it is done."""
        return bool(self.memory.recall([_key(key)]))

    def taken(self, key: str) -> None:
        """Note that the results of a job have been unpacked: its parcel is dropped."""
        self.memory.store(_ROOM, {_key(key): _TAKEN})

    def withdraw(self, keys: Iterable[str]) -> None:
        """Take jobs back: nobody begins them, and who is at them stops."""
        self.memory.store(_ROOM, dict.fromkeys(map(_key, keys), _WITHDRAWN))

    def _listed(self) -> dict[str, dict[str, str]]:
        listed = self.memory.recall([self._list])
        return dict(json.loads(listed[self._list])) if listed else {}

    @property
    def _list(self) -> str:
        return f"run {self.run}"


def _key(key: str) -> str:
    return f"job {key}"


def _task(key: str) -> str:
    return f"task {key}"


def _said(key: str) -> str:
    return f"said {key}"
