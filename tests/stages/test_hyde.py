from dataclasses import replace

import pytest

from rag_lab.models.protocols import ChatReply
from rag_lab.records import QUERY_CLASSES, MachineUse, Question, Trace
from rag_lab.stages.rewrite_and_hyde import GENERAL, HYDE_PROMPTS, SUGGESTED, Hyde, RouteHyde
from rag_lab.testing import ScriptedChat

ROUTED = Trace(Question("q", "?"), search_query="s", hyde_route=GENERAL)
ONLY_FUZZY = {name: name == "fuzzy" for name in QUERY_CLASSES}


@pytest.mark.parametrize(
    ("rule", "query_class", "suggested", "route", "reason"),
    [
        (ONLY_FUZZY, "fuzzy", None, "fuzzy", "class fuzzy: on"),
        *((ONLY_FUZZY, name, None, None, f"class {name}: off") for name in QUERY_CLASSES if name != "fuzzy"),
        (ONLY_FUZZY, "specific", True, None, "class specific: off, against the model's suggestion (on)"),
        (ONLY_FUZZY, "fuzzy", False, "fuzzy", "class fuzzy: on, against the model's suggestion (off)"),
        (ONLY_FUZZY, "fuzzy", True, "fuzzy", "class fuzzy: on"),
        (ONLY_FUZZY, None, None, None, "no HyDE: the question has no class"),
        (SUGGESTED, "specific", True, "specific", "the understanding suggested it on"),
        (SUGGESTED, None, True, GENERAL, "the understanding suggested it on"),
        (SUGGESTED, "fuzzy", False, None, "the understanding suggested it off"),
        (SUGGESTED, "fuzzy", None, None, "no HyDE: the understanding suggested nothing"),
        (None, None, None, GENERAL, "always"),
    ],
)
def test_a_question_is_routed_by_its_class_or_the_suggestion_and_the_record_says_why(
    rule, query_class, suggested, route, reason
):
    (outcome,) = RouteHyde(rule).run([Trace(Question("q", "?"), query_class=query_class, hyde_suggested=suggested)])
    assert (outcome.updates, outcome.reason) == ({"hyde_route": route} if route else {}, reason)
    assert outcome.status == ("fallback" if reason.startswith("no HyDE") else "ok")


@pytest.mark.parametrize("route", [GENERAL, *QUERY_CLASSES])
def test_the_prompt_of_the_route_reaches_the_model(route):
    model = ScriptedChat(["A passage."])
    trace = Trace(Question("q", "the user's words"), search_query="what is searched", hyde_route=route)
    (outcome,) = Hyde(model, max_tokens=32).run([trace])
    sent = [message.content for message in model.requests[0].messages]
    assert sent[0] == HYDE_PROMPTS[route]
    assert "what is searched" in sent[1]
    assert outcome.updates == {"hypothetical": "A passage."}


def test_every_class_has_a_prompt_of_its_own():
    assert set(HYDE_PROMPTS) == {GENERAL, *QUERY_CLASSES}
    assert len(set(HYDE_PROMPTS.values())) == len(HYDE_PROMPTS)


@pytest.mark.parametrize("reply", ["  ", ChatReply(error="rate limit", transient=True)])
def test_a_model_that_writes_nothing_is_a_fallback(reply):
    (outcome,) = Hyde(ScriptedChat([reply]), max_tokens=32).run([ROUTED])
    assert outcome.status == "fallback"
    assert "searched without HyDE" in outcome.reason
    assert outcome.lasting == isinstance(reply, str)


def test_several_documents_are_sampled_apart_and_one_is_greedy():
    model = ScriptedChat(["One.", "Two.", "Three."])
    (outcome,) = Hyde(model, max_tokens=32, n=3).run([ROUTED])
    assert outcome.updates == {"hypothetical": "One.", "other_hypotheticals": ("Two.", "Three.")}
    assert {request.temperature for request in model.requests} == {0.7}
    again = Hyde(model, max_tokens=32, n=3).requests([replace(ROUTED, repeat=1)])
    assert len({request.seed for request in [*model.requests, *again]}) == 6
    assert [request.temperature for request in Hyde(model, max_tokens=32).requests([ROUTED])] == [0.0]


def test_a_document_that_was_not_written_is_said_and_the_others_are_searched():
    model = ScriptedChat(["One.", ChatReply(error="rate limit", transient=True, tokens_in=7), "  "])
    (outcome,) = Hyde(model, max_tokens=32, n=3).run([ROUTED])
    assert outcome.updates == {"hypothetical": "One.", "other_hypotheticals": ()}
    assert outcome.reason == "1 of 3 documents were written: rate limit"
    assert (outcome.status, outcome.lasting) == ("ok", False)


def test_every_question_gets_its_own_documents():
    model = ScriptedChat(["a1", "a2", "b1", "b2"])
    traces = [ROUTED, Trace(Question("x", "?")), ROUTED]
    first, without, last = Hyde(model, max_tokens=32, n=2).run(traces)
    assert first.updates["other_hypotheticals"] == ("a2",) and without.updates == {}
    assert last.updates == {"hypothetical": "b1", "other_hypotheticals": ("b2",)}


def test_what_the_machine_took_for_all_documents_of_a_question_is_on_its_record():
    uses = [MachineUse(2.0, 300.0, 5.0), None, MachineUse(2.0, 320.0, 7.0)]
    replies = [ChatReply("A passage.", machine=use) for use in uses]
    (outcome,) = Hyde(ScriptedChat(replies), max_tokens=32, n=3).run([ROUTED])
    assert outcome.machine == MachineUse(2.0, 320.0, 12.0)
    (unmeasured,) = Hyde(ScriptedChat(["A passage."]), max_tokens=32).run([ROUTED])
    assert unmeasured.machine is None


def test_a_reply_that_broke_off_with_some_text_is_said_to_be_lost():
    (outcome,) = Hyde(ScriptedChat([ChatReply("A pass", error="the server ended in the middle")]), 32).run([ROUTED])
    assert outcome.reason == "searched without HyDE: the server ended in the middle"
