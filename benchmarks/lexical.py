"""A cold sweep of one search by words beside the same searches called bare through bm25s, as JSON on stdout.

    python benchmarks/lexical.py [--questions 600] [--documents 600] [--rounds 2] [--page FILE]

Both answer 600 claims of SciFact over 600 of its abstracts. `bare` cuts the same chunks and the same questions into
the same words, indexes and searches them, in a process that has all imports done and the texts in memory: only the
work is counted. The sweep is the command, in a home folder of its own: start, files, index, notebook, scores and
report. They run by turns. `allowed_s` is 1.5 times the bare searches and 10 s. Every import of all processes of the
sweep is recorded, and one of a library that holds models ends the benchmark, as does a vector in the home folder.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from beside.data import cut, imported, public
from beside.page import argument, tell
from beside.sweeps import OFF, means, swept, written
from beside.took import Took, mean, ran

HEAVY = ("torch", "sentence_transformers", "transformers", "xllamacpp", "llama_cpp", "ragas", "chromadb", "tokenizers")
TIMES_BARE, EXTRA_S = 1.5, 10.0
K, ANALYZER, METRIC = 10, "english", "retrieval.ndcg@10"
BARE = f"""
import json, sys, time
from pathlib import Path
import bm25s
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.folder import load_folder
from rag_lab.corpus.chunks import split
from rag_lab.stores.sparse import terms

dataset = Path(sys.argv[1])
texts = [child.text for child in split(load_folder(dataset / "corpus").documents, CorpusConfig()).children]
asked = [json.loads(line)["question"] for line in (dataset / "questions.jsonl").read_text().splitlines()]
terms(texts[:1], "{ANALYZER}")
began_s, began_cpu_s = time.perf_counter(), time.process_time()
index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
index.index(terms(texts, "{ANALYZER}"), show_progress=False)
found, scores = index.retrieve(terms(asked, "{ANALYZER}"), k={K}, show_progress=False)
took = time.perf_counter() - began_s, time.process_time() - began_cpu_s
print(json.dumps({{"took": took, "chunks": len(texts), "lists": len(found)}}))
"""
RECORDER = """
import os, sys
def _record(event, arguments):
    if event == "import" and arguments[0].partition(".")[0] in HEAVY:
        with open(os.environ["IMPORTED"], "a") as file:
            file.write(arguments[0] + "\\n")
sys.addaudithook(_record)
"""


def experiment(dataset: Path) -> dict[str, Any]:
    return {
        "name": "lexical",
        "question": "What does a search by words cost, cold?",
        "dataset": str(dataset),
        "base": {**OFF, "retrieval": {"mode": "bm25", "analyzer": ANALYZER, "base_k": K}},
        "design": "grid",
        "metrics": [METRIC, "retrieval.mrr@10", "cost.seconds"],
    }


def bare(dataset: Path, folder: Path) -> tuple[Took, dict[str, Any]]:
    _, printed = ran([sys.executable, "-c", BARE, str(dataset)], folder)
    told = json.loads(printed)
    return Took(*told.pop("took")), told


def cold(dataset: Path, folder: Path) -> Took:
    """Sweep in a home of its own and return what it took; what it must not load or write ends the benchmark."""
    folder.mkdir()
    recorder, home = folder / "recorder", folder / "home"
    recorder.mkdir()
    (recorder / "sitecustomize.py").write_text(f"HEAVY = {HEAVY!r}{RECORDER}", encoding="utf-8")
    environment = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(recorder), os.environ.get("PYTHONPATH")])),
        "IMPORTED": str(folder / "imported"),
    }
    took = swept(written(folder, experiment(dataset)), folder / "run", home, environment=environment)
    if (folder / "imported").is_file():
        sys.exit(f"The sweep loaded {sorted(set((folder / 'imported').read_text().split()))}.")
    if vectors := [str(path) for path in home.rglob("vectors*")]:
        sys.exit(f"The sweep embedded: {vectors}.")
    return took


def measure(folder: Path, questions: int, documents: int, rounds: int) -> dict[str, Any]:
    dataset = imported(cut(public("scifact"), folder / "cut", questions, documents), folder / "dataset")
    alone, whole, told = [], [], {}
    for number in range(rounds):
        took, told = bare(dataset, folder)
        alone.append(took)
        whole.append(cold(dataset, folder / str(number)))
    searched, swept_in = mean(alone), mean(whole)
    return {
        "questions": questions,
        "documents": documents,
        **told,
        "bare": searched.told(2),
        "sweep": swept_in.told(),
        "allowed_s": round(TIMES_BARE * searched.wall_s + EXTRA_S, 1),
        "within": swept_in.wall_s <= TIMES_BARE * searched.wall_s + EXTRA_S,
        "loaded": [],
        "vectors": [],
        METRIC: means(folder / "0/run", METRIC),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=600)
    parser.add_argument("--documents", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=2)
    argument(parser)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), given.questions, given.documents, given.rounds)
    rows = [
        ["bm25s, bare: words, index, searches", found["bare"]["wall_s"], found["bare"]["cpu_s"]],
        ["asked of the sweep, at most", found["allowed_s"], "–"],
        ["`rag-lab sweep`, cold", found["sweep"]["wall_s"], found["sweep"]["cpu_s"]],
    ]
    tell("lexical", found, ["", "seconds", "processor s"], rows, given.page)


if __name__ == "__main__":
    main()
