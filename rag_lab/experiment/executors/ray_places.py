"""What the variants on a node of a Ray cluster share: an actor a GPU, else an actor a node.

An actor owns the folder in which kernels meet the processes that hold local models (see `models/host`), and keeps what
variants say of themselves until the sweep asks for it. It lives as long as the sweep does, and its node. Variants find
the actors of their node by name.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from rag_lab.models.host.place import model_host

GPUS = "CUDA_VISIBLE_DEVICES"  # which Ray sets in an actor that has one
_LOOK_EVERY_S = 2.0
_TRY_AGAIN_S = 0.2
_ANSWER_S = 2.0  # within which an actor that has begun answers, also on a crowded node
_START_S = 60.0  # within which an actor has begun, also on a crowded node
_CLOSE_S = 10.0


class Places:
    """The actors of one sweep, on every node that has cores for variants."""

    def __init__(self, ray: Any) -> None:
        self.sweep = uuid.uuid4().hex
        self._ray = ray
        self._actors: dict[str, list[Any]] = {}  # by node
        self._asked: dict[Any, Any] = {}  # actors that have not answered yet, by what they were asked
        self._looked_s = float("-inf")

    def look(self) -> dict[str, str]:
        """Start the actors of nodes that have joined, and let go of those that have left; every few seconds.

        Return what variants have said of themselves, by their names, as far as this was not returned before.
        """
        if time.monotonic() - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = time.monotonic()
            self._follow_nodes()
            waited_for = [*self._asked.values()]
            actors = [one for some in self._actors.values() for one in some if one not in waited_for]
            self._asked |= {actor.said.remote(): actor for actor in actors}
        return self._said()

    def close(self) -> None:
        """End the actors, and with them whatever holds a model."""
        actors = [actor for some in self._actors.values() for actor in some]
        with suppress(Exception):  # the cluster may be gone
            self._ray.wait([actor.close.remote() for actor in actors], num_returns=len(actors), timeout=_CLOSE_S)
        for actor in actors:
            with suppress(Exception):
                self._ray.kill(actor)

    def _follow_nodes(self) -> None:
        nodes = {one["NodeID"]: one["Resources"] for one in self._ray.nodes() if one["Alive"]}
        self._actors = {node: actors for node, actors in self._actors.items() if node in nodes}
        for node, has in nodes.items():
            if has.get("CPU") and node not in self._actors:
                self._actors[node] = self._started(node, int(has.get("GPU", 0)))

    def _said(self) -> dict[str, str]:
        asked = [*self._asked]
        answered = self._ray.wait(asked, num_returns=len(asked), timeout=0)[0] if asked else []
        found: dict[str, str] = {}
        for one in answered:
            del self._asked[one]
            with suppress(self._ray.exceptions.RayError):  # its node has left
                found |= self._ray.get(one)
        return found

    def _started(self, node: str, n_gpus: int) -> list[Any]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        start = self._ray.remote(Place).options
        return [
            start(
                name=_name(self.sweep, node, number),
                num_cpus=0,
                num_gpus=1 if n_gpus else 0,
                max_restarts=-1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            ).remote()
            for number in range(max(1, n_gpus))
        ]


class Place:
    """What an actor does."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._environment = self._open.enter_context(model_host())
        self._given = 0
        self._told: dict[str, str] = {}

    def given(self) -> int:
        """Return how many variants were sent here."""
        return self._given

    def environment(self) -> dict[str, str]:
        """Return the environment by which a variant shares the models that are held here."""
        self._given += 1
        return self._environment | ({GPUS: os.environ[GPUS]} if GPUS in os.environ else {})

    def tell(self, variant: str, said: str) -> None:
        """Keep what a variant says of itself."""
        self._told[variant] = said

    def said(self) -> dict[str, str]:
        """Return what variants have said since this was asked, by their names."""
        told, self._told = self._told, {}
        return told

    def close(self) -> None:
        """End what holds models."""
        self._open.close()


@dataclass(frozen=True, slots=True)
class Here:
    """The place of a variant on its node: the environment by which it shares models, and whom it tells of itself."""

    environment: dict[str, str]
    actor: Any

    def tell(self, variant: str, said: str) -> None:
        """Tell what a variant says of itself; nobody waits for an answer."""
        self.actor.tell.remote(variant, said)


def place_here(sweep: str) -> Here | None:
    """Return the place of a variant on this node; None where no actor of the node has begun.

    Of several GPUs it is the one to which the fewest variants were sent.
    """
    import ray

    node = ray.get_runtime_context().get_node_id()
    until_s = time.monotonic() + _START_S
    while time.monotonic() < until_s:
        with suppress(ray.exceptions.RayError, ValueError):  # it has not begun, or begins again
            asked = {actor.given.remote(): actor for actor in _actors(ray, sweep, node)}
            begun, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_ANSWER_S)
            if begun:
                actor = asked[min(begun, key=ray.get)]
                return Here(ray.get(actor.environment.remote()), actor)
        time.sleep(_TRY_AGAIN_S)
    return None


def _actors(ray: Any, sweep: str, node: str) -> list[Any]:
    """Return the actors of a node.

    Raises:
        ValueError: if it has none yet.
    """
    found = [ray.get_actor(_name(sweep, node, 0))]
    with suppress(ValueError):
        while True:
            found.append(ray.get_actor(_name(sweep, node, len(found))))
    return found


def _name(sweep: str, node: str, number: int) -> str:
    return f"rag_lab {sweep} {node} {number}"
