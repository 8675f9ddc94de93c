"""What the searched text and the size of chunks do to a search, with the packaged MiniLM, as JSON on stdout.

    python benchmarks/chunk_contexts.py DATASET [--questions N] [--modes MODE ...] [--set KEY=VALUE ...]

DATASET is a name or path that `rag-lab datasets list` or `import` gave. For each mode it prints nDCG@10 of the search
with the defaults, and what each change of the index adds to it question by question, with a 95% interval over the
questions. `--set` names other changes, each by itself. It works in a folder of its own, so nothing is remembered.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from late_interaction import gain, scores_of

from rag_lab.data.dataset import Dataset
from rag_lab.pipeline import Pipeline

CHANGES = (
    "corpus.context=heading", "corpus.context=file", "corpus.context=late", "corpus.chunk_tokens=128",
    "corpus.chunk_tokens=240",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--questions", type=int)
    parser.add_argument("--modes", nargs="+", default=["bm25", "dense", "hybrid"])
    parser.add_argument("--set", nargs="*", default=[])
    given = parser.parse_args()
    dataset = Dataset.load(Path(given.dataset) if Path(given.dataset).is_dir() else given.dataset)
    asked = [question for question in dataset.questions if question.evidence][: given.questions]
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as home:
        os.environ["RAG_LAB_HOME"] = home
        alone = Pipeline(dataset, progress=False).set({"answer.name": "none", "rerank.final_k": 10})
        for mode in given.modes:
            pipeline = alone.set("retrieval.mode", mode)
            before = scores_of(pipeline.run(asked, answer=(), read=lambda _: ()))
            found: dict[str, Any] = {"search": round(float(np.mean([*before.values()])), 4)}
            for change in given.set or CHANGES:
                key, _, value = change.partition("=")
                changed = pipeline.set(key, yaml.safe_load(value))
                found[change] = gain(before, scores_of(changed.run(asked, answer=(), read=lambda _: ())))
                found[change]["chunks"] = changed.index.manifest.n_children
            results[mode] = found
    print(json.dumps({"dataset": dataset.name, "questions": len(asked), "modes": results}, indent=1))


if __name__ == "__main__":
    main()
