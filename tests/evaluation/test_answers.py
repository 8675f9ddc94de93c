import pytest
from factories import make_answer, make_question, make_trace
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.trace_measures import normalize, token_f1


def value(metric, text="It is 180 degrees.", answers=("180 degrees",), answerable=True, abstained=False):
    question = make_question(answers=answers, answerable=answerable)
    return evaluate([make_trace(question, answer=make_answer(text, abstained=abstained))], [metric])[0].value


def test_squad_normalization():
    assert normalize("  The Oven's\ttimer, an  A-7! ") == "ovens timer a7"


def test_token_f1_is_the_harmonic_mean_of_precision_and_recall():
    # shared: 180, degrees; precision 2/4, recall 2/3
    assert token_f1("It is 180 degrees", "180 degrees Celsius") == pytest.approx(
        2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3)
    )


def test_repeated_words_count_as_often_as_both_have_them():
    assert token_f1("no no no", "no") == pytest.approx(2 * 1 / 4)


def test_the_best_of_several_references_counts():
    assert value("answer.exact_match", "180 degrees", ("200", "180  Degrees.")) == 1
    assert value("answer.token_f1", "180", ("200 degrees", "180")) == 1


@given(st.text(max_size=40), st.text(max_size=40))
def test_token_f1_is_symmetric_and_between_zero_and_one(a, b):
    assert 0 <= token_f1(a, b) <= 1
    assert token_f1(a, b) == token_f1(b, a)
    assert token_f1(a, a) == 1


@pytest.mark.parametrize(
    ("answerable", "abstained", "expected"), [(True, False, 1), (True, True, 0), (False, True, 1), (False, False, 0)]
)
def test_abstention(answerable, abstained, expected):
    assert value("answer.abstention", answerable=answerable, abstained=abstained) == expected


def test_words():
    assert value("answer.words", "It is\n180  degrees.") == 4
    assert value("answer.words", "") == 0
