"""Index a folder in a process of its own, under limits of time and memory; print what became of it as JSON.

python tests/hostile_run.py CORPUS HOME
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from rag_lab._kit.machine.memory import peak_memory_mb
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.files.folder import list_files
from rag_lab.corpus.files.loaders import load
from rag_lab.corpus.index.corpus_index import open_index

CPU_S = 240
ADDRESS_BYTES = 6 * 2**30


class Constant:
    """Every text is the same to it."""

    def identity(self):
        return {"name": "constant"}

    def embed_documents(self, texts):
        return np.ones((len(texts), 1), np.float32)

    embed_queries = embed_documents


def seconds_of(path: Path, source: str) -> float:
    start = time.perf_counter()
    try:
        load(path, source)
    except Exception as error:
        return -1.0 if type(error).__name__ != "LoadError" else time.perf_counter() - start
    return time.perf_counter() - start


def main(corpus: Path, home: Path) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    seconds = {source: seconds_of(path, source) for source, path in list_files(corpus).files.items()}
    start = time.perf_counter()
    index = open_index(corpus, CorpusConfig(), Constant(), home=home)
    report = {
        "indexed": [file.source for file in index.files],
        "problems": [(Path(problem.path).name, problem.reason) for problem in index.problems],
        "seconds": seconds,
        "index_s": time.perf_counter() - start,
        "peak_mb": peak_memory_mb(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
