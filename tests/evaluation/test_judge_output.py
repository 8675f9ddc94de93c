import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from rag_lab.evaluation.judge_output import JudgeError, read_reply, strict_schema
from rag_lab.models.protocols import ChatReply


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
