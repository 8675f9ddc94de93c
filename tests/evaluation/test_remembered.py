"""Scores without a model are remembered, too, by what the traces say, the metric's identity and its source."""

import importlib
import sys
import textwrap
from dataclasses import replace

import pytest
from factories import make_question, make_trace

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.registry import build_metric
from rag_lab.memory.results import Memory
from rag_lab.records import StageRecord

QUICK = ["answer.token_f1", "retrieval.ndcg@10"]


@pytest.fixture
def memory(tmp_path):
    return tmp_path / "scores.sqlite"


def traces_of(n, seconds=0.1):
    stages = (StageRecord("retrieve", seconds=seconds),)
    return [make_trace(make_question(f"q{i}", text=f"How hot is oven {i}?"), stages=stages) for i in range(n)]


def spy(monkeypatch, name):
    """Return the list of how many traces the class of a metric has scored from now on."""
    scored, kind = [], type(build_metric(name, None))
    original = kind.score

    def score(self, traces):
        scored.append(len(traces))
        return original(self, traces)

    monkeypatch.setattr(kind, "score", score)
    return scored


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_metric_is_computed_once_and_again_where_a_trace_says_something_else(memory, monkeypatch, name):
    scored = spy(monkeypatch, name)
    first = evaluate(traces_of(3), [name], memory=memory)
    assert evaluate(traces_of(3, seconds=0.3), [name], memory=memory) == first  # how long it took is nothing it says
    assert scored == [3] and Memory(memory).counts() == {name: 1}
    traces = traces_of(3)
    traces[1] = replace(traces[1], ranked=(), answer=replace(traces[1].answer, text="Cold."))
    assert evaluate(traces, [name], memory=memory) != first
    assert scored == [3, 3]


def test_what_failed_for_a_trace_is_computed_anew(memory):
    failed = replace(traces_of(1)[0], ranked=(), stages=(StageRecord("retrieve", "failed", "the disk is full"),))
    (score,) = evaluate([failed], ["retrieval.ndcg@10"], memory=memory)
    assert (score.status, Memory(memory).counts()) == ("failed", {})


def test_what_measures_the_run_is_measured_in_each(memory):
    (before,) = evaluate(traces_of(1, seconds=0.1), ["cost.seconds"], memory=memory)
    (after,) = evaluate(traces_of(1, seconds=0.3), ["cost.seconds"], memory=memory)
    assert (before.value, after.value) == (0.1, 0.3)


def test_word_matching_of_ragas_is_remembered_by_what_it_reads(memory, monkeypatch):
    first = evaluate(traces_of(2), ["ragas.rouge_score"], memory=memory)
    monkeypatch.setattr(
        "rag_lab.evaluation.ragas_metrics.import_module", lambda name: pytest.fail(f"{name} is imported")
    )
    # another ranking, the same answers; and a question that has no answer, where there is nothing to compute
    again = [*(replace(trace, ranked=()) for trace in traces_of(2)), replace(make_trace(), answer=None)]
    assert evaluate(again, ["ragas.rouge_score"], memory=memory)[:2] == first


OWN = """
    def {name}(trace):
        made.append(trace.question.question_id)
        return {value}

    def failing(trace):
        made.append(trace.question.question_id)
        raise ValueError("no network")

    made = []
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Return a function that writes a module with a metric of one's own, and gives the metric and its calls."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(value, name="length"):
        sys.modules.pop("mine_remembered", None)
        importlib.invalidate_caches()
        path = tmp_path / "mine_remembered.py"
        path.write_text(textwrap.dedent(OWN.format(name=name, value=value)) + f"\n# {value}")
        return importlib.import_module("mine_remembered")

    return write


def test_a_metric_of_ones_own_is_computed_once_and_again_once_its_source_has_changed(memory, own):
    module = own("float(len(trace.answer.text))")
    first = evaluate(traces_of(2), [module.length], memory=memory)
    n = len(module.made)
    assert evaluate(traces_of(2, seconds=0.3), [module.length], memory=memory) == first
    assert len(module.made) == n > 0
    changed = own("float(len(trace.answer.text)) + 1000")
    (score, _) = evaluate(traces_of(2), [changed.length], memory=memory)
    assert changed.made and score.value == first[0].value + 1000


def test_one_that_reads_how_long_stages_took_or_that_failed_is_not_remembered(memory, own):
    module = own("sum(each.seconds for each in trace.stages)")
    values = [evaluate(traces_of(1, seconds), [module.length], memory=memory)[0].value for seconds in (0.1, 0.3)]
    assert values == [0.1, 0.3]
    assert evaluate(traces_of(1), [module.failing], memory=memory)[0].status == "failed"
    assert Memory(memory).counts() == {}
