"""How the seconds of a sweep grow with questions, variants and corpus, beside the model of docs/scaling.md, as JSON.

    python benchmarks/scaling.py [--record FILE] [--table]

Sweeps by the command, one job, in a home folder that is new: BM25 over made-up documents, chunk size and k differ, and
no model is asked. A point is questions x variants x documents; each is measured once, in processor seconds of all its
processes, which a busy machine disturbs little, and in wall seconds. The model is

    seconds = start + index x documents x indexes + (overhead + asked x questions) x variants

and its four numbers are fitted to the processor seconds by least squares of the relative errors, with none below zero.
The last point is not fitted to, but foretold. With `--record`, what FILE holds is not measured again, and is added to
as soon as it is known.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from machines import write_dataset
from scipy.optimize import nnls

QUESTIONS, VARIANTS, DOCUMENTS = (100, 300, 1_000), (1, 4, 16), (150, 600)
MIDDLE = (300, 4, 150)
POINTS = (
    *((n, MIDDLE[1], MIDDLE[2]) for n in QUESTIONS),
    *((MIDDLE[0], n, MIDDLE[2]) for n in VARIANTS if n != MIDDLE[1]),
    *((MIDDLE[0], MIDDLE[1], n) for n in DOCUMENTS if n != MIDDLE[2]),
    (1_000, 16, 600),  # the corner, which says whether the parts add up
)
TERMS = ("start", "index", "overhead", "asked")
FITTED_TO = len(POINTS) - 1  # the corner is foretold
RUN = "import sys; from rag_lab.cli import main; main()"
INDEXES = 2  # chunk sizes, of which each has an index of its own


def sizes_of(variants: int) -> dict[str, list[int]]:
    """Return the factors of so many variants."""
    if variants == 1:
        return {"rerank.final_k": [1]}
    return {"corpus.chunk_size": [400, 900], "rerank.final_k": [*range(1, variants // INDEXES + 1)]}


def indexes(variants: int) -> int:
    return 1 if variants == 1 else INDEXES


def measured(questions: int, variants: int, documents: int) -> dict[str, Any]:
    """Return what one sweep took; it runs in a process whose children the system adds up."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        experiment = {
            "name": "scaling",
            "question": "How do seconds grow?",
            "dataset": str(write_dataset(folder, "made_up", documents, questions)),
            "base": {
                "corpus": {"chunk_size": 400},
                "query": {"rewrite": "none", "hyde": "none"},
                "retrieval": {"mode": "bm25"},
                "answer": {"name": "none"},
            },
            "design": "grid",
            "factors": sizes_of(variants),
            "metrics": ["retrieval.ndcg@10"],
        }
        (folder / "scaling.yaml").write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
        command = ["sweep", str(folder / "scaling.yaml"), "--out", str(folder / "run"), "--jobs", "1", "--no-check"]
        environment = {**os.environ, "RAG_LAB_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
        began_s, before = time.monotonic(), os.times()
        ended = subprocess.run([sys.executable, "-c", RUN, *command], env=environment, capture_output=True, text=True)
        wall_s, after = time.monotonic() - began_s, os.times()
        if ended.returncode:
            raise SystemExit(ended.stderr)
        planned = json.loads((folder / "run" / "plan.json").read_text())
    processor_s = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        "questions": len(planned["questions"]),
        "variants": len(planned["variants"]),
        "documents": documents,
        "processor_s": round(processor_s, 2),
        "wall_s": round(wall_s, 2),
    }


def terms(row: dict[str, Any]) -> list[float]:
    """Return how often each term of the model counts."""
    variants = row["variants"]
    return [1, row["documents"] * indexes(variants), variants, variants * row["questions"]]


def fitted(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the seconds of each term."""
    weights = 1 / np.array([row["processor_s"] for row in rows])
    found, _ = nnls(np.array([terms(row) for row in rows]) * weights[:, None], np.ones(len(rows)))
    return {name: float(value) for name, value in zip(TERMS, found, strict=True)}


def table(rows: list[dict[str, Any]]) -> str:
    columns = ("questions", "variants", "documents", "processor_s", "foretold_s", "wall_s")
    lines = [[f"{row[column]:,}" for column in columns] for row in rows]
    names = ("questions", "variants", "documents", "processor s", "by the model", "wall s")
    return "\n".join(f"| {' | '.join(line)} |" for line in [[*names], ["--:"] * len(names), *lines])


def main() -> None:
    """Measure what is not recorded, fit, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = json.loads(asked.record.read_text()) if asked.record and asked.record.exists() else []
    for point in POINTS[len(rows) :]:
        rows.append(measured(*point))
        if asked.record:
            asked.record.write_text(json.dumps(rows, indent=1))
    seconds = fitted(rows[:FITTED_TO])
    for row in rows:
        row["foretold_s"] = round(float(np.dot(list(seconds.values()), terms(row))), 1)
    found = {"benchmark": "scaling", "seconds": seconds, "rows": rows}
    print(table(rows) if asked.table else json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
