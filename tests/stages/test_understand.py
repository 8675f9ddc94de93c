import json

import pytest

from rag_lab.models.protocols import ChatReply
from rag_lab.records import QUERY_CLASSES, Question, Remembered, Trace, Turn
from rag_lab.stages.understand import (
    EXAMPLES,
    FOLLOW_UP_EXAMPLES,
    UNDERSTANDING_SCHEMA,
    LlmUnderstanding,
    Rephrase,
    Understanding,
    understanding_messages,
)
from rag_lab.testing import ScriptedChat

GOOD = {"class": "procedural", "rewritten": "steps to change the belt", "hyde": True}


def run(reply, question=None, said=Remembered()):  # noqa: B008 - frozen
    model = ScriptedChat([reply])
    (outcome,) = LlmUnderstanding(model).run([Trace(question or Question("q", "belt?"), remembered=said)])
    return outcome, model.requests[0]


def test_one_call_gives_class_rewrite_and_suggestion():
    outcome, request = run(json.dumps(GOOD))
    assert outcome.status == "ok"
    assert outcome.updates == {
        "query_class": "procedural",
        "proposed_query": "steps to change the belt",
        "hyde_suggested": True,
    }
    assert request.json_schema == UNDERSTANDING_SCHEMA


@pytest.mark.parametrize("bad", ["", "procedural", "{}", json.dumps({**GOOD, "class": "other"}), '{"class": "fuz'])
def test_a_reply_that_is_not_the_object_is_a_fallback_that_quotes_it(bad):
    outcome, _ = run(bad)
    assert outcome.status == "fallback"
    assert (repr(bad) if bad else "the model wrote nothing") in outcome.reason
    assert outcome.updates == {}


def test_what_is_remembered_reaches_the_model_and_the_wording_is_kept():
    question = Question("q", "and its pressure?", history=(Turn("user", "forgotten"),))
    said = Remembered(3, (Turn("user", "Tell me about press P-11"),), "The oven was talked about.")
    _, request = run(json.dumps(GOOD), question, said)
    assert "summary: The oven was talked about.\nuser: Tell me about press P-11\n" in request.messages[-1].content
    assert "forgotten" not in str(request.messages)
    assert "and its pressure?" in request.messages[-1].content


def test_repeats_that_are_sampled_have_seeds_of_their_own_and_phrasings_too():
    model = ScriptedChat([json.dumps(GOOD)] * 2 + [of("a", "b")] * 2)
    traces = [Trace(Question("q", "belt?"), repeat=n, search_query="belt?") for n in range(2)]
    LlmUnderstanding(model, seed=5, temperature=0.7).run(traces)
    Rephrase(model, 2, seed=5, temperature=0.7).run(traces)
    assert [(one.seed, one.temperature) for one in model.requests] == [(5, 0.7), (6, 0.7)] * 2


def test_every_class_has_as_many_examples_as_any_other():
    counts = {name: sum(example[1] == name for example in EXAMPLES) for name in QUERY_CLASSES}
    assert len(set(counts.values())) == 1


def test_the_examples_are_what_the_parser_accepts():
    said = Remembered(1, (Turn("user", "Hello"),))
    for before, examples in ((Remembered(), EXAMPLES), (said, (*EXAMPLES, *(one[1:] for one in FOLLOW_UP_EXAMPLES)))):
        messages = understanding_messages("?", before)
        replies = [Understanding.model_validate_json(one.content) for one in messages if one.role == "assistant"]
        assert [reply.query_class for reply in replies] == [example[1] for example in examples]
        assert [reply.rewritten for reply in replies] == [example[2] for example in examples]


def test_of_follow_ups_alone_the_model_is_asked():
    model = ScriptedChat([json.dumps(GOOD)])
    first = Trace(Question("a", "Which press?"))
    follow_up = Trace(Question("b", "and its pressure?", history=(Turn("user", "Tell me about press P-11"),)))
    skipped, asked = LlmUnderstanding(model, only_follow_ups=True).run([first, follow_up])
    assert len(model.requests) == 1 and asked.updates["proposed_query"] == GOOD["rewritten"]
    assert (skipped.updates, skipped.status, skipped.reason) == ({}, "ok", "no conversation before the question")


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
