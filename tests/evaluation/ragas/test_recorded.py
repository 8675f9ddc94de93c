"""For every metric of the table the adapter gives RAGAs' own value, with the recorded replies of a real judge."""

import json
from importlib.metadata import version

import pytest
from scripted import ScriptedJudge

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.ragas.table import SPECS
from rag_lab.testing import HashEmbedder

from .ragas_recorded import FILE, SAMPLES, own_value, reply_key, trace_of

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))
CASES = [(metric, place, value) for metric, values in RECORDED["values"].items() for place, value in enumerate(values)]


def recorded_reply(prompt, nth, _=None):
    return RECORDED["replies"][reply_key(prompt, nth)]


def replaying(request):
    return recorded_reply(request.messages[-1].content, request.seed)


def test_every_metric_of_the_table_was_recorded_with_this_version():
    assert {metric for metric, _, _ in CASES} == set(SPECS)
    assert RECORDED["ragas"] == version("ragas")


@pytest.mark.parametrize(("metric", "place", "value"), CASES)
def test_the_adapter_gives_ragas_own_value(metric, place, value):
    if metric in ("bleu_score", "chrf_score"):
        pytest.importorskip("sacrebleu")
    judge = ScriptedJudge(replaying)
    (score,) = evaluate([trace_of(SAMPLES[place])], [f"ragas.{metric}"], judge=judge, embedder=HashEmbedder())
    assert (score.status, bool(score.reason)) == ("scored", "judge" in SPECS[metric].models), score.reason
    assert score.value == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("metric", "place", "value"), CASES)
def test_ragas_itself_still_gives_the_recorded_value(metric, place, value):
    if metric in ("bleu_score", "chrf_score"):
        pytest.importorskip("sacrebleu")
    assert own_value(metric, SAMPLES[place], recorded_reply) == pytest.approx(value, abs=1e-6)
