import math

import ir_measures
import pytest
from factories import make_evidence, make_failed_trace, make_hit, make_question, make_trace
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.errors import ConfigError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.registry import cutoff, parse_name, text_budget
from rag_lab.evaluation.retrieval import covers
from rag_lab.records import Evidence

MEASURES = ("ndcg", "mrr", "map", "recall", "precision", "success", "evidence_recall")


def value(measure, trace):
    (score,) = evaluate([trace], [f"retrieval.{measure}"])
    return score.value


def trace_of(pages, evidence_pages):
    evidence = tuple(make_evidence(page) for page in evidence_pages)
    return make_trace(make_question(evidence=evidence), ranked=tuple(make_hit(page) for page in pages))


@pytest.mark.parametrize(
    ("evidence", "hit", "expected"),
    [
        (make_evidence(1, 10, 20), make_hit(1, 15, 40), True),
        (make_evidence(1, 10, 20), make_hit(1, 20, 40), False),  # half open: touching is not overlapping
        (make_evidence(1, 10, 20), make_hit(1, 0, 10), False),
        (make_evidence(1, 10, 20), make_hit(2, 10, 20), False),
        (make_evidence(None, 10, 20), make_hit(None, 0, 100), True),
        (make_evidence(1, 10, 20), make_hit(1, 10, 20, source="other.pdf"), False),
        (make_evidence(3), make_hit(3, 50, 60), True),
        (make_evidence(3), make_hit(4, 50, 60), False),
        (make_evidence(None), make_hit(4, 50, 60), True),
        (make_evidence(None), make_hit(4, source="other.pdf"), False),
    ],
)
def test_covering(evidence, hit, expected):
    assert covers(hit, evidence) is expected


def test_of_a_split_quote_either_parent_counts():
    quote = make_evidence(1, 90, 110)
    for start, end in ((0, 100), (100, 200)):
        trace = make_trace(make_question(evidence=(quote,)), ranked=(make_hit(1, start, end),))
        assert value("evidence_recall@1", trace) == 1


def test_written_arithmetic():
    trace = trace_of(pages=[9, 1, 8, 2], evidence_pages=[1, 2, 3])
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert value("ndcg@10", trace) == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / ideal)
    assert value("ndcg@3", trace) == pytest.approx((1 / math.log2(3)) / ideal)
    assert value("mrr@10", trace) == pytest.approx(1 / 2)
    assert value("mrr@1", trace) == 0
    assert value("map@10", trace) == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert value("recall@2", trace) == pytest.approx(1 / 3)
    assert value("evidence_recall@4", trace) == pytest.approx(2 / 3)
    assert value("precision@4", trace) == pytest.approx(2 / 4)
    assert value("precision@10", trace) == pytest.approx(2 / 10)
    assert value("success@1", trace) == 0
    assert value("success@2", trace) == 1


def test_a_hit_that_covers_two_items_finds_both():
    evidence = (make_evidence(1, 0, 10), make_evidence(1, 50, 60), make_evidence(2, 0, 10))
    trace = make_trace(make_question(evidence=evidence), ranked=(make_hit(1, 0, 100), make_hit(2, 500, 600)))
    assert value("evidence_recall@1", trace) == pytest.approx(2 / 3)
    assert value("ndcg@10", trace) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_a_second_hit_on_the_same_evidence_is_not_counted_again():
    trace = make_trace(make_question(evidence=(make_evidence(1),)), ranked=(make_hit(1, 0, 100), make_hit(1, 100, 200)))
    assert value("precision@2", trace) == pytest.approx(1 / 2)
    assert value("ndcg@10", trace) == 1


