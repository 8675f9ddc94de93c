from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.data.sampling import stratified
from rag_lab.records import QUERY_CLASSES, Question

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
