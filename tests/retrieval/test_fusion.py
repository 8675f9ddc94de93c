from hypothesis import given
from hypothesis import strategies as st

from rag_lab.records import Hit
from rag_lab.retrieval.fusion import reciprocal_rank_fusion

ids = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


def ranked(names, step="dense"):
    return [Hit(name, f"{name}/0", "f", None, 0, 1, 1 / (i + 1), {step: 1 / (i + 1)}) for i, name in enumerate(names)]


def order(hits):
    return [hit.parent_id for hit in hits]


def test_the_formula():
    fused = reciprocal_rank_fusion([ranked("ab"), ranked("bc", "hyde")], limit=9)
    assert order(fused) == ["b", "a", "c"]
    assert fused[0].score == 1 / (60 + 1) + 1 / (60 + 2)
    assert fused[0].scores == {"dense": 1 / 2, "hyde": 1, "rrf": fused[0].score}


@given(ids)
def test_fusing_a_list_with_nothing_or_itself_keeps_its_order(names):
    assert order(reciprocal_rank_fusion([ranked(names), []], 99)) == names
    assert order(reciprocal_rank_fusion([ranked(names), ranked(names)], 99)) == names


@given(ids, ids)
def test_the_order_of_the_lists_does_not_matter(first, second):
    one = reciprocal_rank_fusion([ranked(first), ranked(second, "hyde")], 99)
    other = reciprocal_rank_fusion([ranked(second, "hyde"), ranked(first)], 99)
    assert order(one) == order(other)
    assert [hit.score for hit in one] == [hit.score for hit in other]


@given(ids, ids, st.integers(1, 9))
def test_no_duplicates_and_never_more_than_the_limit(first, second, limit):
    fused = order(reciprocal_rank_fusion([ranked(first), ranked(second)], limit))
    assert len(fused) == len(set(fused)) == min(limit, len({*first, *second}))


@given(ids, ids)
def test_only_ranks_matter(first, second):
    scaled = [Hit(h.parent_id, h.chunk_id, "f", None, 0, 1, h.score**3 * 100) for h in ranked(first)]
    assert order(reciprocal_rank_fusion([ranked(first), ranked(second)], 99)) == order(
        reciprocal_rank_fusion([scaled, ranked(second)], 99)
    )
