import json

import pytest

from rag_lab.records import QUERY_CLASSES, Question, Trace, Turn
from rag_lab.stages.query.prompts import EXAMPLES, UNDERSTANDING_SCHEMA, understanding_messages
from rag_lab.stages.query.understand import LlmUnderstanding, Understanding
from rag_lab.testing import ScriptedChat

GOOD = {"class": "procedural", "rewritten": "steps to change the belt", "hyde": True}


def run(reply, question=None):
    model = ScriptedChat([reply])
    (outcome,) = LlmUnderstanding(model).run([Trace(question or Question("q", "belt?"))])
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
    assert repr(bad) in outcome.reason
    assert outcome.updates == {}


def test_the_history_reaches_the_model_and_the_wording_is_kept():
    question = Question("q", "and its pressure?", history=(Turn("user", "Tell me about press P-11"),))
    _, request = run(json.dumps(GOOD), question)
    assert "Tell me about press P-11" in request.messages[-1].content
    assert "and its pressure?" in request.messages[-1].content


def test_every_class_has_as_many_examples_as_any_other():
    counts = {name: sum(example[1] == name for example in EXAMPLES) for name in QUERY_CLASSES}
    assert len(set(counts.values())) == 1


def test_the_examples_are_what_the_parser_accepts():
    replies = [message.content for message in understanding_messages(Question("q", "?")) if message.role == "assistant"]
    assert [Understanding.model_validate_json(reply).query_class for reply in replies] == [e[1] for e in EXAMPLES]
