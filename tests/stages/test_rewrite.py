import pytest

from rag_lab.records import Question, Remembered, Trace, Turn
from rag_lab.stages.rewrite_and_hyde import GuardedRewrite, PlainWords
from rag_lab.testing import HashEmbedder


def decide(question, rewrite, min_similarity=0.3, history=()):
    trace = Trace(Question("q", question), remembered=Remembered(len(history), history), proposed_query=rewrite)
    (outcome,) = GuardedRewrite(HashEmbedder(), min_similarity).run([trace])
    return outcome


@pytest.mark.parametrize(
    ("question", "rewrite", "min_similarity", "reason"),
    [
        ("why does the oven trip at night", "causes why the oven does trip at night", 0.3, ""),
        ("oven CO-1?", "oven co-1", -1, ""),  # codes are compared without case and punctuation
        ("why does the oven trip at night", "forklift safety rules", 0.3, "below 0.30"),
        ("torque of the M8 bolts on gearbox G-12?", "torque of the bolts on gearbox", -1, "g-12"),
        ("torque of the M8 bolts on gearbox G-12?", "torque of the M8 bolts on gearbox G-13", -1, "g-12"),
        ("oven?", None, 0.3, "no rewrite to search"),
        ("oven?", "", 0.3, "no rewrite to search"),
    ],
)
def test_a_rewrite_is_searched_unless_it_has_drifted_and_the_record_says_why(question, rewrite, min_similarity, reason):
    outcome = decide(question, rewrite, min_similarity)
    assert (outcome.updates, outcome.status) == (
        ({"search_query": question}, "fallback") if reason else ({"search_query": rewrite}, "ok")
    )
    assert reason in outcome.reason


def test_a_follow_up_is_measured_in_the_context_of_its_history():
    history = (Turn("user", "tell me about the pressure of the press"),)
    assert decide("and the oven?", "pressure of the press and of the oven", 0.75).status == "fallback"
    assert decide("and the oven?", "pressure of the press and of the oven", 0.75, history).status == "ok"


def test_switched_off_it_is_no_fallback():
    (outcome,) = PlainWords().run([Trace(Question("q", "oven?"), proposed_query="other")])
    assert (outcome.updates, outcome.status) == ({"search_query": "oven?"}, "ok")


def test_without_the_guard_any_rewrite_is_searched_and_its_absence_is_said():
    drifted = Trace(Question("q", "torque of bolt M8?"), proposed_query="holidays in Spain")
    without = Trace(Question("q", "torque of bolt M8?"))
    taken, own = GuardedRewrite().run([drifted, without])
    assert (taken.status, taken.updates) == ("ok", {"search_query": "holidays in Spain"})
    assert (own.status, own.updates) == ("fallback", {"search_query": "torque of bolt M8?"})


def test_of_follow_ups_alone_the_rewrite_is_searched():
    turn = Turn("user", "What is the torque of bolt M8?")
    follow_up = Trace(
        Question("a", "and of the larger bolt?", history=(turn,)), proposed_query="torque of the larger bolt"
    )
    first = Trace(Question("b", "torque of bolt M8?"), proposed_query="holidays in Spain")
    for rewriting in (GuardedRewrite(only_follow_ups=True), GuardedRewrite(HashEmbedder(), -1, only_follow_ups=True)):
        rewritten, own = rewriting.run([follow_up, first])
        assert rewritten.updates == {"search_query": "torque of the larger bolt"}
        assert (own.status, own.updates) == ("ok", {"search_query": "torque of bolt M8?"})


class ReadsWords(HashEmbedder):
    """Reads the first ten words of a text."""

    most_tokens = 10

    def text_tokens(self, texts, kind):
        return [len(text.split()) for text in texts]


def test_what_the_guard_did_not_read_is_counted():
    question = Question("q", "What does alarm A7 of the curing oven in hall two mean today?")
    trace = Trace(question, proposed_query=f"meaning {question.text}")
    (outcome,) = GuardedRewrite(ReadsWords(), 0.0).run([trace])
    assert outcome.truncated_tokens == (14 - 10) + (13 - 10)
    assert GuardedRewrite(HashEmbedder(), 0.0).run([trace])[0].truncated_tokens == 0
