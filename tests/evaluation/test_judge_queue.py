"""Nothing is asked twice, what breaks breaks for those who wait for it; a reply is an object or a reason why not."""

import asyncio
import json
import re
import threading
from collections import Counter

import pytest
from doubles import ScriptedJudge, good_reply
from factories import make_answer, make_passage, make_question, make_trace
from hypothesis import given
from hypothesis import strategies as st
from loopback_models import Scripted, openai_server
from pydantic import BaseModel

from rag_lab.errors import ModelError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.judge_queue import JudgeError, JudgeQueue, JudgeReplies, read_reply, strict_schema
from rag_lab.memory.ledger import Ledger
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.remote import retries
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.retries import RetryPolicy
from rag_lab.models.shared import MeteredChat
from rag_lab.testing import HashEmbedder

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
TAIL = " The relief valve opens at 290 bar."
LONG = "The press is looked after by the shift. " * 1000 + TAIL


class RemoteJudge(ScriptedJudge):
    """Answers `concurrency` calls at a time; each waits until that many are being answered."""

    def __init__(self, answer, concurrency):
        super().__init__(answer)
        self.concurrency = concurrency
        self.meeting = threading.Barrier(concurrency)

    def generate(self, requests):
        self.meeting.wait(timeout=20)
        return super().generate(requests)


def request(text, seed=0):
    return ChatRequest((Message("user", text),), seed=seed)


def ask(queue, *requests):
    async def all_of_them():
        return await asyncio.gather(*(queue.ask(each) for each in requests), return_exceptions=True)

    return asyncio.run(all_of_them())


def echo(request):
    return f"{request.messages[0].content} {request.seed}"


def test_a_remote_judge_gets_as_many_calls_as_it_takes():
    judge = RemoteJudge(echo, 3)
    replies = ask(JudgeQueue(judge), *(request(f"r{n}") for n in range(9)))
    assert [reply.text for reply in replies] == [f"r{n} 0" for n in range(9)]
    assert judge.batches == [1] * 9


def test_a_metered_judge_gets_as_many_calls_as_the_one_behind_it(tmp_path):
    judge = RemoteJudge(echo, 3)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ask(JudgeQueue(MeteredChat(judge, "scripted:judge-a", ledger, "baseline")), *(request(f"r{n}") for n in range(9)))
    assert judge.batches == [1] * 9
    assert [n for _, n, _ in ledger.calls()] == [9]


def test_scores_keep_a_remote_judge_busy_without_changing_a_value():
    def traces(n):
        return [
            make_trace(make_question(text=f"{i}?"), answer=make_answer(f"{i}"), passages=(make_passage(text=f"{i}"),))
            for i in range(n)
        ]

    remote = evaluate(traces(4), ["ragas.faithfulness"], judge=RemoteJudge(good_reply, 4))
    local = evaluate(traces(4), ["ragas.faithfulness"], judge=ScriptedJudge(good_reply))
    assert [score.value for score in remote] == [score.value for score in local] == [0.75] * 4


@pytest.mark.parametrize("make", [lambda: ScriptedJudge(echo), lambda: RemoteJudge(echo, 2)])
def test_the_same_request_is_made_once_and_another_seed_is_another_request(make):
    judge = make()
    replies = ask(JudgeQueue(judge), request("a"), request("a"), request("a", seed=1))
    assert [reply.text for reply in replies] == ["a 0", "a 0", "a 1"]
    assert len(judge.requests) == 2


def test_a_queue_outlives_its_loops():
    judge = ScriptedJudge(echo)
    queue = JudgeQueue(judge)
    assert ask(queue, request("a"))[0] == ask(queue, request("a"))[0]
    assert len(judge.requests) == 1


