"""Every mode of retrieval on one labelled dataset, with the packaged embedding model, as JSON on stdout.

    python benchmarks/retrieval_modes.py DATASET [--analyzer english] [--questions N] [--splitters recursive sentences]

DATASET is a name or path that `rag-lab datasets list` or `import` gave. For each splitter and mode it prints nDCG@10,
reciprocal rank@10 and evidence recall@5, over the questions that have evidence, and the milliseconds a question of the
searches that the mode makes, each as first computed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

from rag_lab._kit.home import home
from rag_lab.config import PipelineConfig
from rag_lab.corpus.index.corpus_index import CorpusIndex, open_index
from rag_lab.corpus.index.evidence import locate_all
from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.memory.results import Memory
from rag_lab.models import shared as registry
from rag_lab.models.remembered_embeddings import RememberedEmbedder
from rag_lab.records import Question, Trace
from rag_lab.stages.query.rewrite import OwnWords
from rag_lab.stages.rerank.keep_order import KeepOrder
from rag_lab.stages.retrieval.choices import Mode
from rag_lab.stages.retrieval.merge import Merge
from rag_lab.stages.retrieval.retrieval_stages import searches
from rag_lab.stages.run_stage import run_stage

METRICS = ("retrieval.ndcg@10", "retrieval.mrr@10", "retrieval.evidence_recall@5")


def retrieve(config: PipelineConfig, index: CorpusIndex, embedder: Any, questions: Sequence[Question]) -> list[Trace]:
    """Return the traces of retrieval alone."""
    traces = [Trace(question) for question in questions]
    for stage in (OwnWords(), *searches(config, index, embedder), Merge(20), KeepOrder(20)):
        traces = run_stage(stage, traces, Memory(home() / "stages.sqlite"))
    return traces


def measure(traces: Sequence[Trace]) -> dict[str, float]:
    scores = evaluate(traces, METRICS)
    means = {
        metric: fmean(score.value for score in scores if score.metric == metric and score.value is not None)
        for metric in METRICS
    }
    seconds = fmean(sum(record.seconds for record in trace.stages) for trace in traces)
    return {metric: round(value, 4) for metric, value in means.items()} | {"ms_per_question": round(1000 * seconds, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--analyzer", default="unicode")
    parser.add_argument("--questions", type=int)
    parser.add_argument("--splitters", nargs="+", default=["recursive"])
    given = parser.parse_args()
    dataset = Dataset.load(Path(given.dataset) if Path(given.dataset).is_dir() else given.dataset)
    embedder = RememberedEmbedder(registry.embedder("sentence_transformers:minilm"), home() / "vectors.sqlite")
    results: dict[str, Any] = {}
    for splitter in given.splitters:
        for mode in get_args(Mode):
            config = PipelineConfig().override(
                {"corpus.splitter": splitter, "retrieval.mode": mode, "retrieval.analyzer": given.analyzer}
            )
            index = open_index(dataset.corpus_dir, config.corpus, embedder, home=home())
            questions, _ = locate_all(index, [q for q in dataset.questions if q.evidence][: given.questions])
            results.setdefault(splitter, {})[mode] = measure(retrieve(config, index, embedder, questions))
    print(json.dumps({"dataset": dataset.name, "analyzer": given.analyzer, "modes": results}, indent=1))


if __name__ == "__main__":
    main()
