"""A sweep whose variants run in this process, without kernels: it stands in for the executor of notebooks."""

import json
from pathlib import Path

from rag_lab.config import PipelineConfig
from rag_lab.data.dataset import Dataset
from rag_lab.experiment.executors.job import Done
from rag_lab.experiment.run.variant_work import VariantWork
from rag_lab.memory.ledger import LEDGER_VARIABLE, PAYER_VARIABLE
from rag_lab.pipeline import Pipeline


def run_in_process(monkeypatch, after=lambda job: ""):
    """Let `run_variants` do its jobs here and return the list of (folder, variant) that were run.

    `after` gets each job that has been done, may spoil what it left or raise, and returns why it failed.
    """
    done = []

    def execute(jobs, n_jobs=1, cwd=None, poll=lambda running: None, veto=lambda job, runs: ""):
        for job in jobs:
            if reason := veto(job, False):
                yield Done(job, reason, 0.0, vetoed=True)
                continue
            for name in (LEDGER_VARIABLE, PAYER_VARIABLE):
                monkeypatch.setenv(name, job.environment[name])
            _work(job.parameters)
            done.append((Path(job.parameters["QUESTIONS"]).parent.name, job.name))
            yield Done(job, after(job), 1.0)

    monkeypatch.setattr("rag_lab.experiment.run.run_variants.executor_of", lambda name, slurm=(): execute)
    return done


def _work(given):
    plan = json.loads(Path(given["QUESTIONS"]).read_text())
    work = VariantWork(
        pipeline=Pipeline(Dataset.load(Path(given["DATASET"])), PipelineConfig.load(given["CONFIG"])),
        questions=tuple(plan["questions"]),
        answered=tuple(plan["answered"]),
        metrics=tuple(given["METRICS"].split(",")),
        judge=given["JUDGE"] or None,
        judge_language=given["JUDGE_LANGUAGE"],
        metric_embedding=given["METRIC_EMBEDDING"],
        repeats=given["REPEATS"],
        out=Path(given["OUT"]),
    )
    work.run()
    work.score()
    work.save()
