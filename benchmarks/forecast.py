"""The minutes that a dry run tells beside those that the first sweep then takes, as JSON on stdout.

    python benchmarks/forecast.py [--sets contoso_hr scifact] [--searches words dense] [--documents N] [--page FILE]

In a fresh home folder for each set and search: first the forecast that `rag-lab sweep --dry-run` tells, of a
machine on which nothing was measured yet; then the command itself, index included, by the clock. `words` are BM25
and TF-IDF, `dense` is MiniLM with two numbers of passages. `times` is the larger of the two over the smaller: 2 is
the most that is asked. `--documents` cuts a BEIR set to so many documents, where a sweep would take too long.
`--jobs 1` is what is told; with two cores and two jobs the sweep may take half of it.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from beside.data import cut, imported, public
from beside.page import argument, tell
from beside.sweeps import OFF, swept, written
from beside.took import ran

SEARCHES: dict[str, dict[str, list[Any]]] = {
    "words": {"retrieval.mode": ["bm25", "tfidf"]},
    "dense": {"retrieval.base_k": [20, 10]},
}
QUESTIONS = 300  # of a set that is cut
FORECAST = """
import json, sys
from pathlib import Path
from rag_lab.experiment.forecast.cost_estimate import estimate
from rag_lab.experiment.plan import plan

bill = estimate(plan(Path(sys.argv[1])))
minutes = {name: getattr(bill.machine, name) for name in ("embedding", "notebooks", "report", "total")}
print(json.dumps(minutes | {"calls": bill.minutes}))
"""


def experiment(name: str, search: str, dataset: Path) -> dict[str, Any]:
    return {
        "name": f"{name}_{search}",
        "question": "Does the dry run tell what a sweep takes?",
        "dataset": str(dataset),
        "base": {**OFF, "retrieval": {"mode": "dense"}},
        "factors": SEARCHES[search],
        "design": "grid",
        "metrics": ["retrieval.ndcg@10", "retrieval.mrr@10", "cost.seconds"],
    }


def compared(name: str, search: str, dataset: Path, folder: Path, jobs: int) -> dict[str, Any]:
    folder.mkdir()
    path, home = written(folder, experiment(name, search, dataset)), folder / "home"
    forecast, printed = ran([sys.executable, "-c", FORECAST, str(path)], folder, {"RAG_LAB_HOME": str(home)})
    minutes = json.loads(printed.splitlines()[-1])
    took = swept(path, folder / "run", home, "--jobs", str(jobs))
    told_s = 60 * (minutes["total"] + (minutes["calls"] or 0))
    return {
        "set": name,
        "search": search,
        "dry_run": forecast.told(),
        "told_s": round(told_s, 1),
        "told_minutes": {part: round(n or 0, 2) for part, n in minutes.items()},
        "sweep": took.told(),
        "times": round(max(told_s, took.wall_s) / min(told_s, took.wall_s), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=["contoso_hr", "scifact"])
    parser.add_argument("--searches", nargs="+", default=list(SEARCHES), choices=list(SEARCHES))
    parser.add_argument("--documents", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    argument(parser)
    given = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in given.sets:
            source = public(name)
            if given.documents and (source / "corpus.jsonl").is_file():
                source = cut(source, folder / f"{name}_cut", QUESTIONS, given.documents)
            dataset = imported(source, folder / name)
            for search in given.searches:
                found.append(compared(name, search, dataset, folder / f"{name}_{search}", given.jobs))
                print(json.dumps(found[-1]), file=sys.stderr)
    rows = [[f"{one['set']}, {one['search']}", one["told_s"], one["sweep"]["wall_s"], one["times"]] for one in found]
    told = {"documents": given.documents or "all", "jobs": given.jobs, "sweeps": found}
    tell("forecast", told, ["set and search", "told, s", "took, s", "times"], rows, given.page)


if __name__ == "__main__":
    main()
