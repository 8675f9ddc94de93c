"""Index time, query time, memory, disk and recall of every store as the corpus grows, as JSON on stdout.

    python benchmarks/growth.py [--sizes 10000 100000 1000000] [--stores chroma faiss ...] [--record FILE]
    python benchmarks/growth.py --show FILE [--table] [--figure FILE.png]

Vectors are synthetic: 384 dimensions, drawn around 500 centres in a space of 32 dimensions and turned into the larger
one with a little noise, which is about as hard for a graph as sentence embeddings are. Texts for BM25 have 100 words
drawn by Zipf's law from 50,000. Each store is built in one process, searched in another, one query at a time, k = 10.

Times of indexing and of queries are CPU seconds of all threads, which a busy machine disturbs little; `p50_wall_ms` is
what the clock said. `memory_mib` is the peak of the process that searches, Python and the library included. `recall` is
the share of the ten true neighbours that were found. `filtered_p50_ms` is a query that may see every tenth child.
With `--record`, what FILE holds already is not measured again, and is added to as soon as it is known.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rag_lab.models.protocols import Vectors
from rag_lab.stores.config import STORE_NAMES, STORES

DIM, LATENT_DIM, CENTRES, NOISE = 384, 32, 500, 0.05
VOCABULARY, WORDS = 50_000, 100
N_QUERIES, K = 100, 10
BLOCK = 50_000
NAMES = (*STORE_NAMES, "bm25")
LABELS = ["some", *["most"] * 9]
SOME = frozenset({"some"})
Row = dict[str, Any]


def blocks(n: int) -> Iterator[tuple[np.random.Generator, int]]:
    """Give a generator and a size for each part of n, so that a larger corpus begins with the smaller one."""
    for number, start in enumerate(range(0, n, BLOCK)):
        yield np.random.default_rng((7, number)), min(BLOCK, n - start)


def vectors(n: int) -> Vectors:
    shared = np.random.default_rng(3)
    centres = shared.normal(size=(CENTRES, LATENT_DIM))
    into = shared.normal(size=(LATENT_DIM, DIM)) / LATENT_DIM**0.5
    rows = np.empty((n, DIM), np.float32)
    for number, (random, size) in enumerate(blocks(n)):
        latent = centres[random.integers(CENTRES, size=BLOCK)] + random.normal(size=(BLOCK, LATENT_DIM))
        block = latent @ into + NOISE * random.normal(size=(BLOCK, DIM))
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        rows[number * BLOCK : number * BLOCK + size] = block[:size]
    return rows


def texts(n: int) -> list[str]:
    chances = 1 / np.arange(1, VOCABULARY + 1)
    chances /= chances.sum()
    found: list[str] = []
    for random, size in blocks(n):
        found += [
            " ".join(f"w{word}" for word in words)
            for words in random.choice(VOCABULARY, (BLOCK, WORDS), p=chances)[:size]
        ]
    return found


def queries(rows: Vectors) -> Vectors:
    """Vectors near those of the corpus: its first, moved a little."""
    near = rows[:N_QUERIES] + 0.02 * np.random.default_rng(11).normal(size=(N_QUERIES, DIM))
    return (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)


def names_and_labels(n: int) -> tuple[list[str], list[str]]:
    return [f"file_{number // 20}.pdf#p{number}/0" for number in range(n)], [LABELS[i % 10] for i in range(n)]


def seconds(job: Callable[[], object]) -> tuple[float, float]:
    """Return CPU seconds of all threads, and wall-clock seconds."""
    start, cpu_start = time.perf_counter(), time.process_time()
    job()
    return time.process_time() - cpu_start, time.perf_counter() - start


def build(name: str, n: int, folder: Path) -> Row:
    ids, labels = names_and_labels(n)
    if name == "bm25":
        from rag_lab.stores.sparse import BM25Index

        corpus = texts(n)
        cpu_s, wall_s = seconds(lambda: BM25Index.build(folder, ids, corpus, "unicode"))
        questions = [" ".join(text.split()[10:16]) for text in corpus[:N_QUERIES]]
        folder.with_name("questions.json").write_text(json.dumps(questions))
    else:
        from rag_lab.stores.registry import store_class

        store, rows = store_class(name), vectors(n)
        cpu_s, wall_s = seconds(lambda: store.build(folder, ids, rows, labels))
        near = queries(rows)
        np.save(folder.with_name("queries.npy"), near)
        np.save(folder.with_name("nearest.npy"), np.argpartition(near @ rows.T, -K, axis=1)[:, -K:])
    disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"index_s": round(cpu_s, 2), "index_wall_s": round(wall_s, 2), "disk_mib": round(disk / 2**20, 1)}


def opened(name: str, folder: Path) -> tuple[Any, list[Any]]:
    """Return the store and what it is asked, one batch of one a query."""
    if name == "bm25":
        from rag_lab.stores.sparse import BM25Index

        return BM25Index.open(folder), [[text] for text in json.loads(folder.with_name("questions.json").read_text())]
    from rag_lab.stores.registry import store_class

    return store_class(name).open(folder), [query[None] for query in np.load(folder.with_name("queries.npy"))]


def search(name: str, n: int, folder: Path) -> Row:
    store, asked = opened(name, folder)
    open_s, _ = seconds(lambda: store.search(asked[0], K))
    found: list[list[str]] = []
    times = np.array([seconds(lambda one=one: found.extend(store.search(one, K)[0])) for one in asked]) * 1000
    filtered_p50_ms = None  # of words, who sees every tenth child has an index of these alone
    if name != "bm25":
        store.search(asked[0], K, SOME)
        filtered = np.array([seconds(lambda one=one: store.search(one, K, SOME))[0] for one in asked[:20]]) * 1000
        filtered_p50_ms = round(float(np.percentile(filtered, 50)), 3)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "open_s": round(open_s, 3),
        "p50_ms": round(float(np.percentile(times[:, 0], 50)), 3),
        "p95_ms": round(float(np.percentile(times[:, 0], 95)), 3),
        "p50_wall_ms": round(float(np.percentile(times[:, 1], 50)), 3),
        "filtered_p50_ms": filtered_p50_ms,
        "memory_mib": round(memory),
        "recall": None if name == "bm25" else round(recall(found, n, np.load(folder.with_name("nearest.npy"))), 4),
    }


def recall(found: list[list[str]], n: int, nearest: Any) -> float:
    ids, _ = names_and_labels(n)
    return float(
        np.mean([len({ids[row] for row in true} & set(got)) / K for true, got in zip(nearest, found, strict=True)])
    )


def measured(name: str, n: int) -> Row:
    with tempfile.TemporaryDirectory(prefix="growth_") as scratch:
        parts = [
            subprocess.run(
                [sys.executable, __file__, "--phase", phase, name, str(n), str(Path(scratch) / "store")],
                check=True,
                capture_output=True,
                text=True,
            ).stdout.splitlines()[-1]
            for phase in ("build", "search")
        ]
    return {"store": name, "n_children": n, **json.loads(parts[0]), **json.loads(parts[1])}


COLUMNS = {
    "store": "store",
    "n_children": "children",
    "index_s": "index, CPU s",
    "p50_ms": "query p50, CPU ms",
    "p95_ms": "p95",
    "filtered_p50_ms": "filtered p50",
    "memory_mib": "memory, MiB",
    "disk_mib": "disk, MiB",
    "recall": "recall@10",
}


def table(rows: list[Row]) -> str:
    ordered = sorted(rows, key=lambda row: (row["n_children"], NAMES.index(row["store"])))
    lines = [[f"{row[key]:,}" if key == "n_children" else str(row[key]) for key in COLUMNS] for row in ordered]
    shown = [[("–" if cell == "None" else cell) for cell in line] for line in lines]
    rule = ["---", *["--:"] * (len(COLUMNS) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [list(COLUMNS.values()), rule, *shown])


PANELS = {
    "p50_ms": "query, CPU ms (line: median, dots: p95)",
    "index_s": "index, CPU s",
    "memory_mib": "memory of the searching process, MiB",
    "disk_mib": "disk, MiB",
}


def figure(rows: list[Row], path: Path) -> None:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(10, 7), layout="constrained")
    for place, (key, label) in enumerate(PANELS.items(), 1):
        axes = drawing.add_subplot(2, 2, place)
        draw(axes, rows, key)
        axes.set(xlabel="children", title=label)
        axes.title.set_fontsize(10)
    lines, names = axes.get_legend_handles_labels()
    drawing.legend(lines, names, loc="outside lower center", ncols=len(NAMES), frameon=False)
    drawing.savefig(path, dpi=120, facecolor="white")


def draw(axes: Any, rows: list[Row], key: str) -> None:
    """Draw one measure of every store against the corpus, both axes logarithmic."""
    from rag_lab.report.figures import GRID

    axes.spines[:].set_color(GRID)
    axes.grid(color=GRID, linewidth=0.6)
    for name in NAMES:
        kept = sorted((row for row in rows if row["store"] == name), key=lambda row: row["n_children"])
        sizes = [row["n_children"] for row in kept]
        (line,) = axes.loglog(sizes, [row[key] or None for row in kept], marker="o", markersize=4, label=name)
        if key == "p50_ms":
            axes.loglog(sizes, [row["p95_ms"] for row in kept], ".", color=line.get_color(), alpha=0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--stores", nargs="+", choices=NAMES, default=[n for n in NAMES if n == "bm25" or installed(n)])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--show", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--phase", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.phase:
        phase, name, n, folder = given.phase
        print(json.dumps((build if phase == "build" else search)(name, int(n), Path(folder))))
        return
    record = given.show or given.record
    rows: list[Row] = json.loads(record.read_text()) if record and record.exists() else []
    for n in given.sizes if given.show is None else []:
        for name in given.stores:
            if not any((row["store"], row["n_children"]) == (name, n) for row in rows):
                rows.append(measured(name, n))
                if given.record:
                    given.record.write_text(json.dumps(rows, indent=1))
    if given.figure:
        figure(rows, given.figure)
    print(table(rows) if given.table else json.dumps(rows, indent=1))


def installed(name: Any) -> bool:
    return find_spec(STORES[name].needs) is not None


if __name__ == "__main__":
    main()
