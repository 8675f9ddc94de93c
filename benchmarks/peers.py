"""Sweeps of searches by words beside those of context-grid 0.9.5 and pyterrier 1.1.2, as JSON on stdout.

    python3.11 -m venv PEERS
    PEERS/bin/pip install context-grid==0.9.5 "pyterrier[java]==1.1.2"
    python benchmarks/peers.py --dataset DATASET --peers-python PEERS/bin/python [--jobs 2]

DATASET is a dataset of this project, as `rag-lab datasets import xquad.en.json DATASET` makes it. Both sides read the
same files, ask the same questions, find ten passages each and are one command each, with their own start, statistics
and report; ours executes a notebook a variant. Each is told in seconds of the clock and of the processor, and runs by
turns with the other. `equal` has whole files searched by BM25 (k1 1.5, b 0.75, words in small letters, no stems), which
both can do alike: its nDCG@10 must agree. In the grids each side cuts by its own unit, ours characters, theirs its own
tokens, and ours takes words to their stems and finds the file of a chunk where theirs finds the chunk: nDCG differs.

`second` is the 12-point grid again: theirs with its cache on disk, ours with the results deleted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

CHARS_PER_TOKEN = 4
METRIC = "ndcg@10"
WHOLE_CHARS = 8000
RAG_LAB = (sys.executable, "-c", "from rag_lab.cli import main; main()")
GRIDS: dict[str, tuple[Sequence[str], Sequence[int], str]] = {  # searches, characters of a chunk, analyzer
    "equal": (("bm25",), (WHOLE_CHARS,), "unicode"),
    "grid_4": (("bm25", "tfidf"), (800, 400), "english"),
    "grid_12": (("bm25", "tfidf"), (1600, 1200, 800, 600, 400, 200), "english"),
}
Took = dict[str, float]


def timed(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Took:
    """Run it and return the seconds that it took; its output ends the benchmark where it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ran = subprocess.run(command, cwd=folder, env=dict(environment), capture_output=True, encoding="utf-8", check=False)
    seconds = time.perf_counter() - start
    if ran.returncode:
        sys.exit(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(seconds, 2), "cpu_s": round(cpu_s, 2)}


class RagLab:
    """Our side, in a folder of its own with a home of its own."""

    def __init__(self, dataset: Path, folder: Path, jobs: int) -> None:
        self._dataset, self._folder, self._jobs = dataset, folder, jobs
        self._environment = {**os.environ, "RAG_LAB_HOME": str(folder / "home")}
        folder.mkdir()

    def run(self, grid: str, *, cold: bool) -> tuple[Took, dict[str, float]]:
        """Sweep a grid and return what it took, and the nDCG of each variant."""
        searches, sizes, analyzer = GRIDS[grid]
        experiment = {
            "name": grid,
            "question": "Which search by words finds the passage?",
            "dataset": str(self._dataset),
            "base": {
                "corpus": {"chunk_overlap": 0, "parent_size": WHOLE_CHARS},
                "query": {"rewrite": "none", "hyde": "none"},
                "retrieval": {"analyzer": analyzer, "base_k": 10},
                "rerank": {"name": "none", "input_limit": 10, "final_k": 10},
                "answer": {"name": "none"},
            },
            "factors": {"retrieval.mode": list(searches), "corpus.chunk_size": list(sizes)},
            "design": "grid",
            "metrics": [f"retrieval.{METRIC}", "retrieval.mrr@10", "retrieval.evidence_recall@5", "cost.seconds"],
        }
        file, out = self._folder / f"{grid}.yaml", self._folder / grid
        file.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
        shutil.rmtree(out, ignore_errors=True)
        if cold:
            shutil.rmtree(self._folder / "home", ignore_errors=True)
        took = timed(
            [*RAG_LAB, "sweep", str(file), "--jobs", str(self._jobs), "--out", str(out)],
            self._folder,
            self._environment,
        )
        scores = pd.read_parquet(out / "scores.parquet")
        found = scores[(scores["metric"] == f"retrieval.{METRIC}") & (scores["status"] == "scored")]
        return took, {
            str(name): round(float(mean), 4) for name, mean in found.groupby("variant_id")["value"].mean().items()
        }


