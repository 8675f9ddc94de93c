"""What became of evidence: losses planted in real pipelines, and every state of traces made by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_dataset import write_dataset

from rag_lab import Pipeline
from rag_lab.comparison.tables.evidence import STATES, fates, in_reach, unindexed
from rag_lab.data.labels import distinct
from rag_lab.records import Answer, Citation, Evidence, Hit, Passage, Question, StageRecord, Trace
from rag_lab.stages.stage import OFF

PLAIN = {"retrieval.mode": "bm25", "query.rewrite": "none", "query.hyde": "none", "rerank.final_k": 2}
MANY = 12  # files beside those of the small dataset, each with words of its questions


def by_first(question, passages):
    """An answer that cites the first passage that it read."""
    return Answer("It is said there.", (Citation(1, "", None),))


def reversing(question, passages):
    return list(range(len(passages)))


@pytest.fixture
def base(tmp_path):
    path = write_dataset(tmp_path / "data")
    for number in range(MANY):
        text = f"It means pressure {number}, alarm and Fridays. " + "Other words stand beside it here. " * 8
        (path / "corpus" / f"more{number}.txt").write_text(text)
    return Pipeline(path, home=tmp_path / "home").set(PLAIN).replace(reader=by_first)


def ends(pipeline):
    """The states of all labelled evidence, and what a run without any loss has of them."""
    k, questions = pipeline.config.rerank.final_k, pipeline.locate(pipeline.dataset.questions)[0]
    missing = unindexed(pipeline.index.chunks.spans.values(), questions)
    traces = pipeline.run()
    return [state for trace in traces for state in fates(trace, k, missing.get(trace.question.question_id, ()))]


def early(query, k):
    return [f"It means pressure {number}." for number in range(min(k, MANY))]


def dropping(question, passages):
    return [1.0 if "Other" in passage else None for passage in passages]


def last_two(question, passages, scores):
    return [len(passages) - 1, len(passages) - 2]


def first(question, passages, scores):
    return [0]


def uncited(question, passages):
    return Answer("It is so.")


def broken(*arguments):
    raise RuntimeError("out of paper")


LOSSES = [
    ({}, "used"),
    ({"search": early}, "not_found"),
    ({"rerank": reversing}, "reranking"),
    ({"rerank": dropping}, "reranking"),
    ({"select": last_two}, "selection"),
    ({"select": first}, "used"),
    ({"select": first, "rerank": reversing}, "reranking"),
    ({"reader": uncited}, "unused"),
    ({"search": broken}, "not_found"),  # a stage that fails has lost what came to it
    ({"rerank": broken}, "reranking"),
    ({"select": broken}, "selection"),
    ({"context": broken}, "budget"),
    ({"reader": broken}, "not_answered"),
]


def test_the_stage_that_loses_the_evidence_is_named(base):
    assert [ends(base.replace(**parts)) for parts, _ in LOSSES] == [[state] * 3 for _, state in LOSSES]


def test_a_page_that_is_not_in_the_index_is_not_indexed(base):
    corpus = base.dataset.path / "corpus"
    (corpus / "oven.txt").unlink()
    (corpus / "canteen.txt").write_text(" ")
    assert ends(base) == ["used", "not_indexed", "not_indexed"]


@pytest.fixture
def second(base):
    """Another passage stands first: the evidence is the second candidate of each question."""

    def turned(lists, k):
        (found,) = lists.values()
        return [(found[2][0], 3.0), (found[0][0], 2.0), *((name, 1 / n) for n, (name, _) in enumerate(found[3:], 1))]

    return base.replace(fusion=turned)


def test_a_merge_limit_of_one_loses_the_second(second):
    assert ends(second) == ["unused"] * 3
    assert ends(second.set("rerank.input_limit", 1)) == ["merging"] * 3


def test_a_budget_of_one_passage_loses_the_second(second):
    def only_one(question, passages):
        return [passages[0], *[None] * (len(passages) - 1)]

    assert ends(second.set("rerank.final_k", 1)) == ["budget"] * 3
    assert ends(second.replace(context=only_one)) == ["budget"] * 3


def test_a_long_passage_that_is_cut_before_the_quote_is_lost_in_the_budget(base):
    (base.dataset.path / "corpus" / "press.md").write_text(
        "The relief valve of P-1 opens at a pressure: at what? "
        + "Other words stand here. " * 60
        + "It opens at 290 bar."
    )
    narrow = base.set({"rerank.final_k": 1, "answer.context_tokens": 60, "corpus.chunk_size": 200})
    assert ends(narrow)[0] == "budget"
    assert ends(narrow.set("answer.context_tokens", 1200))[0] == "used"


def test_without_an_answer_nobody_says_whether_it_is_used(base):
    k, asked = base.config.rerank.final_k, base.dataset.questions
    for read in (None, lambda question: ()):  # with a context that is shown, and without any
        traces = base.run(asked, answer=(), read=read)
        assert [state for trace in traces for state in fates(trace, k)] == ["not_answered"] * 3


def hit(page):
    return Hit(f"p{page}", f"c{page}", "a.pdf", page, 0, 100, 1.0)


def passage(number, page):
    return Passage(number, f"p{page}", "a.pdf", page, 0, 100, "words")


def trace_of(candidates, ranked, **changes):
    asked = Question("q", "?", evidence=(Evidence("a.pdf", 1),))
    found = Trace(asked, hits={"dense": tuple(map(hit, candidates))}, candidates=tuple(map(hit, candidates)))
    ran = tuple(StageRecord(name) for name in ("merge", "rerank", "context", "generate", "parse"))
    given = {"ranked": tuple(map(hit, ranked)), "answer": Answer("x"), "stages": ran}
    return replace(found, **(given | changes))


@pytest.mark.parametrize(
    ("candidates", "ranked", "state"),
    [
        ([1, 2, 3], [2, 3, 1], "reranking"),  # taken from the first two
        ([1, 2, 3], [2, 3], "reranking"),  # left out
        ([2, 3, 1], [2, 3, 1], "budget"),  # among the first two of no order: two are too few
        ([2, 3, 1], [3, 2], "budget"),
        ([2, 3, 1], [1, 2], "budget"),  # raised into them, and still not in the context
        ([2, 3], [2, 3], "not_found"),
    ],
)
def test_a_stage_is_named_where_it_took_the_piece_out_of_reach(candidates, ranked, state):
    assert fates(trace_of(candidates, ranked), 2) == [state]


def test_what_was_cut_off_stood_among_the_first_passages_and_the_rest_below_them():
    deep = trace_of([2, 3, 1], [2, 3, 1])
    assert fates(deep, 2) == fates(deep, 3) == ["budget"]
    assert (in_reach(deep, 2), in_reach(deep, 3), in_reach(deep, None)) == ([False], [True], [True])
    assert in_reach(trace_of([1], []), None) == [False]


def test_without_the_number_of_passages_each_list_counts_whole():
    assert fates(trace_of([2, 3, 1], [2, 3]), None) == ["reranking"]
    assert fates(trace_of([1, 2, 3], [2, 3, 1]), None) == ["budget"]


def test_a_selection_is_told_by_the_order_before_it_and_in_older_traces_by_its_record():
    selected = trace_of([1, 2, 3], [2, 3], reranked=(hit(1), hit(2), hit(3)))
    assert fates(selected, 2) == ["selection"]
    assert fates(replace(selected, reranked=(hit(2), hit(3), hit(1))), 2) == ["reranking"]
    older = replace(selected, reranked=(), stages=(*selected.stages, StageRecord("select")))
    assert fates(older, 2) == ["selection"]
    assert fates(replace(older, stages=(*selected.stages, StageRecord("select", reason=OFF))), 2) == ["reranking"]


def test_what_a_search_found_was_indexed_whatever_the_record_says():
    assert fates(trace_of([2], [2]), 2, [0]) == ["not_indexed"]
    assert fates(trace_of([1, 2, 3], [2, 3, 1]), 2, [0]) == ["reranking"]


pages = st.lists(st.integers(1, 6), unique=True, max_size=6)


@st.composite
def any_trace(draw):
    """A trace whose lists need not follow from each other."""
    evidence = tuple(Evidence("a.pdf", page) for page in draw(st.lists(st.integers(1, 7), max_size=4)))
    read = tuple(passage(number, page) for number, page in enumerate(draw(pages), 1))
    citations = tuple(Citation(number, "", None) for number in draw(st.lists(st.integers(1, 7), max_size=3)))
    names = draw(st.lists(st.sampled_from(["merge", "rerank", "select", "context", "generate", "mine"]), max_size=5))
    records = [StageRecord(name, draw(st.sampled_from(["ok", "fallback", "failed"]))) for name in names]
    lists = [tuple(map(hit, draw(pages))) for _ in range(5)]
    return Trace(
        Question("q", "?", evidence=evidence),
        hits={"dense": lists[0]},
        base_hits=lists[1],
        candidates=lists[2],
        reranked=lists[3],
        ranked=lists[4],
        passages=read,
        answer=draw(st.sampled_from([None, Answer("x", citations)])),
        stages=tuple(records),
    )


@given(any_trace(), st.one_of(st.none(), st.integers(1, 7)), st.sets(st.integers(0, 3)))
def test_every_piece_of_any_trace_ends_in_exactly_one_state(trace, final_k, missing):
    states = fates(trace, final_k, missing)
    items = distinct(trace.question.evidence)
    assert len(states) == len(items)
    assert set(states) <= set(STATES)
    read = {one.page for one in trace.passages}
    for one, state in zip(items, states, strict=True):
        assert (one.page in read) <= (state in ("used", "unused", "not_answered"))
        assert trace.answer is not None or state not in ("used", "unused")


SPANS = [("a.pdf", 1, 0, 100), ("a.pdf", 2, 0, 50), ("b.txt", None, 0, 80)]


def test_what_a_passage_overlaps_is_held_and_the_rest_is_told_by_its_place():
    held = (Evidence("a.pdf", 1, "x", 90, 110), Evidence("a.pdf"), Evidence("b.txt"), Evidence("a.pdf", 2))
    lost = (Evidence("a.pdf", 2, "x", 50, 60), Evidence("a.pdf", 3), Evidence("c.txt"))
    questions = [
        Question("none", "?"),
        Question("held", "?", evidence=held),
        Question("q", "?", evidence=held[:1] + lost),
    ]
    assert unindexed(SPANS, questions) == {"q": [1, 2, 3]}


def test_a_file_with_the_same_bytes_serves_as_well():
    copy = Evidence("gone.pdf", 2, "x", 10, 20, copies=("a.pdf",))
    assert unindexed(SPANS, [Question("q", "?", evidence=(copy,))]) == {}
    assert unindexed([], [Question("q", "?", evidence=(copy,))]) == {"q": [0]}
