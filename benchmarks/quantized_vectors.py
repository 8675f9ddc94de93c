"""What vectors in fewer bits lose and save: nDCG@10 of dense search by `store.vectors`, with the packaged MiniLM.

    python benchmarks/quantized_vectors.py DATASET... [--questions N] [--stores exact faiss]

A DATASET is a name or path that `rag-lab datasets list` or `import` gave. For each store and kind it prints the change
of nDCG@10 against float32 in the same store with a 95% interval over the questions, the bytes of the vectors' folder by
those of float32, the share of near neighbours kept, and the milliseconds of a search.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from late_interaction import gain, scores_of

from rag_lab._kit.machine import bytes_on_disk
from rag_lab.corpus.build_index import SEARCHED
from rag_lab.data.dataset import Dataset
from rag_lab.pipeline import Pipeline
from rag_lab.stores.config import STORES

ALONE = {"answer.name": "none", "retrieval.mode": "dense", "rerank.name": "none", "rerank.final_k": 10}


def measured(dataset: Dataset, stores: list[str], n: int | None) -> dict[str, Any]:
    asked = [question for question in dataset.questions if question.evidence][:n]
    found: dict[str, Any] = {"questions": len(asked)}
    for store in stores:
        floats: tuple[dict[str, float], int] | None = None
        for kind in ("float32", *STORES[store].quantized):
            pipeline = Pipeline(dataset).set(ALONE | {"store.name": store, "store.vectors": kind})
            scores = scores_of(pipeline.run(asked, answer=(), read=lambda _: ()))
            index = pipeline.index
            size = bytes_on_disk(index.vectors.folder(index.path / SEARCHED))
            queries = index.vectors.embedder.embed_queries([question.text for question in asked])
            started = time.perf_counter()
            for row in range(len(queries)):
                index.vector_store.search(queries[row : row + 1], 20)
            ms = 1000 * (time.perf_counter() - started) / len(queries)
            if floats is None:
                floats = scores, size
            found[f"{store} {kind}"] = {
                "ndcg@10": round(sum(scores.values()) / len(scores), 4), **gain(floats[0], scores),
                "disk": round(size / floats[1], 3), "kept": index.price(with_vectors=True).get("kept"),
                "ms": round(ms, 2),
            }  # fmt: skip
        found["chunks"] = index.manifest.n_children
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--questions", type=int)
    parser.add_argument("--stores", nargs="+", default=["exact", "faiss"])
    given = parser.parse_args()
    for name in given.datasets:
        dataset = Dataset.load(Path(name) if Path(name).is_dir() else name)
        with tempfile.TemporaryDirectory() as home:
            os.environ["RAG_LAB_HOME"] = home
            print(json.dumps({dataset.name: measured(dataset, given.stores, given.questions)}, indent=1), flush=True)


if __name__ == "__main__":
    main()
