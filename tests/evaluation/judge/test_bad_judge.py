"""A judge behind a server that does everything wrong: each score says why, what can be cured is, and it ends."""

import re
from collections import Counter

import pytest
from factories import make_answer, make_passage, make_question, make_trace
from scripted import good_reply

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote import patience
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.requests import RetryPolicy
from rag_lab.testing import Scripted, openai_server

AT_ONCE = {"Retry-After": "0"}
# What the server says to a question about this oven, how often it is asked, and what the score says.
BAD = {
    "nonsense": ("What a lovely day.", 2, "holds no JSON object: 'What a lovely day.'"),
    "half": ('{"statements": ["a", "b', 2, "is broken JSON"),
    "cut": (Scripted('{"statements": ["a", "b', finish="length"), 2, "is cut off at its token limit"),
    "german": ("Die Aussagen lauten: erstens ist der Ofen heiß.", 2, "holds no JSON object: 'Die Aussagen"),
    "other_shape": ('{"aussagen": ["a"]}', 2, "does not fit the schema: statements"),
    "nothing": ("", 2, "returned no text"),
    "late": (Scripted("too late", delay_s=1.5), 2, "did not answer"),
    "busy": (Scripted("slow down", 429, AT_ONCE), 2, "status 429: slow down after 2 attempts"),
    "broken": (Scripted("out of order", 500, AT_ONCE), 2, "status 500: out of order after 2 attempts"),
    "refused": (Scripted("too long", 400), 1, "status 400: too long"),
    "html": (Scripted(raw="<html>Bad gateway</html>"), 2, "a web page instead of JSON after 2 attempts"),
}
CURED = {
    "busy_once": Scripted("slow down", 429, AT_ONCE),
    "broken_once": Scripted("out of order", 503, AT_ONCE),
    "nonsense_once": Scripted("What a lovely day."),
    "late_once": Scripted("too late", delay_s=1.5),
}
TRANSIENT = {"late", "busy", "broken", "html"}


def make_traces():
    return [
        make_trace(
            make_question(kind, text=f"How hot is the {kind} oven?"),
            answer=make_answer(f"Hot as the {kind}."),
            passages=(make_passage(text=f"The {kind} is hot."),),
        )
        for kind in [*BAD, *CURED, "good"]
    ]


def server_script(asked):
    def script(body):
        prompt = body["messages"][-1]["content"]
        kind = re.findall(r"[Tt]he (\w+) (?:oven|is hot)", prompt)[-1]
        asked[kind] += 1
        if kind in BAD:
            return BAD[kind][0]
        if kind in CURED and asked[kind] == 1:
            return CURED[kind]
        schema = body["response_format"]["json_schema"]["schema"]
        return good_reply(ChatRequest((Message("user", prompt),), json_schema=schema))

    return script


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    asked, memory = Counter(), tmp_path_factory.mktemp("memory") / "scores.sqlite"
    with openai_server(server_script(asked)) as server:
        judge = OpenAIChat("tiny", base_url=server.url, concurrency=4, timeout_s=0.5)
        judge.retry = RetryPolicy(2, sleep=lambda _: None)
        scores = evaluate(make_traces(), ["ragas.faithfulness"], judge=judge, memory=memory)
    return {score.question_id: score for score in scores}, asked, memory


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_reply_is_counted_with_its_reason(evaluated, kind):
    scores, asked, _ = evaluated
    _, n_asked, reason = BAD[kind]
    assert (scores[kind].status, scores[kind].value) == ("failed", None)
    assert reason in scores[kind].reason
    assert asked[kind] == n_asked


@pytest.mark.parametrize("kind", [*CURED, "good"])
def test_what_another_attempt_cures_is_scored(evaluated, kind):
    scores, asked, _ = evaluated
    assert scores[kind].value == 0.75
    assert asked[kind] == 2 + (kind in CURED)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_judge_that_stays_down_is_given_up(concurrency, tmp_path):
    traces = [make_trace(make_question(str(n)), answer=make_answer(f"It is {n}.")) for n in range(200)]
    with openai_server(lambda _: Scripted("slow down", 429, AT_ONCE)) as server:
        judge = OpenAIChat("tiny", base_url=server.url, concurrency=concurrency)
        judge.retry = RetryPolicy(2, sleep=lambda _: None)
        scores = evaluate(traces, ["ragas.faithfulness"], judge=judge, memory=tmp_path / "scores.sqlite")
        n_asked = len(server.paths)
    assert {score.status for score in scores} == {"failed"}
    assert "the judge failed: openai:tiny was given up for now: " in scores[-1].reason
    assert 2 * patience.CALLS <= n_asked <= 2 * (patience.CALLS + concurrency - 1)
    assert Memory(tmp_path / "scores.sqlite").counts() == {}


def test_nothing_is_lost_and_only_lasting_failures_are_remembered(evaluated):
    scores, _, memory = evaluated
    assert len(scores) == len(BAD) + len(CURED) + 1
    assert Memory(memory).counts()["ragas.faithfulness"] == len(scores) - len(TRANSIENT)
