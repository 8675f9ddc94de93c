"""Which questions a race asks: nothing that chose is in the proof, and clusters stay whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.experiment.built_in_designs import RaceConfig
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.design import ExperimentError
from rag_lab.experiment.questions import BESIDE, CHOSE, MIN_CLUSTERS, MIN_PROOF, race_questions
from rag_lab.records import QUERY_CLASSES, Evidence, Question


def question(number, cluster=None, answerable=True):
    evidence = (Evidence("a.md", quote="x"),) if answerable else ()
    tags = () if cluster is None else (f"item-{cluster}",)
    label = QUERY_CLASSES[number % 3]
    return Question(
        f"q{number:04}",
        "why?",
        ("x",) * answerable,
        query_class=label,
        answerable=answerable,
        evidence=evidence,
        tags=tags,
    )


def experiment(**changes):
    given = {"name": "n", "question": "q", "dataset": "d", "metrics": ["cost.seconds", "retrieval.ndcg@5"]}
    return ExperimentConfig.model_validate(given | {"design": "racing"} | changes)


@st.composite
def cases(draw):
    n = draw(st.integers(60, 150))
    size = draw(st.integers(1, 5))
    alone = draw(st.integers(0, n))
    asked = [question(i, None if i < alone else i // size, answerable=i % 11 != 0) for i in range(n)]
    given = {"clusters": draw(st.sampled_from(["none", "tag:item-"])), "seed": draw(st.integers(0, 5))}
    rounds = draw(st.sampled_from([[], [10], [10, 15]]))
    return draw(st.permutations(asked)), experiment(**given, race={"rounds": rounds})


@settings(max_examples=40)
@given(cases())
def test_no_question_and_no_cluster_of_the_rounds_is_in_the_proof(case):
    questions, given_experiment = case
    try:
        found = race_questions(questions, given_experiment)
    except ExperimentError:
        return
    by_id = {one.question_id: one for one in questions}
    rounds = [set(ids) for ids in found.rounds]
    assert all(earlier < later for earlier, later in zip(rounds, rounds[1:], strict=False))
    assert not rounds[-1] & set(found.proof) and set(found.answered) <= set(found.proof)
    assert found.apart[CHOSE] == rounds[-1]
    assert all(by_id[name].evidence for name in rounds[-1])  # the others measure nothing
    assert sum(bool(by_id[name].evidence) for name in found.proof) >= MIN_PROOF
    if given_experiment.clusters != "none":
        for ids in rounds:
            shared = {by_id[name].tags for name in ids if by_id[name].tags}
            usable = {one.question_id for one in questions if one.tags in shared and one.evidence}
            assert usable <= ids
            assert not shared & {by_id[name].tags for name in found.proof}


@settings(max_examples=20)
@given(cases())
def test_rounds_and_proof_depend_on_no_order(case):
    questions, given_experiment = case
    try:
        one = race_questions(questions, given_experiment)
    except ExperimentError:
        return
    other = race_questions(questions[::-1], given_experiment)
    assert one.rounds == other.rounds and set(one.proof) == set(other.proof)


def test_what_stands_beside_the_rounds_in_their_clusters_is_named():
    questions = [question(i, i // 4, answerable=i % 4 != 3) for i in range(100)]
    found = race_questions(questions, experiment(clusters="tag:item-", race={"rounds": [12]}))
    assert len(found.rounds[0]) == 12 and len(found.apart[BESIDE]) == 4
    assert len(found.proof) == 84


def test_limits_hold_for_rounds_and_proof_together():
    questions = [question(i) for i in range(200)]
    limited = experiment(limits={"questions": 100, "answers": 7}, race={"rounds": [20, 40]})
    found = race_questions(questions, limited)
    assert list(map(len, found.rounds)) == [20, 40] and len(found.proof) == 60 and len(found.answered) == 7
    answers = experiment(metrics=["answer.token_f1"], limits={"answers": 90}, race={"rounds": [20, 40]})
    found = race_questions(questions, answers)
    assert len(found.answered) == 50


@pytest.mark.parametrize(
    ("n", "changes", "told"),
    [
        (69, {"race": {"rounds": [20, 40]}}, r"take 40 questions and the proof needs 30 others, 70 in all, but .* 69"),
        (200, {"limits": {"questions": 60}, "race": {"rounds": [40]}}, "can be measured on 60 within the limits"),
        (200, {"metrics": ["cost.seconds"]}, "no metric decides"),
        (200, {"metrics": ["answer.token_f1"], "limits": {"answers": 5}}, "on 5 within the limits"),
    ],
)
def test_too_few_questions_are_one_sentence(n, changes, told):
    with pytest.raises(ExperimentError, match=told) as error:
        race_questions([question(i) for i in range(n)], experiment(**changes))
    assert len(error.value.problems) == 1


def test_few_clusters_are_told():
    questions = [question(i, i // 20) for i in range(160)]
    with pytest.raises(ExperimentError, match=rf"140 questions in 7 clusters .* in {MIN_CLUSTERS} clusters"):
        race_questions(questions, experiment(clusters="tag:item-", race={"rounds": [10]}))


@pytest.mark.parametrize("rounds", [[5, 20], [40, 40], [40, 20]])
def test_rounds_that_do_not_grow_are_refused(rounds):
    with pytest.raises(ValueError, match="must grow from round to round|greater than or equal to 10"):
        RaceConfig(rounds=rounds)


@pytest.mark.parametrize(("design", "n_rounds"), [("staged", 2), ("optuna", 1), ("racing", 2)])
def test_each_stage_of_a_staged_search_chooses_on_the_same_questions(design, n_rounds):
    factors = {"retrieval.mode": ["dense", "bm25"], "retrieval.base_k": [20, 9], "rerank.final_k": [5, 3]}
    given = experiment(design=design, factors=factors, n=4 if design == "optuna" else None)
    rounds = race_questions([question(number) for number in range(120)], given).rounds
    assert len(rounds) == n_rounds and (design == "racing") == (len(set(rounds)) > 1)