def test_measures_by_the_names_of_ir_measures():
    trace = trace_of(pages=[9, 1, 8, 2], evidence_pages=[1, 2, 3])
    assert value("RR", trace) == pytest.approx(1 / 2)
    assert value("RR@1", trace) == 0
    assert value("Rprec", trace) == pytest.approx(1 / 3)
    assert value("SetF", trace) == pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3))
    assert value("IPrec@0.5", trace) == pytest.approx(2 / 4)
    # Bpref: of the three relevant, the second hit has one of the two other hits above it, the fourth has both
    assert value("Bpref", trace) == pytest.approx(((1 - 1 / 2) + (1 - 2 / 2)) / 3)
    assert [value(count, trace) for count in ("NumRel", "NumRet", "NumRet(rel=1)")] == [3, 4, 2]
    assert value("Judged@4", trace) == 1
    for ours, theirs in (("ndcg@3", "nDCG@3"), ("map@4", "AP@4"), ("recall@2", "Recall@2")):
        assert value(ours, trace) == value(theirs, trace)
    # gdeval's formulation gives the same gain to binary labels: 2 ** 1 - 1
    assert value("nDCG(dcg='exp-log2')@4", trace) == pytest.approx(value("ndcg@4", trace), abs=1e-5)


def test_rank_biased_precision_by_hand():
    pytest.importorskip("cwl")
    trace = trace_of(pages=[9, 1, 8, 2], evidence_pages=[1, 2, 3])
    assert value("RBP(p=0.8, rel=1)", trace) == pytest.approx((1 - 0.8) * (0.8**1 + 0.8**3))


def test_what_breaks_behind_a_measure_costs_that_measure_alone(monkeypatch):
    import ir_measures

    def breaks(*_):
        raise OSError("no perl\nhere")

    monkeypatch.setattr(ir_measures, "iter_calc", breaks)
    (score,) = evaluate([trace_of([1], [1])], ["retrieval.ERR@10"])
    assert (score.status, score.reason) == ("failed", "ir_measures gave up: OSError: no perl here")


def test_an_empty_ranking_scores_zero():
    assert [value(name, trace_of([], [1])) for name in ("Accuracy", "Bpref", "RR@3")] == [0, 0, 0]
    assert [value(f"{measure}@5", trace_of([], [1])) for measure in MEASURES] == [0] * len(MEASURES)
    by_text = [value(f"{name}@800tokens", trace_of([], [1])) for name in ("evidence_recall", "recall", "success")]
    assert by_text == [0, 0, 0]


def test_questions_that_share_an_id_are_kept_apart():
    scores = evaluate([trace_of([1], [1]), trace_of([2], [1])], ["retrieval.mrr@5"])
    assert [score.value for score in scores] == [1, 0]


rankings = st.lists(st.integers(1, 12), unique=True, max_size=10)
evidences = st.lists(st.integers(1, 12), unique=True, min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(rankings, evidences, st.integers(1, 12))
def test_against_an_independent_formula(pages, evidence, k):
    trace = trace_of(pages, evidence)
    gains = [page in evidence for page in pages[:k]]
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(evidence)) + 1))
    dcg = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
    assert value(f"ndcg@{k}", trace) == pytest.approx(dcg / ideal)
    assert value(f"mrr@{k}", trace) == pytest.approx(1 / (gains.index(True) + 1) if True in gains else 0)
    assert value(f"precision@{k}", trace) == pytest.approx(sum(gains) / k)
    assert value(f"recall@{k}", trace) == pytest.approx(sum(gains) / len(evidence))
    assert value(f"evidence_recall@{k}", trace) == pytest.approx(sum(gains) / len(evidence))
    assert value(f"success@{k}", trace) == float(any(gains))


spans = st.tuples(st.integers(1, 3), st.integers(0, 5), st.integers(1, 4)).map(lambda t: (t[0], t[1], t[1] + t[2]))


@settings(max_examples=60, deadline=None)
@given(st.lists(spans, max_size=8, unique=True), st.lists(spans, min_size=1, max_size=4))
def test_values_stay_between_zero_and_one_and_recall_never_falls(hits, evidence):
    question = make_question(evidence=tuple(make_evidence(*span) for span in evidence))
    trace = make_trace(question, ranked=tuple(make_hit(*span) for span in hits))
    for measure in MEASURES:
        by_k = [value(f"{measure}@{k}", trace) for k in (1, 2, 4, 8)]
        assert all(0 <= each <= 1 for each in by_k)
        if measure in ("recall", "evidence_recall", "success", "mrr"):
            assert by_k == sorted(by_k)


