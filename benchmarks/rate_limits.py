"""What refusals for too many requests (status 429) cost: `python benchmarks/rate_limits.py [--concurrency 4]`.

A server on loopback answers each call after `--call-s` seconds. It refuses nothing, one call in twenty at random, or
whatever goes beyond a number of calls a second. Prints one JSON object a server: seconds, refusals, calls that failed
for good, and the ratio to the time without refusals (of a limited server: to the least that its limit allows).
"""

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.shared import chat_model

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from loopback_models import Scripted, openai_server

SHARE = 0.05
PER_SECOND = 4
SEED = 3


class Refusing:
    """A script of a server: `refuses` decides on each call, `headers` go with what it refuses."""

    def __init__(self, call_s: float, refuses: Callable[[], bool], headers: Mapping[str, str]) -> None:
        self._call_s, self._refuses, self._headers = call_s, refuses, headers
        self._lock = threading.Lock()
        self.n_refused = 0

    def __call__(self, body: Any) -> Scripted:
        with self._lock:
            if self._refuses():
                self.n_refused += 1
                return Scripted(status=429, headers=self._headers)
        return Scripted("ok", delay_s=self._call_s)


def limited(per_second: float) -> Callable[[], bool]:
    """Return a token bucket that holds a second's calls."""
    held, at_s = per_second, time.monotonic()

    def refuses() -> bool:
        nonlocal held, at_s
        now_s = time.monotonic()
        held, at_s = min(per_second, held + per_second * (now_s - at_s)), now_s
        if held < 1:
            return True
        held -= 1
        return False

    return refuses


def measure(script: Refusing, asked: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home, openai_server(script) as server:
        os.environ["RAG_LAB_HOME"] = home
        model = chat_model(f"openai:tiny?base_url={server.url}&concurrency={asked.concurrency}")
        requests = [ChatRequest((Message("user", f"Question {number}?"),)) for number in range(asked.calls)]
        model.generate(requests[:1])  # imports its library
        started_s = time.monotonic()
        replies = model.generate(requests)
        seconds = time.monotonic() - started_s
    n_failed = sum(bool(reply.error) for reply in replies)
    return {"seconds": round(seconds, 1), "refused": script.n_refused, "failed": n_failed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=132)
    parser.add_argument("--call-s", type=float, default=0.5)
    parser.add_argument("--concurrency", type=int, default=1)
    asked = parser.parse_args()
    least_s = asked.calls / PER_SECOND
    one_in_twenty = random.Random(SEED)
    servers: dict[str, tuple[Callable[[], bool], dict[str, str]]] = {
        "refuses nothing": (lambda: False, {}),
        "refuses 5%, Retry-After 1": (lambda: one_in_twenty.random() < SHARE, {"Retry-After": "1"}),
        "refuses 5%, no header": (lambda: one_in_twenty.random() < SHARE, {}),
        f"takes {PER_SECOND} a second, Retry-After 1": (limited(PER_SECOND), {"Retry-After": "1"}),
        f"takes {PER_SECOND} a second, no header": (limited(PER_SECOND), {}),
    }
    undisturbed_s = 0.0
    for name, (refuses, headers) in servers.items():
        found = measure(Refusing(asked.call_s, refuses, headers), asked)
        undisturbed_s = undisturbed_s or found["seconds"]
        ratio = found["seconds"] / (max(least_s, undisturbed_s) if name.startswith("takes") else undisturbed_s)
        print(json.dumps({"server": name, **found, "ratio": round(ratio, 2)}), flush=True)


if __name__ == "__main__":
    main()
