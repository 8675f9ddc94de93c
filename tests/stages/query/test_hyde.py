import pytest

from rag_lab.models.protocols import ChatReply
from rag_lab.records import QUERY_CLASSES, Question, Trace
from rag_lab.stages.query.hyde import Hyde
from rag_lab.stages.query.prompts import GENERAL, HYDE
from rag_lab.stages.query.route import RouteHyde
from rag_lab.testing import ScriptedChat

ONLY_FUZZY = {name: name == "fuzzy" for name in QUERY_CLASSES}


def routed(rule, query_class, suggested=None):
    (outcome,) = RouteHyde(rule).run([Trace(Question("q", "?"), query_class=query_class, hyde_suggested=suggested)])
    return outcome


@pytest.mark.parametrize("query_class", QUERY_CLASSES)
def test_the_class_rule_decides(query_class):
    assert routed(ONLY_FUZZY, query_class).updates == ({"hyde_route": "fuzzy"} if query_class == "fuzzy" else {})


def test_the_class_rule_overrides_the_models_suggestion_and_says_so():
    off = routed(ONLY_FUZZY, "specific", suggested=True)
    assert off.updates == {}
    assert "against the model's suggestion (on)" in off.reason
    on = routed(ONLY_FUZZY, "fuzzy", suggested=False)
    assert on.updates == {"hyde_route": "fuzzy"}
    assert "against the model's suggestion (off)" in on.reason
    assert "against" not in routed(ONLY_FUZZY, "fuzzy", suggested=True).reason


def test_a_question_without_a_class_is_a_fallback():
    outcome = routed(ONLY_FUZZY, None)
    assert outcome.status == "fallback"
    assert outcome.updates == {}


def test_always_needs_no_class():
    assert routed(None, None).updates == {"hyde_route": GENERAL}


@pytest.mark.parametrize("route", [GENERAL, *QUERY_CLASSES])
def test_the_prompt_of_the_route_reaches_the_model(route):
    model = ScriptedChat(["A passage."])
    trace = Trace(Question("q", "the user's words"), search_query="what is searched", hyde_route=route)
    (outcome,) = Hyde(model, max_tokens=32).run([trace])
    sent = [message.content for message in model.requests[0].messages]
    assert sent[0] == HYDE[route]
    assert "what is searched" in sent[1]
    assert outcome.updates == {"hypothetical": "A passage."}


def test_every_class_has_a_prompt_of_its_own():
    assert set(HYDE) == {GENERAL, *QUERY_CLASSES}
    assert len(set(HYDE.values())) == len(HYDE)


def test_only_routed_questions_cost_a_call():
    model = ScriptedChat(["A passage."])
    traces = [
        Trace(Question(str(i), "?"), search_query="s", hyde_route=route) for i, route in enumerate([None, "fuzzy"])
    ]
    without, written = Hyde(model, max_tokens=32).run(traces)
    assert len(model.requests) == 1
    assert without.updates == {}
    assert written.updates == {"hypothetical": "A passage."}


@pytest.mark.parametrize("reply", ["  ", ChatReply(error="rate limit", transient=True)])
def test_a_model_that_writes_nothing_is_a_fallback(reply):
    trace = Trace(Question("q", "?"), search_query="s", hyde_route=GENERAL)
    (outcome,) = Hyde(ScriptedChat([reply]), max_tokens=32).run([trace])
    assert outcome.status == "fallback"
    assert "searched without HyDE" in outcome.reason
    assert outcome.lasting == isinstance(reply, str)
