"""Where the variants on a node of a Ray cluster share local models: an actor a GPU, else an actor a node.

An actor owns the folder in which kernels meet the processes that hold models (see `models/host`); it lives as long as
the sweep does, and its node. Variants find the actors of their node by name.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import ExitStack, suppress
from typing import Any

from rag_lab.models.host.place import model_host

GPUS = "CUDA_VISIBLE_DEVICES"  # which Ray sets in an actor that has one
_LOOK_EVERY_S = 2.0
_TRY_AGAIN_S = 0.2
_START_S = 60.0  # within which an actor has begun, also on a crowded node
_CLOSE_S = 10.0


class ModelPlaces:
    """The actors of one sweep, on every node that has cores for variants."""

    def __init__(self, ray: Any) -> None:
        self.sweep = uuid.uuid4().hex
        self._ray = ray
        self._actors: dict[str, list[Any]] = {}  # by node
        self._looked_s = float("-inf")

    def look(self) -> None:
        """Start the actors of nodes that have joined, and let go of those that have left; every few seconds."""
        if time.monotonic() - self._looked_s < _LOOK_EVERY_S:
            return
        self._looked_s = time.monotonic()
        nodes = {one["NodeID"]: one["Resources"] for one in self._ray.nodes() if one["Alive"]}
        self._actors = {node: actors for node, actors in self._actors.items() if node in nodes}
        for node, has in nodes.items():
            if has.get("CPU") and node not in self._actors:
                self._actors[node] = self._started(node, int(has.get("GPU", 0)))

    def close(self) -> None:
        """End the actors, and with them whatever holds a model."""
        actors = [actor for some in self._actors.values() for actor in some]
        with suppress(Exception):  # the cluster may be gone
            self._ray.wait([actor.close.remote() for actor in actors], num_returns=len(actors), timeout=_CLOSE_S)
        for actor in actors:
            with suppress(Exception):
                self._ray.kill(actor)

    def _started(self, node: str, n_gpus: int) -> list[Any]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        start = self._ray.remote(ModelPlace).options
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


class ModelPlace:
    """What an actor does."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._environment = self._open.enter_context(model_host())
        self._given = 0

    def given(self) -> int:
        """Return how many variants were sent here."""
        return self._given

    def environment(self) -> dict[str, str]:
        """Return the environment by which a variant shares the models that are held here."""
        self._given += 1
        return self._environment | ({GPUS: os.environ[GPUS]} if GPUS in os.environ else {})

    def close(self) -> None:
        """End what holds models."""
        self._open.close()


def shared_models(sweep: str) -> dict[str, str] | None:
    """Return the environment by which a variant on this node shares models with the others there.

    Of several GPUs it is the one to which the fewest variants were sent. None where no actor of the node has begun.
    """
    import ray

    node = ray.get_runtime_context().get_node_id()
    until_s = time.monotonic() + _START_S
    while time.monotonic() < until_s:
        with suppress(ray.exceptions.RayError, ValueError):  # it has not begun, or begins again
            actors = _actors(ray, sweep, node)
            asked = {actor.given.remote(): actor for actor in actors}
            begun, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_TRY_AGAIN_S)
            if begun:
                found: dict[str, str] = ray.get(asked[min(begun, key=ray.get)].environment.remote())
                return found
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
    return f"models {sweep} {node} {number}"
