"""Every mode of retrieval on one labelled dataset, with the packaged embedding model, as JSON on stdout.

    python benchmarks/retrieval_modes.py DATASET [--analyzer english] [--questions N] [--splitters recursive sentences]

DATASET is a name or path that `rag-lab datasets list` or `import` gave. For each splitter and mode it prints nDCG@10,
reciprocal rank@10 and evidence recall@5, over the questions that have evidence, and the milliseconds a question of the
searches that the mode makes, each as first computed.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.pipeline import Pipeline
from rag_lab.records import Trace
from rag_lab.stages.steps import Modes

METRICS = ("retrieval.ndcg@10", "retrieval.mrr@10", "retrieval.evidence_recall@5")
RETRIEVAL_ALONE = {"answer.name": "none", "rerank.final_k": 10}


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
    asked = [question for question in dataset.questions if question.evidence][: given.questions]
    alone = Pipeline(dataset).set(RETRIEVAL_ALONE | {"retrieval.analyzer": given.analyzer})
    results: dict[str, Any] = {}
    for splitter in given.splitters:
        for mode in Modes().names():
            pipeline = alone.set({"corpus.splitter": splitter, "retrieval.mode": mode})
            results.setdefault(splitter, {})[mode] = measure(pipeline.run(asked, answer=(), read=lambda _: ()))
    print(json.dumps({"dataset": dataset.name, "analyzer": given.analyzer, "modes": results}, indent=1))


if __name__ == "__main__":
    main()
