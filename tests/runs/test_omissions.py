from hypothesis import given
from hypothesis import strategies as st

from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.questions import choose_questions
from rag_lab.records import Question
from rag_lab.runs.omissions import MOST, SamePipeline, asked_sentence, left_out, same_pipeline_sentences

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
    assert asked_sentence(16, found).startswith("16 of 20 questions are asked. Left out: 4 to which the documents hold")


def test_a_sample_is_told_as_one() -> None:
    found = reasons(dataset(20, 0), {"questions": 12})
    assert asked_sentence(12, found) == (
        "12 of 20 questions are asked. Left out: 8 beyond limits.questions, which takes 12 by class and by whether "
        "there is an answer."
    )


def test_without_limits_all_are_asked() -> None:
    assert reasons(dataset(3, 0), {}) == {} and asked_sentence(3, {}) == "3 questions are asked."


def test_questions_that_nobody_named_are_told_so_and_not_called_unanswerable() -> None:
    questions = dataset(10, 2)
    found = left_out(questions, {"q3", "q5", "q0"}, {"q0"}, None, 0)
    assert found["that are not among those named"] == 6
    assert sum(n for reason, n in found.items() if "hold no answer" in reason) == 1


def test_combinations_of_one_reason_are_told_together_and_others_alone():
    why = "no search is by words"
    many = [SamePipeline(f"analyzer = {n}", {"retrieval.analyzer": str(n)}, "baseline", why) for n in range(7)]
    alone = SamePipeline("seed = 1", {"seed": 1}, "baseline", "no reply of a model is sampled")
    twins = [SamePipeline(name, {}, "a") for name in "bc"]
    told = same_pipeline_sentences([*many, alone, *twins])
    assert told == [
        "7 combinations are the same pipelines as others by construction and are run once, since no search is by "
        "words: " + "; ".join(f"analyzer = {n} as baseline" for n in range(MOST)) + "; and 3 more.",
        "seed = 1 is the same pipeline as baseline by construction and is run once: no reply of a model is sampled.",
        "b is the same pipeline as a and is run once.",
        "c is the same pipeline as a and is run once.",
    ]
    assert same_pipeline_sentences([]) == []
