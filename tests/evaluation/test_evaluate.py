"""Order, memory and interruption; costly scores without a model are remembered, too, by what they read."""

import importlib
import sys
import textwrap
from dataclasses import replace

import pytest
from doubles import HashEmbedder, ScriptedJudge, good_reply
from factories import make_answer, make_passage, make_question, make_trace

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatReply
from rag_lab.records import StageRecord

FAITHFULNESS = ["ragas.faithfulness"]


def traces_of(n):
    return [make_trace(make_question(f"q{i}", text=f"How hot is oven {i}?")) for i in range(n)]


@pytest.fixture
def memory(tmp_path):
    return tmp_path / "scores.sqlite"


def test_scores_come_by_metric_and_then_in_the_order_of_traces():
    scores = evaluate(traces_of(2), ["answer.token_f1", "retrieval.mrr@5"], progress=True)
    wanted = [(metric, question) for metric in ("answer.token_f1", "retrieval.mrr@5") for question in ("q0", "q1")]
    assert [(score.metric, score.question_id) for score in scores] == wanted
    assert evaluate([], ["answer.token_f1", "retrieval.mrr@5", "ragas.rouge_score"]) == []
    assert evaluate(traces_of(1), []) == []


def test_what_a_judge_said_is_not_asked_again(memory):
    first, second = ScriptedJudge(good_reply), ScriptedJudge(good_reply)
    before = evaluate(traces_of(3), FAITHFULNESS, judge=first, memory=memory)
    assert evaluate(traces_of(3), FAITHFULNESS, judge=second, memory=memory) == before
    # three answers are taken apart, for three questions; their statements and passages are the same and are held once
    assert (len(first.requests), len(second.requests)) == (4, 0)


@pytest.mark.parametrize(
    ("changes", "judge_name", "n_asked"),
    [
        ({}, "judge-b", 2),
        ({"repeat": 1}, "judge-a", 2),
        ({"answer": make_answer("Quite hot.")}, "judge-a", 1),  # to take it apart; the statements are the same
        ({"passages": make_trace().passages * 2}, "judge-a", 1),
    ],
)
def test_whatever_changes_a_score_asks_again_for_what_has_changed(memory, changes, judge_name, n_asked):
    evaluate([make_trace()], FAITHFULNESS, judge=ScriptedJudge(good_reply), memory=memory)
    judge = ScriptedJudge(good_reply, name=judge_name)
    (score,) = evaluate([make_trace(**changes)], FAITHFULNESS, judge=judge, memory=memory)
    assert len(judge.requests) == n_asked
    assert (score.judge, score.repeat) == (f"scripted:{judge_name}", changes.get("repeat", 0))


def test_what_does_not_change_a_score_asks_nothing(memory):
    evaluate([make_trace()], FAITHFULNESS, judge=ScriptedJudge(good_reply), memory=memory)
    judge = ScriptedJudge(good_reply)
    other = make_trace(make_question("q9", answers=("another reference",)), ranked=())
    (score,) = evaluate([other], FAITHFULNESS, judge=judge, memory=memory)
    assert judge.requests == []
    assert (score.question_id, score.value) == ("q9", 0.75)


def test_questions_that_ask_the_same_are_judged_once(memory):
    judge = ScriptedJudge(good_reply)
    traces = [make_trace(make_question("q1")), make_trace(make_question("q2"))]
    scores = evaluate(traces, FAITHFULNESS, judge=judge, memory=memory)
    assert [score.question_id for score in scores] == ["q1", "q2"]
    assert len(judge.requests) == 2


def test_an_interrupted_evaluation_goes_on_where_it_stopped(memory):
    def interrupt(request):
        if len(judge.requests) > 20:
            raise KeyboardInterrupt
        return good_reply(request)

    judge = ScriptedJudge(interrupt)
    with pytest.raises(KeyboardInterrupt):
        evaluate(traces_of(20), FAITHFULNESS, judge=judge, memory=memory)
    judge = ScriptedJudge(good_reply)
    scores = evaluate(traces_of(20), FAITHFULNESS, judge=judge, memory=memory)
    assert [score.value for score in scores] == [0.75] * 20
    assert len(judge.requests) == 4  # those of the batch that was interrupted: every reply before it was kept


