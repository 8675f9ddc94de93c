"""Sweeps beside those of context-grid 0.9.5 and pyterrier 1.1.2, as JSON on stdout.

    python3.11 -m venv PEERS
    PEERS/bin/pip install context-grid==0.9.5 "pyterrier[java]==1.1.2"
    python benchmarks/peers.py --peers-python PEERS/bin/python [--jobs auto] [--grids equal_words grid_4] [--page FILE]

The corpus is XQuAD, 240 paragraphs and 1,190 questions, or another data set of this project by `--dataset`. Both
sides read the same files, ask the same questions, find ten passages each and are one command each, with their own
start, statistics and report; ours executes a notebook a variant. Each is told in seconds of the clock and of the
processor, and runs by turns with the other. The grids marked *equal* search whole files, by BM25 (k1 1.5, b 0.75,
words in small letters, no stems) and by the vectors of one server, which both can do alike: their nDCG@10 must
agree. In the others each side cuts by its own unit, ours characters, theirs its own tokens, and ours takes words to
their stems and finds the file of a chunk where theirs finds the chunk: nDCG differs.

Vectors come from a server on loopback that speaks OpenAI's protocol to us and TEI's to them. It takes 5 ms for a
text and does one text at a time, as one small device does, so that calls side by side gain nothing.

The second run of a grid is the same command again: theirs finds its cache on disk and does its grid again, ours
finds that nothing has changed and leaves results and report as they are. In the third, ours has its results deleted and
finds the home folder only, so that all notebooks are executed and the report is made again; theirs is the second's.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from beside.data import imported, public
from beside.model_servers import embedding_server
from beside.page import argument, tell
from beside.sweeps import OFF, means, swept, written
from beside.took import Took, ran

CHARS_PER_TOKEN = 4
METRIC = "ndcg@10"
WHOLE_CHARS = 8000
TEXT_S = 0.005  # of the embedding server
SECOND, DELETED = "_second", "_deleted"
GRIDS: dict[str, tuple[Sequence[str], Sequence[int], str]] = {  # searches, characters of a chunk, analyzer
    "equal_words": (("bm25",), (WHOLE_CHARS,), "unicode"),
    "equal_dense": (("dense",), (WHOLE_CHARS,), "unicode"),
    "grid_4": (("bm25", "tfidf"), (800, 400), "english"),
    "grid_12": (("bm25", "tfidf", "dense"), (1200, 800, 600, 400), "english"),
}
NAMES = {
    "equal_words": "whole files, BM25",
    "equal_dense": "whole files, vectors",
    "grid_4": "4 points: BM25 and TF-IDF, two sizes of chunks",
    "grid_12": "12 points: BM25, TF-IDF and vectors, four sizes",
}


class RagLab:
    """Our side, in a folder of its own with a home of its own."""

    def __init__(self, dataset: Path, folder: Path, jobs: str, server: str) -> None:
        self._dataset, self._folder, self._jobs, self._server = dataset, folder, jobs, server
        folder.mkdir()

    def run(self, grid: str, *, cold: bool = False, deleted: bool = False) -> tuple[Took, dict[str, float]]:
        """Sweep a grid, cold or with its results deleted, and return what it took, and the nDCG of each variant."""
        searches, sizes, analyzer = GRIDS[grid]
        experiment = {
            "name": grid,
            "question": "Which search finds the passage?",
            "dataset": str(self._dataset),
            "base": {
                **OFF,
                "corpus": {"chunk_overlap": 0, "parent_size": WHOLE_CHARS},
                "retrieval": {"analyzer": analyzer, "base_k": 10},
                "rerank": {"name": "none", "input_limit": 10, "final_k": 10},
                "models": {"embedding": f"openai:hashed?base_url={self._server}/v1"},
                "store": {"name": "exact"},
            },
            "factors": {"retrieval.mode": list(searches), "corpus.chunk_size": list(sizes)},
            "design": "grid",
            "metrics": [f"retrieval.{METRIC}", "retrieval.mrr@10", "retrieval.evidence_recall@5", "cost.seconds"],
        }
        path, out, home = written(self._folder, experiment), self._folder / grid, self._folder / "home"
        if cold or deleted:
            shutil.rmtree(out, ignore_errors=True)
        if cold:
            shutil.rmtree(home, ignore_errors=True)
        took = swept(path, out, home, "--jobs", self._jobs)
        return took, means(out, f"retrieval.{METRIC}")


class ContextGrid:
    """The peer, by the command that it brings."""

    def __init__(self, dataset: Path, folder: Path, python: Path, server: str) -> None:
        self._folder, self._command, self._server = folder, python.parent / "contextgrid", server
        folder.mkdir()
        (folder / "corpus").symlink_to(dataset / "corpus")
        asked = map(json.loads, (dataset / "questions.jsonl").read_text(encoding="utf-8").splitlines())
        lines = (json.dumps(_eval_item(question)) for question in asked)
        (folder / "questions.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def run(self, grid: str, *, cold: bool) -> tuple[Took, dict[str, float]]:
        """Run a grid and return what it took, and the nDCG of each configuration."""
        searches, sizes, _ = GRIDS[grid]
        served = f"tei:hashed,api_base={self._server},query_prefix=,document_prefix=,max_tokens={WHOLE_CHARS}"
        embedders = {"bm25": None, "tfidf": "tfidf", "dense": served}
        config = {
            "name": grid,
            "corpus": "corpus",
            "evalset": "questions.jsonl",
            "grid": {
                "parser": ["text"],
                "chunker": [f"recursive:{size // CHARS_PER_TOKEN}" for size in sizes],
                "embedder": [embedders[search] for search in searches],
                "index": sorted({"bm25" if search == "bm25" else "dense" for search in searches}),
            },
            "run": {"mode": "factorial", "k": 10, "headline": METRIC, "cache": "disk"},
            "report": {"out": f"./{grid}", "formats": ["markdown", "json", "yaml", "python"]},
        }
        file = self._folder / f"{grid}.yaml"
        file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        if cold:
            shutil.rmtree(self._folder / grid, ignore_errors=True)  # the report, and the cache in it
        took, _ = ran([str(self._command), "run", str(file)], self._folder)
        runs = json.loads((self._folder / grid / "results.json").read_text(encoding="utf-8"))["runs"]
        return took, {_named(run["config"]): _ndcg(run) for run in runs}


def _named(config: Mapping[str, Any]) -> str:
    embedder = (config.get("embedder") or "").partition(":")[0]
    return " ".join(filter(None, [config["index"], embedder, config["chunker"]]))


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


def side_by_side(grid: str, ours: RagLab, theirs: ContextGrid) -> dict[str, Any]:
    """Return both sides of one grid, cold and, for a grid of several points, once more."""
    (peer, their_ndcg), (mine, our_ndcg) = theirs.run(grid, cold=True), ours.run(grid, cold=True)
    found = {
        grid: {
            "context_grid": {**peer.told(), METRIC: their_ndcg},
            "rag_lab": {**mine.told(), METRIC: our_ndcg},
            "times_as_fast": peer.over(mine),
        }
    }
    if len(our_ndcg) == len(their_ndcg) == 1:
        (our_one,), (their_one,) = our_ndcg.values(), their_ndcg.values()
        found[grid]["agree_to_three_decimals"] = abs(our_one - their_one) < 0.0005
        return found
    (peer, _), (again, _), (anew, _) = theirs.run(grid, cold=False), ours.run(grid), ours.run(grid, deleted=True)
    for run, mine in ((SECOND, again), (DELETED, anew)):
        sides = {"context_grid": peer.told(), "rag_lab": mine.told()}
        found[f"{grid}{run}"] = {**sides, "times_as_fast": peer.over(mine)}
    return found


def measure(dataset: Path, python: Path, scratch: Path, jobs: str, grids: Sequence[str]) -> dict[str, Any]:
    asked = (dataset / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    with embedding_server(TEXT_S) as server:
        ours = RagLab(dataset, scratch / "rag_lab", jobs, server.url)
        theirs = ContextGrid(dataset, scratch / "context_grid", python, server.url)
        found: dict[str, Any] = {}
        for grid in grids:
            found |= side_by_side(grid, ours, theirs)
    return {"questions": len(asked), "jobs": jobs, "grids": found, "pyterrier": pyterrier(python)}


def row(name: str, found: Mapping[str, Any]) -> list[str | float]:
    mine, peer = found["rag_lab"], found["context_grid"]
    grid = name.removesuffix(SECOND).removesuffix(DELETED)
    which = {SECOND: ", the same command again", DELETED: ", again with our results deleted"}
    told = NAMES[grid] + which.get(name.removeprefix(grid), "")
    return [
        told,
        *(side[part] for part in ("wall_s", "cpu_s") for side in (peer, mine)),
        *found["times_as_fast"].values(),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path)
    parser.add_argument("--peers-python", type=Path, required=True)
    parser.add_argument("--jobs", default="auto", help="of ours; theirs takes what it likes, too")
    parser.add_argument("--grids", nargs="+", default=list(GRIDS), choices=list(GRIDS))
    argument(parser)
    given = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "none")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        dataset = given.dataset or imported(public("xquad/xquad.en.json"), folder / "xquad")
        found = measure(dataset.resolve(), given.peers_python.absolute(), folder, given.jobs, given.grids)
    header = ["", "theirs, s", "ours, s", "theirs, processor s", "ours, processor s", "times as fast", "by processor"]
    tell("peers", found, header, [row(*one) for one in found["grids"].items()], given.page)


if __name__ == "__main__":
    main()
