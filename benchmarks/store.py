"""Measure the store of results: how long 1,000 of 200,000 take to come back from SQLite and PostgreSQL, and its size.

Usage: python benchmarks/store.py [--entries 200000] [--asked 1000] [--times 9]. A PostgreSQL database is measured where
RAG_LAB_STORE names one; it should be empty. Prints one JSON object: medians in ms, and the worst of all times, on the
clock; and of this process's processor time, which other processes disturb less.
"""

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from rag_lab.memory.open_store import VARIABLE, opened_store
from rag_lab.memory.results import RESULTS, Memory, batches

_VALUE_CHARS = 400  # of a stage's result, about as in the demo


def measured(memory: Memory, entries: int, asked: int, times: int) -> dict[str, float]:
    """Store `entries` results, and measure recalls and claims of `asked` keys."""
    keys = [sha256(str(n).encode()).hexdigest() for n in range(entries)]
    began = time.perf_counter()
    for some in batches(keys, 5000):
        memory.store("room", {key: json.dumps({"text": (key * 7)[:_VALUE_CHARS]}) for key in some})
    stored_s = time.perf_counter() - began
    draw = random.Random(0)
    recalled = _ms(lambda: len(memory.recall(draw.sample(keys, asked))), asked, times)
    busy = _ms(lambda: len(memory.recall(draw.sample(keys, asked))), asked, times, time.process_time)
    absent = [[f"{n} {key}" for key in keys[:asked]] for n in range(times)]
    claimed = _ms(lambda: len(memory.claim(absent.pop(), asked)), asked, times)
    return {
        "stored_s": round(stored_s, 2), "recall_ms": round(statistics.median(recalled), 1),
        "recall_worst_ms": round(max(recalled), 1),
        "recall_processor_ms": round(statistics.median(busy), 1), "claim_ms": round(statistics.median(claimed), 1),
        "size_mb": round(_size_bytes(memory) / 1e6, 1),
    }  # fmt: skip


def _ms(
    call: Callable[[], int], expected: int, times: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    found = []
    for _ in range(times):
        began = clock()
        n = call()
        found.append(1000 * (clock() - began))
        if n != expected:
            raise SystemExit(f"{n} of {expected} keys came back; is the database empty?")
    return found


def _size_bytes(memory: Memory) -> int:
    if memory.path.exists():
        return sum(each.stat().st_size for each in memory.path.parent.glob(f"{memory.path.name}*"))
    with opened_store(memory.path, RESULTS) as database:
        return int(database.execute("SELECT pg_total_relation_size('remembered')").fetchone()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--asked", type=int, default=1000)
    parser.add_argument("--times", type=int, default=9)
    given = parser.parse_args()
    address = os.environ.pop(VARIABLE, "")
    found = {}
    for kind, named in (("sqlite", ""), ("postgresql", address)):
        if kind == "postgresql":
            if not address:
                continue
            os.environ[VARIABLE] = named
        with tempfile.TemporaryDirectory() as folder:
            found[kind] = measured(Memory(Path(folder) / "stages.sqlite"), given.entries, given.asked, given.times)
    print(json.dumps({"entries": given.entries, "asked": given.asked, "found": found}, indent=2))


if __name__ == "__main__":
    main()