def test_a_transient_failure_is_asked_again_and_a_lasting_one_is_not(memory):
    failing = {"q0": ChatReply(error="HTTP 429", transient=True), "q1": ChatReply("nonsense")}

    def answer(request):
        return failing[f"q{'oven 1' in request.messages[-1].content:d}"]

    first = evaluate(traces_of(2), FAITHFULNESS, judge=ScriptedJudge(answer), memory=memory)
    assert [score.status for score in first] == ["failed", "failed"]
    judge = ScriptedJudge(good_reply)
    again = evaluate(traces_of(2), FAITHFULNESS, judge=judge, memory=memory)
    assert [score.status for score in again] == ["scored", "failed"]
    assert again[1] == first[1]


def test_embeddings_and_libraries_are_remembered_and_what_is_quick_is_computed_again(memory):
    costly = ["ragas.semantic_similarity", "ragas.rouge_score"]
    metrics = [*costly, "answer.token_f1", "retrieval.ndcg@10"]
    embedder = HashEmbedder()
    before = evaluate(traces_of(2), metrics, embedder=HashEmbedder(), memory=memory)
    after = evaluate(traces_of(2), metrics, embedder=embedder, memory=memory)
    assert embedder.batches == []
    assert [score.value for score in after] == [score.value for score in before]
    assert set(Memory(memory).counts()) == set(costly)


def test_what_could_not_be_asked_is_not_remembered(memory):
    evaluate([make_trace(answer=None)], FAITHFULNESS, judge=ScriptedJudge(good_reply), memory=memory)
    assert Memory(memory).counts() == {}


def test_metrics_share_what_the_judge_said():
    judge = ScriptedJudge(good_reply)
    metrics = ["ragas.faithfulness", "ragas.answer_correctness"]  # both take the answer apart with the same prompt
    together = evaluate([make_trace()], metrics, judge=judge, embedder=HashEmbedder())
    alone = [
        evaluate([make_trace()], [m], judge=ScriptedJudge(good_reply), embedder=HashEmbedder())[0] for m in metrics
    ]
    assert [s.value for s in together] == [s.value for s in alone]
    assert [s.calls for s in together] == [2, 3]
    assert len(judge.requests) == 4


def test_variants_share_what_the_judge_said_of_a_passage(memory):
    shared, own, other = (make_passage(n, text=f"text {n}") for n in range(1, 4))
    judge = ScriptedJudge(good_reply)
    for passages in ((shared, own), (other, shared)):
        evaluate([make_trace(passages=passages)], ["ragas.context_precision"], judge=judge, memory=memory)
    assert len(judge.requests) == 3
    assert Memory(memory).counts() == {"judge": 3, "ragas.context_precision": 2}


def staged_traces(n, seconds=0.1):
    stages = (StageRecord("retrieve", seconds=seconds),)
    return [make_trace(make_question(f"q{i}", text=f"How hot is oven {i}?"), stages=stages) for i in range(n)]


def test_what_measures_the_run_is_measured_in_each(memory):
    (before,) = evaluate(staged_traces(1, seconds=0.1), ["cost.seconds"], memory=memory)
    (after,) = evaluate(staged_traces(1, seconds=0.3), ["cost.seconds"], memory=memory)
    assert (before.value, after.value) == (0.1, 0.3)


def test_word_matching_of_ragas_is_remembered_by_what_it_reads(memory, monkeypatch):
    first = evaluate(staged_traces(2), ["ragas.rouge_score"], memory=memory)
    monkeypatch.setattr(
        "rag_lab.evaluation.ragas_metrics.import_module", lambda name: pytest.fail(f"{name} is imported")
    )
    # another ranking, the same answers; and a question that has no answer, where there is nothing to compute
    again = [*(replace(trace, ranked=()) for trace in staged_traces(2)), replace(make_trace(), answer=None)]
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
    first = evaluate(staged_traces(2), [module.length], memory=memory)
    n = len(module.made)
    assert evaluate(staged_traces(2, seconds=0.3), [module.length], memory=memory) == first
    assert len(module.made) == n > 0
    changed = own("float(len(trace.answer.text)) + 1000")
    (score, _) = evaluate(staged_traces(2), [changed.length], memory=memory)
    assert changed.made and score.value == first[0].value + 1000


def test_one_that_reads_how_long_stages_took_or_that_failed_is_not_remembered(memory, own):
    module = own("sum(each.seconds for each in trace.stages)")
    values = [evaluate(staged_traces(1, seconds), [module.length], memory=memory)[0].value for seconds in (0.1, 0.3)]
    assert values == [0.1, 0.3]
    assert evaluate(staged_traces(1), [module.failing], memory=memory)[0].status == "failed"
    assert Memory(memory).counts() == {}
