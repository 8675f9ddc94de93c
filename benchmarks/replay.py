"""Measure what a sweep costs that has nothing left to compute: started again, and with its results deleted.

Usage: python benchmarks/replay.py HOME [VARIANTS]. HOME is a home folder in which the demo's results are remembered, as
`rag-lab demo` leaves it; it is copied, and left as it is. With 6 variants (the default) it is the demo; with more, a
grid of that many over what the demo's searches hand on, of which the first computes what is missing.
Prints one JSON object: wall seconds, and processor seconds of all processes, of the first sweep, of the finished sweep
started again, and of the sweep whose results were deleted.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
RAG_LAB = str(Path(sys.executable).with_name("rag-lab"))
DEMO = ROOT / "experiments/decisive.yaml"
GRID = {
    "retrieval.mode": ["dense", "hybrid"],
    "rerank.final_k": [5, 4, 3, 2],
    "retrieval.base_k": [20, 16, 12, 8],
    "rerank.input_limit": [20, 10],
}  # 64 variants; each search is made once


def experiment(folder: Path, variants: int) -> Path:
    """Return the file of an experiment of the demo, or of the first `variants` of the grid."""
    if variants <= 6:
        return DEMO
    data = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    data |= {"name": "replay", "design": "grid", "factors": {}, "dataset": str(ROOT / "datasets" / data["dataset"])}
    data["base"] = str(ROOT / "experiments" / data["base"])
    n = 1
    for key, values in GRID.items():
        if n < variants:
            data["factors"][key] = values[: -(-variants // n)]
            n *= len(data["factors"][key])
    path = folder / "replay.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path


def sweep(path: Path, out: Path, home: Path) -> dict[str, Any]:
    """Run the sweep in a process of its own and return what it took."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [RAG_LAB, "sweep", str(path), "--out", str(out)]
    environment = os.environ | {"RAG_LAB_HOME": str(home), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(time.perf_counter() - started, 1), "cpu_s": round(cpu, 1)}


def main() -> None:
    """Measure the three sweeps one after the other."""
    variants = int(sys.argv[2]) if sys.argv[2:] else 6
    with tempfile.TemporaryDirectory() as scratch:
        home, out = Path(scratch, "home"), Path(scratch, "run")
        shutil.copytree(sys.argv[1], home)
        path = experiment(Path(scratch), variants)
        told: dict[str, Any] = {"variants": variants, "first": sweep(path, out, home)}
        told["finished_again"] = sweep(path, out, home)
        shutil.rmtree(out)
        told["results_deleted"] = sweep(path, out, home)
        ran = len(json.loads((out / "manifest.json").read_text())["variants"])
    print(json.dumps(told | {"variants_run": ran}))


if __name__ == "__main__":
    main()
