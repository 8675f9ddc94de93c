"""How much faster a Ray cluster of two nodes, a core each, runs a sweep than one node: `python benchmarks/machines.py`.

The variants share no work: each has chunks of its own. Both clusters are of this machine, and run one after the other,
each in a home of its own. Prints JSON: wall seconds of the variants, without the start of Ray, and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from rag_lab.experiment.run.sweep import sweep

SIZES = (300, 400, 500, 600, 700, 800, 900, 1000)


def seconds(nodes: int, dataset: str, folder: Path) -> float:
    """Return how long the sweep takes on a cluster of so many nodes."""
    os.environ["RAG_LAB_HOME"] = str(folder / f"home_{nodes}")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        experiment = {
            "name": f"nodes_{nodes}",
            "question": "Do two nodes run a sweep in half the time?",
            "dataset": dataset,
            "base": {
                "query": {"rewrite": "none", "hyde": "none"},
                "retrieval": {"mode": "bm25"},
                "answer": {"name": "none"},
            },
            "factors": {"corpus.chunk_size": list(SIZES)},
            "metrics": ["retrieval.ndcg@10"],
        }
        began_s = time.monotonic()
        sweep(experiment, folder / f"run_{nodes}", executor="ray", progress=False)
        return time.monotonic() - began_s
    finally:
        ray.shutdown()
        cluster.shutdown()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="plant_docs")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        one, two = (seconds(nodes, asked.dataset, Path(folder)) for nodes in (1, 2))
    print(json.dumps({"variants": len(SIZES), "one_node_s": one, "two_nodes_s": two, "ratio": one / two}))


if __name__ == "__main__":
    main()