@given(evidences, st.integers(1, 10))
@settings(max_examples=20, deadline=None)
def test_the_ideal_ranking_scores_one(evidence, k):
    trace = trace_of(evidence, evidence)
    assert value(f"ndcg@{k}", trace) == pytest.approx(1)
    assert value("map@10", trace) == pytest.approx(1)


def linear_dcg(grades, k):
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades[:k], 1))


grades_by_page = st.dictionaries(st.integers(1, 12), st.integers(1, 5), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(rankings, grades_by_page, st.integers(1, 12), st.integers(2, 7))
def test_the_gain_of_a_graded_item_is_its_grade_and_the_others_take_grades_alike(pages, grades, k, factor):
    hits = tuple(make_hit(page) for page in pages)

    def trace(times):
        items = tuple(make_evidence(page, grade=grade * times) for page, grade in grades.items())
        return make_trace(make_question(evidence=items), ranked=hits)

    ideal = linear_dcg(sorted(grades.values(), reverse=True), k)
    expected = linear_dcg([grades.get(page, 0) for page in pages], k) / ideal
    assert value(f"ndcg@{k}", trace(1)) == pytest.approx(expected)
    assert value(f"ndcg@{k}", trace(factor)) == pytest.approx(expected)  # a ratio of grades, whatever their unit
    for measure in ("mrr", "recall", "precision", "success", "evidence_recall"):
        assert value(f"{measure}@{k}", trace(1)) == value(f"{measure}@{k}", trace_of(pages, list(grades)))


def test_the_exponential_gain_has_the_name_of_ir_measures():
    items = (make_evidence(1, grade=3), make_evidence(2, grade=1))
    trace = make_trace(make_question(evidence=items), ranked=(make_hit(2), make_hit(1)))
    ideal = (2**3 - 1) + (2**1 - 1) / math.log2(3)
    assert value("nDCG(dcg='exp-log2')@2", trace) == pytest.approx((1 + 7 / math.log2(3)) / ideal, abs=1e-5)


files = st.integers(1, 6).map("{}.pdf".format)
page_hits = st.lists(st.tuples(files, st.integers(1, 3), st.integers(0, 2)), max_size=12, unique=True)
OF_ALL = ("nDCG@3", "nDCG@10", "RR@5", "AP@10", "R@2", "P@4", "Success@1", "Rprec", "Bpref")


def ranked_by(places, evidence):
    """Return a trace whose hits stand at (file, page, a third of the page)."""
    hits = tuple(make_hit(page, 100 * part, 100 * part + 100, source=source) for source, page, part in places)
    return make_trace(make_question(evidence=tuple(evidence)), ranked=hits)


def by_ir_measures(measure, places, relevant):
    """Return what ir_measures makes of a list of places, each of which stands in it once."""
    parsed = ir_measures.parse_measure(measure)
    if not places:
        return 0
    qrels = {"q": dict.fromkeys(map(str, places), 0) | dict.fromkeys(map(str, relevant), 1)}
    run = {"q": {str(place): float(-rank) for rank, place in enumerate(places)}}
    return ir_measures.calc_aggregate([parsed], qrels, run)[parsed]


@settings(max_examples=60, deadline=None)
@given(page_hits, st.lists(files, min_size=1, max_size=3, unique=True))
def test_where_labels_name_files_a_rank_is_a_file_be_hits_children_pages_or_files(children, labelled):
    labels = [Evidence(source) for source in labelled]
    pages = list(dict.fromkeys((source, page, 0) for source, page, _ in children))
    documents = [place for rank, place in enumerate(pages) if place[0] not in {source for source, *_ in pages[:rank]}]
    for measure in OF_ALL:
        expected = by_ir_measures(measure, [source for source, *_ in documents], labelled)
        found = [value(measure, ranked_by(places, labels)) for places in (children, pages, documents)]
        assert found == pytest.approx([expected] * 3), measure


@settings(max_examples=60, deadline=None)
@given(page_hits, st.lists(st.tuples(files, st.integers(1, 3)), min_size=1, max_size=3, unique=True))
def test_where_labels_name_pages_a_rank_is_a_page_be_hits_children_or_pages(children, labelled):
    labels = [Evidence(source, page) for source, page in labelled]
    pages = list(dict.fromkeys((source, page, 0) for source, page, _ in children))
    for measure in OF_ALL:
        expected = by_ir_measures(measure, [(source, page) for source, page, _ in pages], labelled)
        assert [value(measure, ranked_by(places, labels)) for places in (children, pages)] == pytest.approx(
            [expected] * 2
        ), measure


def test_where_a_quote_is_known_every_hit_takes_a_rank_and_beside_it_a_whole_file_counts_once():
    quote = make_evidence(1, 200, 250, quote="180 degrees", source="a.pdf")
    children = ranked_by([("b.pdf", 1, 0), ("b.pdf", 1, 1), ("a.pdf", 1, 0), ("a.pdf", 1, 2)], [quote])
    assert value("mrr@10", children) == 1 / 4
    trace = ranked_by([("b.pdf", 1, 0), ("b.pdf", 2, 0), ("a.pdf", 1, 2)], [quote, Evidence("b.pdf")])
    assert value("ndcg@2", trace) == 1


def text_value(measure, hits, evidence):
    return value(measure, make_trace(make_question(evidence=tuple(evidence)), ranked=tuple(hits)))


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
    assert [text_value("evidence_recall@3", hits, evidence) for hits in (pages, children)] == [1, 1]
    # 300 tokens are 1,200 characters: one page, or three children
    assert text_value("evidence_recall@300tokens", pages, evidence) == pytest.approx(1 / 3)
    assert text_value("evidence_recall@300tokens", children, evidence) == 1
    assert text_value("evidence_recall@310tokens", pages, evidence) == pytest.approx(2 / 3)  # 40 characters of page 2
    assert text_value("evidence_recall@625tokens", pages, evidence) == pytest.approx(2 / 3)  # page 3 is cut before it


@pytest.mark.parametrize(("n_tokens", "expected"), [(100, 1.0), (149, 0.0), (150, 1.0), (300, 1.0)])
def test_of_a_page_without_a_quote_at_least_half_has_to_be_read(n_tokens, expected):
    hits = [make_hit(9, 0, 400), make_hit(1, 0, 400)] if n_tokens >= 149 else [make_hit(1, 0, 400)]
    assert text_value(f"evidence_recall@{n_tokens}tokens", hits, [make_evidence(1)]) == expected


def test_what_was_judged_by_its_file_is_cut_alike():
    hits = [make_hit(None, 0, 1000, source="a.txt")]
    item = make_evidence(None, source="a.txt")
    assert [text_value(f"success@{n}tokens", hits, [item]) for n in (124, 125)] == [0, 1]


def test_units_of_recall_are_those_of_the_whole_ranking():
    evidence = [make_evidence(1, 0, 10), make_evidence(1, 50, 60), make_evidence(2, 0, 10)]
    hits = [make_hit(1, 0, 100), make_hit(2, 500, 600)]
    assert text_value("recall@10tokens", hits, evidence) == pytest.approx(1 / 2)
    assert text_value("evidence_recall@10tokens", hits, evidence) == pytest.approx(1 / 3)
    assert text_value("evidence_recall@25tokens", hits, evidence) == pytest.approx(2 / 3)
    assert text_value("recall@25tokens", hits, evidence) == pytest.approx(1 / 2)


text_spans = st.tuples(st.integers(1, 3), st.integers(0, 40), st.integers(1, 40)).map(
    lambda t: (t[0], t[1], t[1] + t[2])
)


@settings(max_examples=80, deadline=None)
@given(st.lists(text_spans, max_size=6), st.lists(text_spans, min_size=1, max_size=3, unique=True), st.integers(1, 60))
def test_against_a_reader_of_characters(hits, evidence, n_tokens):
    ranked = [make_hit(*span) for span in hits]
    characters, most = read_by_hand(ranked, 4 * n_tokens)
    quoted = [make_evidence(*span) for span in evidence]
    seen = [any((item.source, item.page, n) in characters for n in range(item.start, item.end)) for item in quoted]
    assert text_value(f"evidence_recall@{n_tokens}tokens", ranked, quoted) == pytest.approx(sum(seen) / len(seen))
    assert text_value(f"success@{n_tokens}tokens", ranked, quoted) == float(any(seen))
    pages = [make_evidence(page) for page in sorted({span[0] for span in evidence})]
    seen = [any(hit.page == item.page for hit in most) for item in pages]
    assert text_value(f"evidence_recall@{n_tokens}tokens", ranked, pages) == pytest.approx(sum(seen) / len(seen))


@settings(max_examples=40, deadline=None)
@given(st.lists(text_spans, max_size=6), st.lists(text_spans, min_size=1, max_size=3))
def test_more_text_never_finds_less_and_all_of_it_finds_what_the_ranks_find(hits, evidence):
    ranked, items = [make_hit(*span) for span in hits], [make_evidence(*span) for span in evidence]
    for measure in ("evidence_recall", "recall", "success"):
        by_text = [text_value(f"{measure}@{n}tokens", ranked, items) for n in (1, 3, 10, 30, 100)]
        assert by_text == sorted(by_text)
        assert by_text[-1] == pytest.approx(text_value(f"{measure}@10", ranked, items))


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


def repeats_of(name, *pages):
    question = make_question(name, evidence=())  # it needs no labels
    found = (tuple(make_hit(page) for page in one) for one in pages)
    return [make_trace(question, repeat=repeat, ranked=ranked) for repeat, ranked in enumerate(found)]


def stability(traces, k):
    return evaluate(traces, [f"retrieval.stability@{k}"])


@given(st.lists(st.lists(st.integers(0, 6), unique=True, max_size=6), min_size=2, max_size=4), st.integers(1, 7))
def test_stability_is_the_mean_jaccard_index_over_pairs_of_repeats(pages, k):
    scores = stability(repeats_of("q", *pages), k)
    marks = [[page in one[:k] for page in range(7)] for one in pages]
    indices = []
    for first in range(len(marks)):
        for second in range(first):
            both = sum(map(min, marks[first], marks[second]))
            either = sum(map(max, marks[first], marks[second]))
            indices.append(both / either if either else 1)
    (found,) = {score.value for score in scores}
    assert found == pytest.approx(sum(indices) / len(indices))
    assert 0 <= found <= 1


def test_stability_is_of_each_question_and_leaves_out_what_failed(tmp_path):
    first, second, third = repeats_of("a", [1, 2], [2, 3], [1, 2])
    failed = make_failed_trace("retrieve", question=first.question, repeat=3)
    alone, other = repeats_of("b", [1]), repeats_of("c", [1, 2, 9], [2, 1])
    asked = [first, *alone, other[0], failed, third, second, other[1]]
    scores = stability(asked, 2)
    assert [(score.question_id, score.repeat) for score in scores] == [
        (t.question.question_id, t.repeat) for t in asked
    ]
    by_hand = {"a": (1 / 3 + 1 + 1 / 3) / 3, "c": 1}  # the order of hits does not count, nor what stands behind the cut
    for score in scores:
        if score.repeat == 3:
            assert (score.status, score.reason) == ("failed", "retrieve failed: out of memory")
        elif score.question_id == "b":
            assert score.status == "not_applicable" and "set repeats to 2" in score.reason
        else:
            assert score.value == pytest.approx(by_hand[score.question_id])
    kept = [evaluate(asked, ["retrieval.stability@2"], memory=tmp_path / "scores.sqlite") for _ in range(2)]
    assert kept == [scores, scores]
