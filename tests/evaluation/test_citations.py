from factories import make_answer, make_evidence, make_passage, make_question, make_trace

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.registry import describe
from rag_lab.records import Answer, Citation


def values(trace):
    precision, recall, validity = evaluate([trace], ["citations.precision", "citations.recall", "citations.validity"])
    return precision.value, recall.value, validity.value


CONTEXT = (make_passage(1, 1), make_passage(2, 2), make_passage(3, 3))


def test_the_three_shares():
    question = make_question(evidence=(make_evidence(1), make_evidence(2)))
    answer = make_answer(cites=(1, 3), rejected_citations=("[9]", "handbook.pdf"))
    assert values(make_trace(question, passages=CONTEXT, answer=answer)) == (1 / 4, 1 / 2, 2 / 4)


def test_an_answer_without_citations_does_not_look_good_and_rejected_ones_are_worse():
    assert values(make_trace(answer=make_answer(cites=()))) == (None, 0, None)
    assert values(make_trace(answer=make_answer(cites=(), rejected_citations=("[7]",)))) == (0, 0, 0)


def test_citing_a_passage_twice_counts_once():
    answer = make_answer(cites=(1, 1, 1, 2), rejected_citations=("[9]", "[9]"))
    assert values(make_trace(passages=CONTEXT, answer=answer)) == (1 / 3, 1, 2 / 3)


def test_an_unanswerable_question_has_only_validity():
    question = make_question(answerable=False, evidence=(), answers=())
    assert values(make_trace(question)) == (None, None, 1)


def test_all_of_the_room_is_described():
    assert sum(info.name.startswith("citations.") for info in describe()) == 4


def test_quotes_must_stand_in_the_passage_they_cite():
    whole = make_passage(2, text="The oven", parent_text="The oven\n is  heated to 180 degrees.")
    quotes = (
        Citation(2, "s", 1, "oven is heated"),  # past the token budget's cut, across a line's end
        Citation(1, "s", 1, "The press is cold."),  # nowhere
        Citation(1, "s", 1, "  "),  # no quote
        Citation(7, "s", 1, "The oven"),  # no such passage
    )
    trace = make_trace(passages=(make_passage(1), whole), answer=Answer("Hot.", quotes))
    (score,) = evaluate([trace], ["citations.quotes_verified"])
    assert score.value == 1 / 3
    (score,) = evaluate([make_trace()], ["citations.quotes_verified"])
    assert (score.status, score.reason) == ("not_applicable", "no citation quotes anything")