class ContextGrid:
    """The peer, by the command that it brings."""

    def __init__(self, dataset: Path, folder: Path, python: Path, questions: Sequence[Mapping[str, Any]]) -> None:
        self._folder, self._command = folder, python.parent / "contextgrid"
        folder.mkdir()
        (folder / "corpus").symlink_to(dataset / "corpus")
        lines = (json.dumps(_eval_item(question)) for question in questions)
        (folder / "questions.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def run(self, grid: str, *, cache: str) -> tuple[Took, dict[str, float]]:
        """Run a grid and return what it took, and the nDCG of each configuration."""
        searches, sizes, _ = GRIDS[grid]
        config = {
            "name": grid,
            "corpus": "corpus",
            "evalset": "questions.jsonl",
            "grid": {
                "parser": ["text"],
                "chunker": [f"recursive:{size // CHARS_PER_TOKEN}" for size in sizes],
                "embedder": [{"bm25": None, "tfidf": "tfidf"}[search] for search in searches],
                "index": [{"bm25": "bm25", "tfidf": "dense"}[search] for search in searches],
            },
            "run": {"mode": "factorial", "k": 10, "headline": METRIC, "cache": cache},
            "report": {"out": f"./{grid}", "formats": ["markdown", "json", "yaml", "python"]},
        }
        file = self._folder / f"{grid}.yaml"
        file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        took = timed([str(self._command), "run", str(file)], self._folder, os.environ)
        runs = json.loads((self._folder / grid / "results.json").read_text(encoding="utf-8"))["runs"]
        return took, {f"{run['config']['index']} {run['config']['chunker']}": _ndcg(run) for run in runs}


def _eval_item(question: Mapping[str, Any]) -> dict[str, Any]:
    anchors = [{"source_id": one["source"], "quote": one["quote"], "grade": 1} for one in question["evidence"]]
    return {"id": question["id"], "question": question["question"], "anchors": anchors}


def _ndcg(run: Mapping[str, Any]) -> float:
    found: Any = run["metrics"][METRIC]
    return round(float(found["mean"] if isinstance(found, dict) else found), 4)


def pyterrier(python: Path) -> dict[str, Any]:
    """Return why pyterrier cannot be run here, or that it starts."""
    ran = subprocess.run(
        [str(python), "-c", "import pyterrier; pyterrier.java.init()"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if ran.returncode == 0:
        return {"starts": True}
    last = ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else f"status {ran.returncode}"
    why = "its searches are those of Terrier, which the package does not hold but fetches as a jar when Java starts"
    return {"starts": False, "why": f"{why}: {last}"}


def times_as_fast(ours: Took, theirs: Took) -> dict[str, float]:
    return {name: round(theirs[name] / ours[name], 2) for name in ours}


def measure(dataset: Path, python: Path, scratch: Path, jobs: int) -> dict[str, Any]:
    lines = (dataset / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    ours = RagLab(dataset, scratch / "rag_lab", jobs)
    theirs = ContextGrid(dataset, scratch / "context_grid", python, asked)
    found: dict[str, Any] = {"questions": len(asked), "jobs": jobs, "cores": os.cpu_count()}
    for grid in GRIDS:
        peer, their_ndcg = theirs.run(grid, cache="disk" if grid == "grid_12" else "none")
        mine, our_ndcg = ours.run(grid, cold=True)
        found[grid] = {
            "context_grid": {**peer, "ndcg@10": their_ndcg},
            "rag_lab": {**mine, "ndcg@10": our_ndcg},
            "times_as_fast": times_as_fast(mine, peer),
        }
    (our_equal,), (their_equal,) = (found["equal"][side]["ndcg@10"].values() for side in ("rag_lab", "context_grid"))
    found["equal"]["agree_to_three_decimals"] = round(our_equal, 3) == round(their_equal, 3)
    again, _ = theirs.run("grid_12", cache="disk")
    mine, _ = ours.run("grid_12", cold=False)
    found["second"] = {"context_grid": again, "rag_lab": mine, "times_as_fast": times_as_fast(mine, again)}
    return found | {"pyterrier": pyterrier(python)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--peers-python", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        python = given.peers_python.absolute()
        print(json.dumps(measure(given.dataset.resolve(), python, Path(folder), given.jobs), indent=1))


if __name__ == "__main__":
    main()
