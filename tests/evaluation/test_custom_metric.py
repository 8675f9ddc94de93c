"""Metrics of one's own: what they return, what goes wrong in them, and what they say of themselves."""

import math
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from doubles import HashEmbedder, ScriptedJudge
from factories import make_question, make_trace

from rag_lab._kit.registry import modules_from
from rag_lab.errors import ConfigError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.metric import Gap
from rag_lab.evaluation.registry import METRICS, build_metric, expected_gaps, find_info, parse_name, problems, reads_of
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.records import Score, StageRecord

FILE = '''
from dataclasses import dataclass
from typing import ClassVar

def shouted(trace):
    """Share of capital letters."""
    return sum(map(str.isupper, trace.answer.text)) / len(trace.answer.text)

@dataclass(frozen=True)
class Within:
    """1 where the answer has at most so many words."""
    words: int = 10
    version: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ("answer",)
    fields: ClassVar[tuple[str, ...]] = ("answer",)
    low: ClassVar[float] = 0
    high: ClassVar[float] = 1

    def __call__(self, trace):
        n = len(trace.answer.text.split())
        return float(n <= self.words), f"{n} words"
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    with modules_from(tmp_path):
        yield tmp_path


@dataclass(frozen=True)
class Length:
    per: int = 1
    version: ClassVar[int] = 1

    def __call__(self, trace):
        return len(trace.answer.text) / self.per


@dataclass(frozen=True)
class Whole:
    """A whole metric: many traces at once."""

    wrong: str = ""
    name: ClassVar[str] = "whole"
    needs: ClassVar[frozenset[str]] = frozenset()
    version: ClassVar[int] = 1

    def identity(self):
        return {"wrong": self.wrong}

    def score(self, traces):
        if self.wrong == "few":
            return []
        if self.wrong == "raises" and any(trace.question.question_id == "q1" for trace in traces):
            raise RuntimeError("no q1")
        value = math.nan if self.wrong == "nan" else 1.0
        return [Score(trace.question.question_id, "whole", value, repeat=trace.repeat) for trace in traces]


def traces_of(n):
    return [make_trace(make_question(f"q{i}")) for i in range(n)]


def returning(value):
    def given(trace):
        return value

    return given


def score_of(metric, **options):
    (score,) = evaluate([make_trace()], [metric], **options)
    return score


def test_a_function_an_instance_and_a_name_stand_beside_each_other():
    def my_metric(trace):
        return 0.25

    scores = evaluate(traces_of(2), [my_metric, Length(per=10), "answer.words", Whole()])
    assert [score.metric for score in scores[::2]] == ["my_metric", "Length?per=10", "answer.words", "whole"]
    assert scores[0].value == 0.25
    assert {score.status for score in scores} == {"scored"}


def test_a_file_beside_the_experiment_brings_metrics(folder):
    names = ["mine:shouted", "mine:Within?words=1", "mine:Within?words=99"]
    assert problems(names, has_judge=False) == []
    scores = evaluate([make_trace()], names)
    assert [score.metric for score in scores] == ["shouted", "Within?words=1", "Within?words=99"]
    assert [score.value for score in scores[1:]] == [0.0, 1.0]
    assert scores[1].reason.endswith(" words")
    before = build_metric(names[0], None).identity()
    (folder / "mine.py").write_text(FILE + "\n# edited\n")
    assert build_metric(names[0], None).identity() != before


@pytest.mark.parametrize(
    ("returned", "value", "reason"),
    [(1, 1.0, ""), (True, 1.0, ""), (np.float32(0.5), 0.5, ""), ((0.5, "half of it"), 0.5, "half of it")],
)
def test_a_number_is_a_value(returned, value, reason):
    score = score_of(returning(returned))
    assert (score.value, score.status, score.reason) == (value, "scored", reason)


@pytest.mark.parametrize(
    ("returned", "status", "said"),
    [
        (None, "not_applicable", "the metric 'given' has no value for it"),
        ((None, "nothing is cited"), "not_applicable", "nothing is cited"),
        (Gap("failed", "broken"), "failed", "broken"),
        (math.nan, "failed", "the metric 'given' returned nan, which is no number"),
        (math.inf, "failed", "inf, which is no number"),
        ("0.5", "failed", "'0.5', which is no number"),
        ([0.5], "failed", "which is no number"),
        ((0.5, "why", "more"), "failed", "which is no number"),
    ],
)
def test_whatever_is_no_number_is_a_reason(returned, status, said):
    score = score_of(returning(returned))
    assert (score.value, score.status) == (None, status)
    assert said in score.reason


def test_a_metric_that_raises_costs_its_question():
    def first_only(trace):
        return {"q0": 1.0}[trace.question.question_id]

    assert [(s.value, s.reason) for s in evaluate(traces_of(2), [first_only])] == [
        (1.0, ""),
        (None, "the metric 'first_only' raised KeyError: 'q1'"),
    ]


def test_a_metric_that_hangs_costs_its_question():
    @dataclass(frozen=True)
    class Slow:
        version: ClassVar[int] = 1
        timeout_s: ClassVar[float] = 0.05

        def __call__(self, trace):
            time.sleep(0.5 if trace.question.question_id == "q1" else 0)
            return 1.0

    found = evaluate(traces_of(3), [Slow()])
    assert [score.status for score in found] == ["scored", "failed", "scored"]
    assert "did not return within 0.05 s" in found[1].reason


def test_a_value_beyond_what_the_metric_says_of_itself_is_a_fault(folder):
    def doubled(trace):
        return 2.0

    doubled.high = 1
    assert "beyond its own low or high" in score_of(doubled).reason


def test_a_stage_that_failed_before_is_said_first():
    def chars(trace):
        return len(trace.answer.text)

    lost = StageRecord("generate", "failed", reason="cut off")
    (score,) = evaluate([make_trace(answer=None, stages=(lost,))], [chars])
    assert score.reason.startswith("generate failed: cut off; then the metric 'chars' raised AttributeError")


@pytest.mark.parametrize(("wrong", "statuses"), [("", ["scored"] * 3), ("raises", ["scored", "failed", "scored"])])
def test_a_whole_metric_loses_the_traces_that_it_fails_on(wrong, statuses):
    assert [score.status for score in evaluate(traces_of(3), [Whole(wrong)])] == statuses


@pytest.mark.parametrize(("wrong", "said"), [("few", "one for each trace"), ("nan", "gave nan and called it scored")])
def test_a_whole_metric_that_returns_rubbish_gives_reasons(wrong, said):
    for score in evaluate(traces_of(2), [Whole(wrong)]):
        assert (score.value, score.status) == (None, "failed")
        assert said in score.reason


def test_what_it_says_of_itself_is_known(folder):
    info = parse_name("mine:Within?words=3").info
    assert (info.name, info.low, info.high, info.reads) == ("Within?words=3", 0.0, 1.0, {"answer"})
    assert info.sentence == "1 where the answer has at most so many words."
    plain = parse_name("mine:shouted").info
    assert (plain.low, plain.high, plain.needs) == (None, None, frozenset())
    assert {"ranked", "passages", "answer", "hypothetical"} <= plain.reads


def test_needs_say_what_it_does_not_apply_to(folder):
    questions = [make_question("q0"), make_question("q1")]
    assert [str(gap) for gap in expected_gaps(["mine:Within"], questions, {"q0"})] == [
        "Metric Within is not applicable to 1 of 2 questions: no answer was asked for."
    ]
    assert reads_of(["mine:Within"], {"q0"})(questions[0]) == {"answer"}
    assert reads_of(["mine:Within"], {"q0"})(questions[1]) == set()


def test_what_it_does_not_say_that_it_reads_it_does_not_see():
    def hits(trace):
        return len(trace.ranked) + 100 * len(trace.passages)

    assert score_of(hits).value >= 100
    hits.fields = ("ranked",)
    assert score_of(hits).value < 100


class Unfit:
    pass


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"needs": ("anwser",)}, "Unknown need of the metric 'given' 'anwser'.*did you mean 'answer'"),
        ({"fields": "rank"}, "Unknown field of a trace of the metric 'given' 'rank'.*did you mean 'ranked'"),
        ({"low": 1, "high": 0}, "low = 1, which is not below its high = 0"),
        ({"high": math.nan}, "high = nan; give a number"),
        ({"calls": -1}, "calls = -1"),
        ({"name": "a,b"}, "'a,b'"),
        ({"name": "answer.words"}, "as a built-in one is"),
        ({"needs": ("judge",)}, "needs a judge and has none"),
    ],
)
def test_what_it_cannot_say_is_one_sentence(attributes, said):
    metric = returning(1.0)
    vars(metric).update(attributes)
    with pytest.raises(ConfigError, match=said):
        evaluate(traces_of(1), [metric])


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (lambda trace: 1.0, "write it with def"),
        (Unfit(), "must be a frozen dataclass"),
        (lambda trace, gold: 1.0, "takes 'gold'"),
        ("nowhere:metric", "put nowhere.py into"),
        ("retrieval.ndgc@10", "did you mean 'retrieval.ndcg@k'.* One of your own is module:function"),
    ],
)
def test_what_is_no_metric_is_one_sentence(metric, said):
    if callable(metric) and said.startswith("takes"):
        metric.__name__ = "named"
    with pytest.raises(ConfigError, match=said):
        evaluate(traces_of(1), [metric])


def test_two_of_one_name_are_told_apart():
    with pytest.raises(ConfigError, match="Metric 'given' is named 2 times"):
        evaluate(traces_of(1), [returning(1.0), returning(2.0)])


def test_looking_a_name_up_imports_nothing(folder):
    (folder / "trap.py").write_text("raise SystemExit('was run')")
    assert find_info("trap:metric") is None
    assert METRICS.check("trap:metric") == "trap:metric"


def asks(trace, judge):
    (reply,) = judge.generate([ChatRequest((Message("user", trace.question.text),))])
    return float(reply.text)


def test_a_metric_asks_the_judge_whose_replies_are_remembered(tmp_path):
    judge = ScriptedJudge(lambda request: "0.5")
    memory = tmp_path / "scores.sqlite"
    first = evaluate(traces_of(3), [asks], judge=judge, memory=memory)
    assert [(s.value, s.judge, s.calls) for s in first] == [(0.5, "scripted:judge-a", 1)] * 3
    n_asked = len(judge.requests)
    assert evaluate(traces_of(3), [asks], judge=judge, memory=memory) == first
    assert len(judge.requests) == n_asked
    evaluate([make_trace(repeat=1)], [asks], judge=judge, memory=memory)
    assert len(judge.requests) == n_asked + 1


def test_a_model_may_load_its_weights_while_a_metric_is_watched(tmp_path):
    weights = tmp_path / "weights.gguf"
    weights.write_text("0.5")

    class Loads(HashEmbedder):
        def embed_queries(self, texts):
            weights.read_text()
            return super().embed_queries(texts)

    def both(trace, judge, embedder):
        return asks(trace, judge) * len(embedder.embed_queries(["a"]))

    judge = ScriptedJudge(lambda request: weights.read_text())
    (score,) = evaluate(traces_of(1), [both], judge=judge, embedder=Loads())
    assert score.value == 0.5


def test_a_judge_that_does_not_reply_is_asked_again_another_time(tmp_path):
    memory = tmp_path / "scores.sqlite"
    down = ScriptedJudge(lambda request: ChatReply(error="is down", transient=True))
    (score,) = evaluate(traces_of(1), [asks], judge=down, memory=memory)
    assert (score.status, score.curable) == ("failed", True)
    (score,) = evaluate(traces_of(1), [asks], judge=ScriptedJudge(lambda request: "1"), memory=memory)
    assert score.value == 1.0


def test_a_metric_is_given_the_embedder():
    def alike(trace, embedder):
        return float(embedder.embed_queries(["a"])[0] @ embedder.embed_documents(["a"])[0])

    assert problems([alike], has_judge=False, has_embedder=False)
    assert score_of(alike, embedder=HashEmbedder()).value == pytest.approx(1.0)
