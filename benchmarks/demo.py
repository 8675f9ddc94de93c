"""The demo job from nothing remembered: wall time and peak memory of all its processes; prints JSON.

Targets: under 300 s and 4 GiB on two cores. The demo runs again afterwards: what a rerun costs when all is remembered.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RAG_LAB = str(Path(sys.executable).with_name("rag-lab"))
LOOK_EVERY_S = 1.0  # to look takes some milliseconds of a core for each process


def tree_memory_bytes(root: int) -> int:
    """Resident memory of a process and all its descendants; a page that some of them share is counted once."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    family, grown = {root}, True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in family} - family
        family, grown = family | children, bool(children)
    return sum(resident_bytes(pid) for pid in family)


def resident_bytes(pid: int) -> int:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))


def run(home: str, out: str) -> dict[str, float]:
    started, peak, done = time.perf_counter(), 0, threading.Event()
    environment = {**os.environ, "RAG_LAB_HOME": home}
    process = subprocess.Popen([RAG_LAB, "demo", "--yes", "--out", out], env=environment)

    def watch() -> None:
        nonlocal peak
        while not done.wait(LOOK_EVERY_S):
            peak = max(peak, tree_memory_bytes(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.wait()
    done.set()
    watcher.join()
    seconds = time.perf_counter() - started
    return {"exit": process.returncode, "seconds": round(seconds, 1), "peak_gib": round(peak / 2**30, 2)}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        first = run(f"{folder}/home", f"{folder}/first")
        again = run(f"{folder}/home", f"{folder}/again")
    print(json.dumps({"benchmark": "demo", "first": first, "again": again}))


if __name__ == "__main__":
    main()
