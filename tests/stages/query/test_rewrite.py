import pytest

from rag_lab.records import Question, Trace, Turn
from rag_lab.stages.query.rewrite import GuardedRewrite, OwnWords
from rag_lab.testing import HashEmbedder


def decide(question, rewrite, min_similarity=0.3, history=()):
    trace = Trace(Question("q", question, history=history), proposed_query=rewrite)
    (outcome,) = GuardedRewrite(HashEmbedder(), min_similarity).run([trace])
    return outcome


def test_a_faithful_rewrite_is_searched():
    outcome = decide("why does the oven trip at night", "causes why the oven does trip at night")
    assert outcome.updates == {"search_query": "causes why the oven does trip at night"}
    assert outcome.status == "ok"


def test_a_rewrite_that_has_drifted_is_refused_and_the_trace_says_so():
    outcome = decide("why does the oven trip at night", "forklift safety rules")
    assert outcome.updates == {"search_query": "why does the oven trip at night"}
    assert outcome.status == "fallback"
    assert "below 0.30" in outcome.reason


@pytest.mark.parametrize("rewrite", ["torque of the bolts on gearbox", "torque of the M8 bolts on gearbox G-13"])
def test_a_rewrite_that_lost_a_code_is_refused(rewrite):
    outcome = decide("torque of the M8 bolts on gearbox G-12?", rewrite, min_similarity=-1)
    assert outcome.status == "fallback"
    assert "g-12" in outcome.reason


def test_codes_are_compared_without_case_and_punctuation():
    assert decide("oven CO-1?", "oven co-1", min_similarity=-1).status == "ok"


def test_a_follow_up_is_measured_in_the_context_of_its_history():
    history = (Turn("user", "tell me about the pressure of the press"),)
    assert decide("and the oven?", "pressure of the press and of the oven", 0.75).status == "fallback"
    assert decide("and the oven?", "pressure of the press and of the oven", 0.75, history).status == "ok"


@pytest.mark.parametrize("rewrite", [None, ""])
def test_without_a_rewrite_the_wording_is_searched_as_a_fallback(rewrite):
    outcome = decide("oven?", rewrite)
    assert (outcome.updates, outcome.status) == ({"search_query": "oven?"}, "fallback")


def test_switched_off_it_is_no_fallback():
    (outcome,) = OwnWords().run([Trace(Question("q", "oven?"), proposed_query="other")])
    assert (outcome.updates, outcome.status) == ({"search_query": "oven?"}, "ok")
