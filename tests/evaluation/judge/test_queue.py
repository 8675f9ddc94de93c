"""Places at the judge are filled, nothing is asked twice, and what breaks breaks for those who wait for it."""

import asyncio
import threading

import pytest
from factories import make_answer, make_passage, make_question, make_trace
from scripted import ScriptedJudge, good_reply

from rag_lab.errors import ModelError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.judge.queue import JudgeQueue
from rag_lab.evaluation.judge.replies import JudgeReplies
from rag_lab.memory.ledger import Ledger
from rag_lab.memory.results import Memory
from rag_lab.models.metered import MeteredChat
from rag_lab.models.protocols import ChatReply, ChatRequest, Message


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
