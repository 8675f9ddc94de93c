"""Run one variant on the small dataset with doubles for models, and print which heavy libraries were imported for it.

Usage: python replayed_variant.py FOLDER, where FOLDER holds what an earlier call has left.
"""

import sys
from pathlib import Path

HEAVY = (
    *("ragas", "torch", "transformers", "sentence_transformers", "langchain", "langchain_core", "sklearn"),
    *("rouge_score", "sacrebleu", "matplotlib", "papermill", "chromadb"),
)
METRICS = ["retrieval.ndcg@5", "ragas.rouge_score", "ragas.string_presence", "answer.token_f1", "cost.seconds"]


class Setting:
    """As much of pytest's monkeypatch as the doubles need, in a process of its own."""

    @staticmethod
    def setitem(mapping, key, value):
        mapping[key] = value


def main(folder: Path) -> None:
    from small_plans import install_doubles, write_plan

    from rag_lab.experiment.run.variant_work import VariantWork
    from rag_lab.pipeline import Pipeline

    install_doubles(Setting)
    checked = write_plan(folder, metrics=METRICS)
    variant = checked.variants[0]
    work = VariantWork(
        Pipeline(checked.dataset, variant.config),
        checked.questions,
        checked.answered,
        tuple(checked.experiment.metrics),
        metric_embedding=variant.config.models.embedding,
        out=folder / "out",
    )
    work.run()
    work.score()
    work.save()
    print(",".join(name for name in HEAVY if name in sys.modules))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
