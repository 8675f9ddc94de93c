import json

import pytest

from rag_lab.models.protocols import ChatReply
from rag_lab.records import Question, Trace
from rag_lab.stages.query.rephrase import Rephrase
from rag_lab.testing import ScriptedChat

TRACE = Trace(Question("q", "Oven trips?"), search_query="why does the oven trip")


def rephrased(reply, n=2):
    chat = ScriptedChat([reply])
    (outcome,) = Rephrase(chat, n).run([TRACE])
    return outcome, chat


def of(*phrasings):
    return json.dumps({"phrasings": phrasings})


def test_the_phrasings_are_those_of_the_model():
    outcome, chat = rephrased(of("cause of the oven's trip", "oven shuts down"))
    assert outcome.updates == {"phrasings": ("cause of the oven's trip", "oven shuts down")}
    (request,) = chat.requests
    assert request.messages[-1].content == "Question: why does the oven trip\nPhrasings: 2"
    assert request.json_schema["properties"]["phrasings"]["minItems"] == 2


def test_repetitions_and_blanks_are_left_out_and_never_more_than_asked():
    outcome, _ = rephrased(of("", "Why does the  oven trip", "a", " A ", "b", "c"))
    assert outcome.updates == {"phrasings": ("a", "b")}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (ChatReply(error="rate limit", transient=True), "rate limit"),
        ("no idea", "not the object"),
        (json.dumps({"phrasings": "oven"}), "not the object"),
        (of("why does the oven trip"), "repeated the question"),
    ],
)
def test_without_phrasings_it_falls_back_and_says_why(reply, said):
    outcome, _ = rephrased(reply)
    assert outcome.updates == {}
    assert outcome.status == "fallback"
    assert said in outcome.reason
    assert outcome.lasting == (said != "rate limit")
