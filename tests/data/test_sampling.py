from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.data.sampling import cluster_problem, cluster_proposal, clusters_of, clusters_sentence, stratified
from rag_lab.errors import ConfigError
from rag_lab.records import QUERY_CLASSES, Evidence, Question

QUESTIONS = [
    Question("a", "?", evidence=(Evidence("x.pdf", 1), Evidence("y.pdf", 2)), tags=("easy", "item-1", "item-2")),
    Question("b", "?", evidence=(Evidence("x.pdf", 7),), tags=("item-1",)),
    Question("c", "?", answerable=False, tags=("easy",)),
]


def test_by_the_document_of_the_first_evidence():
    assert clusters_of(QUESTIONS, "document") == {"a": "x.pdf", "b": "x.pdf"}


def test_by_a_tag():
    assert clusters_of(QUESTIONS, "tag:item-") == {"a": "item-1", "b": "item-1"}
    assert clusters_of(QUESTIONS, "tag:easy") == {"a": "easy", "c": "easy"}


def test_independent_questions_are_not_clustered():
    assert clusters_of(QUESTIONS, "none") is None


@pytest.mark.parametrize("rule", ["", "documents", "tag:", "source"])
def test_an_unknown_rule_is_one_sentence(rule):
    with pytest.raises(ConfigError, match="Unknown clusters .*`document`"):
        clusters_of(QUESTIONS, rule)


def test_a_rule_that_matches_nothing_is_a_problem_that_names_what_there_is():
    assert cluster_problem(QUESTIONS, "none") == cluster_problem(QUESTIONS, "tag:easy") == ""
    typo = cluster_problem(QUESTIONS, "tag:itme-")
    assert typo.startswith("clusters: 'tag:itme-' puts none of 3 questions into a cluster")
    assert "their tags are easy, item-1 and item-2; give `none`, `document`" in typo
    assert "no question has evidence" in cluster_problem(QUESTIONS[2:], "document")
    assert "they have no tags" in cluster_problem([Question("d", "?")], "tag:x")


def test_questions_in_clusters_and_in_none_are_counted():
    told = clusters_sentence(["a", "b", "c"], {"a": "x.pdf", "b": "x.pdf", "z": "y.pdf"}, "document")
    assert told.startswith("2 of 3 questions are in 1 cluster (document)")
    assert told.endswith("; 1 other stands alone.")
    assert "alone" not in clusters_sentence(["a", "b"], {"a": "x", "b": "y"}, "tag:x")
    assert clusters_sentence(["c"], {"a": "x.pdf"}, "document").startswith("No question is in a cluster (document)")


def on_documents(*sizes):
    return [
        Question(f"{document}-{n}", "?", evidence=(Evidence(f"{document}.pdf"),))
        for document, size in enumerate(sizes)
        for n in range(size)
    ]


def test_many_questions_on_few_documents_are_proposed_as_clusters():
    told = cluster_proposal(on_documents(*[40] * 19, 48), "none")
    assert told.startswith("808 questions stand on 20 documents, and none are declared as clusters")
    assert told.endswith("add `clusters: document` to the experiment.")
    assert cluster_proposal(on_documents(*[40] * 20), "document") == cluster_proposal(on_documents(40), "tag:x") == ""


def test_a_few_questions_a_document_are_not():
    assert cluster_proposal(on_documents(*[5] * 20), "none")
    assert cluster_proposal(on_documents(*[4] * 20), "none") == ""
    assert cluster_proposal(on_documents(*[1] * 30, 20), "none")  # most questions stand on one document
    assert cluster_proposal([], "none") == cluster_proposal([Question("a", "?")] * 9, "none") == ""


def test_clusters_that_could_show_nothing_are_not_proposed_and_what_that_means_is_said():
    assert cluster_proposal(on_documents(*[20] * 5), "none").endswith(
        "holds for other questions on these documents, and not for other documents."
    )
    assert "on this document, and not" in cluster_proposal(on_documents(20), "none")


strata = st.tuples(st.none() | st.sampled_from(QUERY_CLASSES), st.booleans())
questions = st.lists(strata, max_size=40).map(
    lambda kinds: [Question(f"q{n}", "?", query_class=kind, answerable=ok) for n, (kind, ok) in enumerate(kinds)]
)


@settings(max_examples=60, deadline=None)
@given(questions, st.integers(0, 3), st.randoms(use_true_random=False))
def test_every_sample_is_proportional_nested_and_blind_to_order(asked: list[Question], seed: int, random: Any) -> None:
    whole = stratified(asked, len(asked), seed)
    assert sorted(whole) == sorted(question.question_id for question in asked)
    kinds = {question.question_id: (question.query_class, question.answerable) for question in asked}
    sizes = Counter(kinds.values())
    for n in range(len(asked) + 1):
        sample = stratified(random.sample(asked, len(asked)), n, seed)
        assert sample == whole[:n]
        taken = Counter(kinds[name] for name in sample)
        assert all(abs(taken[kind] - n * size / len(asked)) < 1 for kind, size in sizes.items())


def test_small_and_large() -> None:
    asked = [Question(f"q{n}", "?") for n in range(3)]
    assert stratified(asked, 0, 0) == []
    assert stratified([], 5, 0) == []
    assert len(stratified(asked, 10, 0)) == 3


def test_the_seed_decides_and_a_new_question_disturbs_little() -> None:
    asked = [Question(f"q{n}", "?") for n in range(50)]
    assert stratified(asked, 10, 0) != stratified(asked, 10, 1)
    grown = stratified([*asked, Question("new", "?")], 10, 0)
    assert len(set(grown) & set(stratified(asked, 10, 0))) >= 9
