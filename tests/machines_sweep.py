"""A sweep that needs no model, small enough to run on several machines, real or played."""

import yaml
from small_dataset import write_dataset

FACTORS = {"rerank.final_k": [5, 3, 2, 1]}


def write_machines_sweep(folder, dataset_in=None, **changes):
    """Write four variants that search four documents by BM25, and return the experiment's path."""
    data = {
        "name": "small",
        "question": "Does it help?",
        "dataset": str(write_dataset(dataset_in or folder)),
        "base": {
            "query": {"rewrite": "none", "hyde": "none"},
            "retrieval": {"mode": "bm25"},
            "answer": {"name": "none"},
        },
        "factors": FACTORS,
        "metrics": ["retrieval.mrr@10", "retrieval.ndcg@5"],
    }
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(data | changes, sort_keys=False))
    return path


def values(run):
    """The scores of a run, without what depends on the machine."""
    scores = run.scores().sort_values(["variant_id", "question_id", "metric"])
    kept = scores[["variant_id", "question_id", "metric", "status", "value"]].astype(object)
    return kept.where(kept.notna(), None).to_dict("records")  # what is no number equals nothing