def test_replies_are_kept_in_a_file_by_judge_and_failures_are_not(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    failing = ScriptedJudge(lambda r: ChatReply(error="HTTP 500") if "bad" in r.messages[0].content else "ok")
    ask(JudgeQueue(failing, JudgeReplies(failing, memory)), request("good"), request("bad"))
    again, other = ScriptedJudge(lambda _: "again"), ScriptedJudge(lambda _: "other", name="judge-b")
    replies = ask(JudgeQueue(again, JudgeReplies(again, memory)), request("good"), request("bad"))
    assert [reply.text for reply in replies] == ["ok", "again"]
    assert ask(JudgeQueue(other, JudgeReplies(other, memory)), request("good"))[0].text == "other"
    assert memory.counts() == {"judge": 3}


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_judge_that_cannot_be_used_is_not_called_again(concurrency):
    def refuse(_):
        raise ModelError("No key for 'judge': set it.")

    judge = ScriptedJudge(echo)
    judge.generate = refuse
    judge.concurrency = concurrency
    queue = JudgeQueue(judge)
    assert {str(error) for error in ask(queue, request("a"), request("b"))} == {"No key for 'judge': set it."}
    judge.generate = ScriptedJudge(echo).generate
    assert isinstance(ask(queue, request("c"))[0], ModelError)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_judge_that_returns_too_few_replies_fails_those_who_wait(concurrency):
    judge = ScriptedJudge(echo)
    judge.generate = lambda requests: []
    judge.concurrency = concurrency
    assert all(isinstance(error, ValueError) for error in ask(JudgeQueue(judge), request("a"), request("b")))


def test_a_judge_that_answers_one_call_at_a_time_loses_no_reply_to_an_interruption(tmp_path):
    def interrupt(each):
        if len(judge.requests) > 3:
            raise KeyboardInterrupt
        return echo(each)

    judge, memory = ScriptedJudge(interrupt), Memory(tmp_path / "m.sqlite")
    judge.concurrency = 1
    with pytest.raises(KeyboardInterrupt):
        ask(JudgeQueue(judge, JudgeReplies(judge, memory)), *(request(f"r{n}") for n in range(8)))
    assert judge.batches == [1] * 4
    assert memory.counts() == {"judge": 3}


def test_an_interruption_ends_the_calls_that_have_not_begun():
    judge = ScriptedJudge(lambda each: queue.stop() or echo(each))
    judge.concurrency = 2
    queue = JudgeQueue(judge)
    replies = ask(queue, *(request(f"r{n}") for n in range(20)))
    told = [str(reply) for reply in replies if isinstance(reply, Exception)]
    assert len(told) >= 17
    assert set(told) == {"The evaluation was interrupted; run it again to go on."}
    assert len(judge.requests) <= 3


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
    assert 2 * retries.CALLS <= n_asked <= 2 * (retries.CALLS + concurrency - 1)
    assert Memory(tmp_path / "scores.sqlite").counts() == {}


def test_nothing_is_lost_and_only_lasting_failures_are_remembered(evaluated):
    scores, _, memory = evaluated
    assert len(scores) == len(BAD) + len(CURED) + 1
    assert Memory(memory).counts()["ragas.faithfulness"] == len(scores) - len(TRANSIENT)


def judged(window, metric="ragas.faithfulness", memory=None):
    def script(body):
        prompt, schema = body["messages"][-1]["content"], body["response_format"]["json_schema"]["schema"]
        return Scripted(good_reply(ChatRequest((Message("user", prompt),), json_schema=schema)), window=window)

    trace = make_trace(make_question("q"), answer=make_answer("290 bar."), passages=(make_passage(text=LONG),))
    with openai_server(script) as server:
        judge = OpenAIChat("tiny", base_url=server.url)
        (score,) = evaluate([trace], [metric], judge=judge, memory=memory)
    return score


def test_a_judge_whose_window_cuts_the_prompt_is_found_out(tmp_path):
    cut, whole = judged(4096, memory=tmp_path / "m.sqlite"), judged(None)
    assert whole.truncated_tokens == 0 and whole.status == "scored"
    assert cut.status == "scored" and cut.truncated_tokens > 8000 - 4096
    assert judged(4096, memory=tmp_path / "m.sqlite").truncated_tokens == cut.truncated_tokens  # remembered


def test_what_a_metric_of_ones_own_asks_is_counted_too():
    def asks(trace, judge):
        (reply,) = judge.generate([ChatRequest((Message("user", LONG),), json_schema={"type": "object"})])
        return 0.5

    with openai_server(lambda _: Scripted("{}", window=1000)) as server:
        (score,) = evaluate([make_trace()], [asks], judge=OpenAIChat("tiny", base_url=server.url))
    assert score.truncated_tokens == len(LONG.split()) - 1000


class ReadsWords(HashEmbedder):
    most_tokens = 10

    def text_tokens(self, texts, kind):
        return [len(text.split()) for text in texts]


@pytest.mark.parametrize(("answer", "unread"), [("It is 290 bar.", 0), ("It is so. " * 5, 5)])
def test_what_an_embedding_model_does_not_read_of_an_answer_is_counted(answer, unread):
    trace = make_trace(make_question("q", answers=("It is 290 bar.",)), answer=make_answer(answer))
    (score,) = evaluate([trace], ["ragas.semantic_similarity"], embedder=ReadsWords())
    assert (score.status, score.truncated_tokens) == ("scored", unread)


class Verdict(BaseModel):
    reason: str
    verdict: int


class Verdicts(BaseModel):
    statements: list[Verdict]


class Classes(BaseModel):
    TP: list[str]
    FP: list[str]
    FN: list[str]


def test_the_first_object_counts_whatever_stands_around_it():
    text = 'Sure!\n```json\n{"reason": "a\nb", "verdict": 1}\n``` {"verdict": 0}'
    assert read_reply(ChatReply(text), Verdict) == Verdict(reason="a\nb", verdict=1)


@pytest.mark.parametrize(
    ("reply", "model", "reason"),
    [
        (ChatReply(""), Verdict, "empty"),
        (ChatReply("  \n"), Verdict, "empty"),
        (ChatReply("The oven is hot."), Verdict, "no JSON object: 'The oven is hot.'"),
        (ChatReply('{"reason": "bec'), Verdict, "broken JSON"),
        (ChatReply('{"reason": "bec', truncated=True), Verdict, "cut off at its token limit"),
        (ChatReply('{"a":' * 100_000), Verdict, "broken JSON"),
        (ChatReply('{"reason": "r"}'), Verdict, "does not fit the schema: verdict"),
        (ChatReply('{"reason": "r", "verdict": 7}'), Verdict, "verdict is 7; allowed is 0 to 1"),
        (ChatReply('{"statements": []}'), Verdicts, "empty 'statements'"),
        (ChatReply('{"statements": [{"reason": "r", "verdict": -1}]}'), Verdicts, "verdict is -1"),
        (ChatReply('{"TP": [], "FP": [], "FN": []}'), Classes, "classified no statement"),
        (ChatReply(error="HTTP 500"), Verdict, "the judge failed: HTTP 500"),
        (ChatReply(error="HTTP 429", transient=True), Verdict, "the judge failed: HTTP 429"),
    ],
)
def test_each_bad_reply_has_its_reason(reply, model, reason):
    with pytest.raises(JudgeError) as caught:
        read_reply(reply, model)
    assert reason in caught.value.reason
    assert len(caught.value.reason) < 200
    assert caught.value.permanent is not reply.transient


@given(st.text(max_size=60))
def test_arbitrary_text_is_read_or_refused(text):
    try:
        assert isinstance(read_reply(ChatReply(text), Verdict), Verdict)
    except JudgeError as error:
        assert error.reason


@given(st.text(max_size=60), st.integers(0, 1))
def test_what_was_written_is_read(reason, verdict):
    given_verdict = Verdict(reason=reason, verdict=verdict)
    assert read_reply(ChatReply(given_verdict.model_dump_json()), Verdict) == given_verdict


def test_the_schema_holds_the_judge_to_what_ragas_means():
    schema = strict_schema(Verdicts)
    assert schema["properties"]["statements"]["minItems"] == 1
    verdict = schema["$defs"]["Verdict"]["properties"]["verdict"]
    assert (verdict["minimum"], verdict["maximum"]) == (0, 1)
    assert json.loads(json.dumps(schema)) == schema
