from hypothesis import given
from hypothesis import strategies as st

from rag_lab.experiment.choose_questions import choose_questions
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.records import Question
from rag_lab.runs.asked import asked_told, left_out

LIMITS = st.fixed_dictionaries({"questions": st.integers(1, 30) | st.none(), "answers": st.integers(0, 30) | st.none()})


def reasons(questions: list[Question], limits: dict[str, int | None], answers: bool = True) -> dict[str, int]:
    experiment = ExperimentConfig(name="n", question="q", dataset="d", limits=limits)
    asked, answered = choose_questions(questions, experiment, answers)
    found = left_out(questions, set(asked), set(answered), experiment.limits.questions, experiment.seed)
    assert len(asked) + sum(found.values()) == len(questions)
    return found


def dataset(n: int, n_unanswerable: int) -> list[Question]:
    return [Question(f"q{index}", "?", answerable=index >= n_unanswerable) for index in range(n)]


@given(st.lists(st.booleans(), min_size=1, max_size=30), LIMITS, st.booleans())
def test_every_question_is_asked_or_left_out_for_a_reason(
    answerable: list[bool], limits: dict[str, int | None], answers: bool
) -> None:
    questions = [Question(f"q{index}", "?", answerable=one) for index, one in enumerate(answerable)]
    found = reasons(questions, limits, answers)
    unmeasured = sum(n for reason, n in found.items() if "no answer" in reason and "beyond" not in reason)
    assert unmeasured <= answerable.count(False)
    assert all(n > 0 for n in found.values())
    if limits["questions"] is None:
        assert not any("beyond limits.questions" in reason for reason in found)


def test_questions_that_nothing_can_be_measured_on_are_told_with_the_limit() -> None:
    found = reasons(dataset(20, 4), {"answers": 0})
    assert found == {
        "to which the documents hold no answer, as none is answered and retrieval cannot be measured on them": 4
    }
    assert asked_told(16, found).startswith("16 of 20 questions are asked. Left out: 4 to which the documents hold")


def test_a_sample_is_told_as_one() -> None:
    found = reasons(dataset(20, 0), {"questions": 12})
    assert asked_told(12, found) == (
        "12 of 20 questions are asked. Left out: 8 beyond limits.questions, which takes 12 by class and by whether "
        "there is an answer."
    )


def test_without_limits_all_are_asked() -> None:
    assert reasons(dataset(3, 0), {}) == {} and asked_told(3, {}) == "3 questions are asked."


def test_questions_that_nobody_named_are_told_so_and_not_called_unanswerable() -> None:
    questions = dataset(10, 2)
    found = left_out(questions, {"q3", "q5", "q0"}, {"q0"}, None, 0)
    assert found["that are not among those named"] == 6
    assert sum(n for reason, n in found.items() if "hold no answer" in reason) == 1
