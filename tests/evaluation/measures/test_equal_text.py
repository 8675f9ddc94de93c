"""Units of different size at equal text, against a reader that goes through the ranking character by character."""

import pytest
from factories import make_evidence, make_hit, make_question, make_trace
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.errors import ConfigError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.registry import cutoff, parse_name, text_budget


def value(measure, hits, evidence):
    trace = make_trace(make_question(evidence=tuple(evidence)), ranked=tuple(hits))
    (score,) = evaluate([trace], [f"retrieval.{measure}"])
    return score.value


def read_by_hand(hits, budget):
    """Return the characters that were read, and the hits of which at least half was."""
    characters, most = set(), []
    for hit in hits:
        own = [(hit.source, hit.page, place) for place in range(hit.start, hit.end)][: max(budget, 0)]
        budget -= hit.end - hit.start
        characters |= set(own)
        most += [hit] if own and 2 * len(own) >= hit.end - hit.start else []
    return characters, most


def test_small_and_large_units_are_read_to_the_same_border():
    evidence = [make_evidence(1, 100, 140), make_evidence(2, 0, 40), make_evidence(3, 100, 120)]
    pages = [make_hit(page, 0, 1200) for page in (1, 2, 3)]
    children = [make_hit(page, 0, 400) for page in (1, 2, 3)]
    assert [value("evidence_recall@3", hits, evidence) for hits in (pages, children)] == [1, 1]
    # 300 tokens are 1,200 characters: one page, or three children
    assert value("evidence_recall@300tokens", pages, evidence) == pytest.approx(1 / 3)
    assert value("evidence_recall@300tokens", children, evidence) == 1
    assert value("evidence_recall@310tokens", pages, evidence) == pytest.approx(2 / 3)  # 40 characters of page 2
    assert value("evidence_recall@625tokens", pages, evidence) == pytest.approx(2 / 3)  # page 3 is cut before its quote


@pytest.mark.parametrize(("n_tokens", "expected"), [(100, 1.0), (149, 0.0), (150, 1.0), (300, 1.0)])
def test_of_a_page_without_a_quote_at_least_half_has_to_be_read(n_tokens, expected):
    hits = [make_hit(9, 0, 400), make_hit(1, 0, 400)] if n_tokens >= 149 else [make_hit(1, 0, 400)]
    assert value(f"evidence_recall@{n_tokens}tokens", hits, [make_evidence(1)]) == expected


def test_what_was_judged_by_its_file_is_cut_alike():
    hits = [make_hit(None, 0, 1000, source="a.txt")]
    item = make_evidence(None, source="a.txt")
    assert [value(f"success@{n}tokens", hits, [item]) for n in (124, 125)] == [0, 1]


def test_units_of_recall_are_those_of_the_whole_ranking():
    evidence = [make_evidence(1, 0, 10), make_evidence(1, 50, 60), make_evidence(2, 0, 10)]
    hits = [make_hit(1, 0, 100), make_hit(2, 500, 600)]
    assert value("recall@10tokens", hits, evidence) == pytest.approx(1 / 2)
    assert value("evidence_recall@10tokens", hits, evidence) == pytest.approx(1 / 3)
    assert value("evidence_recall@25tokens", hits, evidence) == pytest.approx(2 / 3)
    assert value("recall@25tokens", hits, evidence) == pytest.approx(1 / 2)


def test_an_empty_ranking_has_read_nothing():
    for measure in ("evidence_recall", "recall", "success"):
        assert value(f"{measure}@800tokens", [], [make_evidence(1)]) == 0


spans = st.tuples(st.integers(1, 3), st.integers(0, 40), st.integers(1, 40)).map(lambda t: (t[0], t[1], t[1] + t[2]))


@settings(max_examples=80, deadline=None)
@given(st.lists(spans, max_size=6), st.lists(spans, min_size=1, max_size=3, unique=True), st.integers(1, 60))
def test_against_a_reader_of_characters(hits, evidence, n_tokens):
    ranked = [make_hit(*span) for span in hits]
    characters, most = read_by_hand(ranked, 4 * n_tokens)
    quoted = [make_evidence(*span) for span in evidence]
    seen = [any((item.source, item.page, n) in characters for n in range(item.start, item.end)) for item in quoted]
    assert value(f"evidence_recall@{n_tokens}tokens", ranked, quoted) == pytest.approx(sum(seen) / len(seen))
    assert value(f"success@{n_tokens}tokens", ranked, quoted) == float(any(seen))
    pages = [make_evidence(page) for page in sorted({span[0] for span in evidence})]
    seen = [any(hit.page == item.page for hit in most) for item in pages]
    assert value(f"evidence_recall@{n_tokens}tokens", ranked, pages) == pytest.approx(sum(seen) / len(seen))


@settings(max_examples=40, deadline=None)
@given(st.lists(spans, max_size=6), st.lists(spans, min_size=1, max_size=3))
def test_more_text_never_finds_less_and_all_of_it_finds_what_the_ranks_find(hits, evidence):
    ranked, items = [make_hit(*span) for span in hits], [make_evidence(*span) for span in evidence]
    for measure in ("evidence_recall", "recall", "success"):
        by_text = [value(f"{measure}@{n}tokens", ranked, items) for n in (1, 3, 10, 30, 100)]
        assert by_text == sorted(by_text)
        assert by_text[-1] == pytest.approx(value(f"{measure}@10", ranked, items))


def test_a_budget_is_no_cut_off_by_rank():
    assert text_budget("retrieval.evidence_recall@800tokens") == 800
    assert cutoff("retrieval.evidence_recall@800tokens") is None
    assert text_budget("retrieval.evidence_recall@8") is None and text_budget("nobody.knows@8tokens") is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("retrieval.success@0tokens", "reads an impossible number of tokens: allowed is 1 to 1,000,000"),
        (
            "retrieval.ndcg@800tokens",
            "cannot be cut by tokens: allowed are retrieval.evidence_recall, retrieval.recall",
        ),
        ("retrieval.recall@tokens", "cannot be cut by tokens"),
    ],
)
def test_what_cannot_be_read_is_said(name, reason):
    with pytest.raises(ConfigError, match=reason):
        parse_name(name)
