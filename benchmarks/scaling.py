"""How the seconds of a sweep grow with questions, variants, corpus and jobs: a model fitted to small sweeps, as JSON.

    python benchmarks/scaling.py [--searches words vectors] [--record FILE] [--page benchmarks/tables/scaling.md]

Each point is a sweep by the command, in a home folder that is new: made-up documents in chunks of 400 characters,
searched by BM25 or by the packaged MiniLM on this machine; variants differ in how many results they take, so they share
the index and no search. No model is asked. With q questions, v variants, c chunks and w jobs at a time the model is

    seconds = start + index * c + (overhead + work * q) * v / w

Its four numbers, none below zero, are fitted by least squares of the relative errors to some of the points, and
foretell the others. They are fitted to the seconds of the processor, which other work on the machine disturbs little;
those are of all processes, so w counts as 1 there. The same is fitted to the seconds of the clock, with w as it was.
With `--record`, what FILE holds is not measured again, and is added to as soon as it is known.
"""

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from beside.page import argument, tell
from beside.sweeps import OFF, states, swept, written
from machines import write_dataset
from scipy.optimize import nnls

TERMS = ("start", "index", "overhead", "work")
MODES = {"words": "bm25", "vectors": "dense"}
CHUNK_CHARS = 400
FEWEST_RESULTS = 20


@dataclass(frozen=True)
class Point:
    """The size of a sweep; one that is foretold is not fitted to."""

    questions: int
    variants: int
    documents: int
    jobs: int = 1
    foretold: bool = False


POINTS = {
    "words": (
        Point(100, 1, 125),
        Point(1_000, 1, 125),
        Point(100, 6, 125),
        Point(100, 1, 2_500),
        Point(600, 4, 600, jobs=2),
        Point(300, 3, 600, foretold=True),
        Point(1_000, 8, 1_200, jobs=2, foretold=True),
    ),
    "vectors": (
        Point(100, 1, 15),
        Point(500, 1, 15),
        Point(100, 6, 15),
        Point(100, 1, 60),
        Point(300, 4, 30, jobs=2),
        Point(200, 3, 30, foretold=True),
        Point(500, 6, 45, jobs=2, foretold=True),
    ),
}


def measured(search: str, point: Point) -> dict[str, Any]:
    """Return what one sweep took, and how many chunks it searched."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        experiment = {
            "name": "scaling",
            "question": "How do seconds grow?",
            "dataset": str(write_dataset(folder, "made_up", point.documents, point.questions)),
            "base": {**OFF, "corpus": {"chunk_size": CHUNK_CHARS}, "retrieval": {"mode": MODES[search]}},
            "factors": {"retrieval.base_k": [FEWEST_RESULTS + number for number in range(point.variants)]},
            "metrics": ["retrieval.ndcg@10"],
        }
        path, out = written(folder, experiment), folder / "run"
        took = swept(path, out, folder / "home", "--jobs", str(point.jobs), "--no-check")
        if failed := [state for state in states(out).values() if state["status"] != "ok"]:
            raise SystemExit(f"A variant failed: {failed[0]['reason']}")
        chunks = max(known_chunks(one) for one in (folder / "home" / "indexes").glob("*/index.json"))
    return {**asdict(point), "chunks": chunks, **took.told(2)}


def known_chunks(manifest: Path) -> int:
    return int(json.loads(manifest.read_text(encoding="utf-8")).get("n_children", 0))


def terms(row: dict[str, Any], seconds: str) -> list[float]:
    """Return how often each term of the model counts in these seconds."""
    each = row["variants"] / (row["jobs"] if seconds == "wall_s" else 1)
    return [1, row["chunks"], each, each * row["questions"]]


def fitted(rows: list[dict[str, Any]], seconds: str) -> dict[str, float]:
    """Return the seconds of each term."""
    known = [row for row in rows if not row["foretold"]]
    weights = 1 / np.array([row[seconds] for row in known])
    found, _ = nnls(np.array([terms(row, seconds) for row in known]) * weights[:, None], np.ones(len(known)))
    return {name: float(f"{value:.3g}") for name, value in zip(TERMS, found, strict=True)}


def foretold(row: dict[str, Any], found: dict[str, float], seconds: str) -> float:
    return round(float(np.dot([found[name] for name in TERMS], terms(row, seconds))), 1)


def main() -> None:
    """Measure what is not recorded, fit, tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--searches", nargs="+", default=list(MODES), choices=list(MODES))
    parser.add_argument("--record", type=Path)
    argument(parser)
    given = parser.parse_args()
    known: dict[str, list[dict[str, Any]]] = {}
    if given.record and given.record.exists():
        known = json.loads(given.record.read_text())
    coefficients: dict[str, Any] = {}
    for search in given.searches:
        rows = known.setdefault(search, [])
        for point in POINTS[search][len(rows) :]:
            rows.append(measured(search, point))
            if given.record:
                given.record.write_text(json.dumps(known, indent=1))
        coefficients[search] = {seconds: fitted(rows, seconds) for seconds in ("cpu_s", "wall_s")}
        for row in rows:
            row["told_s"] = {by: foretold(row, found, by) for by, found in coefficients[search].items()}
            row["error"] = {by: round(told / row[by] - 1, 3) for by, told in row["told_s"].items()}
    header = ["search", "q", "v", "c", "w", "processor, s", "model", "clock, s", "model", ""]
    lines = [
        [
            search,
            *(row[name] for name in ("questions", "variants", "chunks", "jobs")),
            *(one for seconds in ("cpu_s", "wall_s") for one in (row[seconds], row["told_s"][seconds])),
            "foretold" if row["foretold"] else "",
        ]
        for search in given.searches
        for row in known[search]
    ]
    tell("scaling", {"coefficients": coefficients, "rows": known}, header, lines, given.page)


if __name__ == "__main__":
    main()
