"""Neither page of a report shows a restricted asker's question beside what that asker may not see."""

import re
from dataclasses import replace
from itertools import product

import pytest
from access_corpus import BASE, ask, models, write_corpus

from rag_lab.access import may_see
from rag_lab.config import PipelineConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.pipeline import Pipeline
from rag_lab.report.page.report_page import write_report
from rag_lab.runs.run_folder import RunFolder, VariantPlan, write_json
from rag_lab.runs.variant_files import write_scores, write_traces
from rag_lab.testing import HashEmbedder

__all__ = ["models"]  # a fixture

OWNED = [("", ()), ("", ("staff",)), ("north", ()), ("north", ("audit",)), ("south", ("staff", "audit"))]
RIGHTS = [None, (), ("staff",), ("audit",), ("staff", "audit")]
VARIANTS = {"baseline": {}, "mode-rrf": {"retrieval.mode": "rrf", "query.hyde": "always", "query.phrasings": 2}}
METRICS = ("retrieval.ndcg@5", "citations.precision")


@pytest.fixture
def asked():
    """A question for each combination of rights and namespace; its text is its own, so no trace is shared."""
    askers = product(RIGHTS, [None, "", "north", "nowhere"])
    return [
        replace(ask(held, space), question_id=f"q{number:02d}", text=f"Press {number}: at how many bar?")
        for number, (held, space) in enumerate(askers)
    ]


def write_run(path, corpus, asked, home):
    plans = tuple(VariantPlan(name, name, changes) for name, changes in VARIANTS.items())
    ids = tuple(question.question_id for question in asked)
    run = RunFolder(path, "rights", "Who sees what?", "plant", "baseline", METRICS, 1, plans, ids, ids)
    run.write_plan()
    scores = {}
    for plan in plans:
        config = PipelineConfig().override(BASE | plan.changes | {"answer.context_tokens": 100_000})
        index = open_index(corpus, config.corpus, HashEmbedder(), home=home, store=config.store)
        pipeline = Pipeline.on(index, HashEmbedder(), config)
        traces = pipeline.run(asked)
        run.variant_dir(plan.variant_id).mkdir(parents=True)
        write_traces(run.variant_dir(plan.variant_id) / "traces.jsonl", traces)
        scores[plan.variant_id] = evaluate(traces, METRICS)
    write_scores(path / "scores.parquet", scores)
    write_json(path / "manifest.json", {"variants": {name: {"status": "ok", "reason": ""} for name in VARIANTS}})
    return path


def seen(text):
    return {int(number) for number in re.findall(r"(?:marker|file)(\d)(?:end|name)", text)}


def test_a_report_shows_each_asker_only_what_that_asker_may_see(models, tmp_path, asked):
    corpus = write_corpus(tmp_path, OWNED)
    page = write_report(write_run(tmp_path / "run", corpus, asked, tmp_path / "home")).read_text()
    before, *cards = page.split('<details class="q"')
    assert len(cards) == len(asked)
    for question, card in zip(asked, cards, strict=True):
        visible = {number for number, attributes in enumerate(OWNED) if may_see(question, *attributes)}
        assert question.text in card
        assert seen(card) == visible
    assert not seen(before)
    assert not seen((tmp_path / "run" / "report.md").read_text())
