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


def family_of(root: int) -> set[int]:
    """Return a process and all its descendants."""
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
    return family


def resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def proportional_bytes(pid: int) -> int:
    """Return resident memory, of pages that several processes share a part; the system looks at every page for it."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))


class Peak:
    """The most memory of all processes together, a shared page counted once.

    To count so takes a fifth of a second of a core, so it is done only where what they hold, shared pages counted by
    each, is the most so far by `STEP`.
    """

    STEP = 1.02

    def __init__(self) -> None:
        self.bytes = self._held = 0

    def look(self, root: int) -> None:
        family = family_of(root)
        held = sum(map(resident_bytes, family))
        if held > self.STEP * self._held:
            self._held = held
            self.bytes = max(self.bytes, sum(map(proportional_bytes, family)))


def run(home: str, out: str) -> dict[str, float]:
    started, peak, done = time.perf_counter(), Peak(), threading.Event()
    environment = {**os.environ, "RAG_LAB_HOME": home}
    process = subprocess.Popen([RAG_LAB, "demo", "--yes", "--out", out], env=environment)

    def watch() -> None:
        while not done.wait(LOOK_EVERY_S):
            peak.look(process.pid)

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.wait()
    done.set()
    watcher.join()
    seconds = time.perf_counter() - started
    return {"exit": process.returncode, "seconds": round(seconds, 1), "peak_gib": round(peak.bytes / 2**30, 2)}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        first = run(f"{folder}/home", f"{folder}/first")
        again = run(f"{folder}/home", f"{folder}/again")
    print(json.dumps({"benchmark": "demo", "first": first, "again": again}))


if __name__ == "__main__":
    main()
