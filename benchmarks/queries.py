"""A batch of 1,000 queries beside bare encoding plus bare index search, as JSON on stdout.

    python benchmarks/queries.py [--children 10000] [--queries 1000] [--k 20] [--rounds 3]

Bare: `SentenceTransformer.encode` of the questions, then the library's own search for the same number of children (one
call on the engine that the store has built). The workbench: its embedder and `store.search`, ties and exact scores
included. All sides run in this process on the same weights, in turns, and the quickest round of each counts. Nothing
is remembered. `ratio` is the workbench over the bare sides, and 1.15 is the most that is accepted; `search_ratio` is
that of the searches alone. Both are of CPU seconds, all threads together, which a busy machine disturbs little;
`wall_ratio` is by the clock.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from indexing import packaged_model

from rag_lab.models import shared as registry
from rag_lab.models.protocols import Vectors
from rag_lab.stores.engine import ExactStore
from rag_lab.stores.sparse import BM25Index, terms
from rag_lab.stores.vector_stores import ChromaStore, FaissStore

CHILDREN_PER_PARENT = 4  # what dense retrieval asks a store for
SUBJECTS = ("pump", "valve", "conveyor", "press", "furnace", "robot", "boiler", "compressor")
DOINGS = ("inspect", "replace", "clean", "adjust", "start", "stop", "measure", "lubricate", "dismantle")
PARTS = ("seal", "bearing", "filter", "motor", "belt", "sensor", "gasket", "shaft", "coupling", "gauge")


def sentences(n: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [
        f"{random.choice(DOINGS)} the {random.choice(PARTS)} of {random.choice(SUBJECTS)} {random.integers(5000)} "
        f"every {random.integers(1, 900)} hours at {random.integers(400)} bar"
        for _ in range(n)
    ]


def bare_exact(store: ExactStore, queries: Vectors, k: int) -> object:
    near = queries @ store.rows.vectors.T
    best = np.argpartition(near, -k, axis=1)[:, -k:]
    order = np.argsort(-np.take_along_axis(near, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def bare_faiss(store: FaissStore, queries: Vectors, k: int) -> object:
    import faiss

    return store._graph.search(queries, k, params=faiss.SearchParametersHNSW(efSearch=800))


def bare_chroma(store: ChromaStore, queries: Vectors, k: int) -> object:
    return store._collection.query(query_embeddings=queries, n_results=k, include=["distances"])


def bare_bm25(store: BM25Index, texts: Sequence[str], k: int) -> object:
    return store._postings.retrieve(terms(texts, "unicode"), k=k, show_progress=False)


def quickest(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, Any]:
    """Return the least CPU and wall-clock seconds of each job, run in turns: a slow moment of the machine hits all."""
    seconds = {name: np.array([np.inf, np.inf]) for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            start, cpu_start = time.perf_counter(), time.process_time()
            job()
            spent = np.array([time.process_time() - cpu_start, time.perf_counter() - start])
            seconds[name] = np.minimum(seconds[name], spent)
    return seconds


def compared(name: str, seconds: dict[str, Any]) -> dict[str, Any]:
    bare, ours = seconds[f"bare {name}"], seconds[name]
    none = np.zeros(2)
    bare_encode, encode = (none, none) if name == "BM25Index" else (seconds["bare encode"], seconds["encode"])
    ratio, wall_ratio = (encode + ours) / (bare_encode + bare)
    return {
        "store": name,
        "bare_encode_cpu_s": round(bare_encode[0], 3),
        "encode_cpu_s": round(encode[0], 3),
        "bare_search_cpu_s": round(bare[0], 3),
        "search_cpu_s": round(ours[0], 3),
        "ratio": round(ratio, 3),
        "search_ratio": round(ours[0] / bare[0], 2),
        "wall_ratio": round(wall_ratio, 3),
    }


def measure(n_children: int, n_queries: int, k: int, rounds: int, scratch: Path) -> list[dict[str, Any]]:
    model, embedder = packaged_model(), registry.embedder("sentence_transformers:minilm")
    children, questions = sentences(n_children, 1), sentences(n_queries, 2)
    random = np.random.default_rng(5)
    near = random.normal(size=(n_children, 32)) @ random.normal(size=(32, 384))
    rows = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)
    ids, labels = [f"c{number}" for number in range(n_children)], ["public"] * n_children
    bare: dict[Any, Callable[[Any, Any, int], object]] = {
        ExactStore: bare_exact,
        FaissStore: bare_faiss,
        ChromaStore: bare_chroma,
    }
    queries = rows[random.integers(n_children, size=n_queries)] + random.normal(scale=0.01, size=(n_queries, 384))
    queries = (queries / np.linalg.norm(queries, axis=1, keepdims=True)).astype(np.float32)
    jobs: dict[str, Callable[[], object]] = {
        "bare encode": lambda: model.encode(questions, normalize_embeddings=True, show_progress_bar=False),
        "encode": lambda: embedder.embed_queries(questions),
    }
    for store, search in bare.items():
        store.build(scratch / store.__name__, ids, rows, labels)
        opened = store.open(scratch / store.__name__)
        jobs[f"bare {store.__name__}"] = lambda opened=opened, search=search: search(opened, queries, k)
        jobs[store.__name__] = lambda opened=opened: opened.search(queries, k)
    BM25Index.build(scratch / "BM25Index", ids, children, "unicode")
    words = BM25Index.open(scratch / "BM25Index")
    jobs["bare BM25Index"] = lambda: bare_bm25(words, questions, k)
    jobs["BM25Index"] = lambda: words.search(questions, k)
    quickest(jobs, 1)  # imports and first-use costs, not measured
    seconds = quickest(jobs, rounds)
    return [compared(name, seconds) for name in (*(store.__name__ for store in bare), "BM25Index")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--children", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--k", type=int, default=20, help="parents; a store is asked for four times as many children")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        k = given.k * CHILDREN_PER_PARENT
        print(json.dumps(measure(given.children, given.queries, k, given.rounds, Path(scratch)), indent=1))


if __name__ == "__main__":
    main()
