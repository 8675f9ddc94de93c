from dataclasses import replace

from rag_lab.comparison.questions.replies import answered
from rag_lab.records import Answer, Question, StageRecord, Trace

WRITTEN = StageRecord("generate", tokens_out=520, thinking_tokens=500)
DONE = Trace(
    Question("q", "How hard?"),
    prompt="user: How hard?",
    raw_text='<think>bar or psi</think>{"answer": "140 bar"}',
    answer=Answer("140 bar", thinking="bar or psi"),
    stages=(WRITTEN,),
)


def test_thinking_stands_apart_from_the_reply_with_its_tokens() -> None:
    ((one,),) = [each.exchanges for each in answered([("A", DONE)])]
    assert (one.value.raw, one.value.thinking, one.value.thinking_tokens) == (
        '{"answer": "140 bar"}',
        "bar or psi",
        500,
    )


def test_so_it_does_where_no_answer_came_of_it() -> None:
    failed = replace(WRITTEN, status="failed", reason="cut off while thinking")
    (one,) = answered([("A", replace(DONE, answer=None, raw_text="<think>bar or psi</think>", stages=(failed,)))])
    assert (one.reply.value.text, one.reply.value.failure) == ("", "generate failed: cut off while thinking")
    assert (one.exchanges[0].value.raw, one.exchanges[0].value.thinking) == ("", "bar or psi")


def test_a_reply_without_thinking_is_shown_as_it_was_written() -> None:
    plain = replace(DONE, raw_text=' {"answer": "140 bar"}\n', answer=Answer("140 bar"), stages=())
    (one,) = answered([("A", plain)])
    assert one.exchanges[0].value.raw == ' {"answer": "140 bar"}\n'
