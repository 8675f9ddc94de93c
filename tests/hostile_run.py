"""Index a folder in a process of its own, under limits of time and memory; print what became of it as JSON.

python tests/hostile_run.py CORPUS HOME
"""

import json
import resource
import sys
from pathlib import Path

import numpy as np

from rag_lab._kit.machine import peak_memory_mb
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import open_index

CPU_S = 240
ADDRESS_BYTES = 6 * 2**30


class Constant:
    """Every text is the same to it."""

    def identity(self):
        return {"name": "constant"}

    def embed_documents(self, texts):
        return np.ones((len(texts), 1), np.float32)

    embed_queries = embed_documents


def main(corpus: Path, home: Path) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    index = open_index(corpus, CorpusConfig(), Constant(), home=home)
    report = {
        "indexed": [file.source for file in index.files],
        "problems": [(Path(problem.path).name, problem.reason) for problem in index.problems],
        "peak_mb": peak_memory_mb(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
