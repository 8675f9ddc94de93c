"""The counts of the waterfall: they add up, by variant and class, and say what moved; runs say what they recorded."""

from dataclasses import replace

import numpy as np
import pytest
from factories import asked, trace_of
from hypothesis import given
from hypothesis import strategies as st
from small_dataset import write_dataset
from synthetic_run import MAIN, write_run

from rag_lab import Pipeline, compare
from rag_lab.comparison.comparison import read_comparison
from rag_lab.comparison.findings.trace_findings import state_names
from rag_lab.comparison.tables.evidence import NO_CLASS, STATES, fates, unindexed
from rag_lab.data.labels import distinct
from rag_lab.records import Answer, Citation, Evidence, Hit, Passage, Question, StageRecord, Trace
from rag_lab.runs.omissions import NOT_INDEXED
from rag_lab.runs.run_folder import RunFolder, write_json
from rag_lab.runs.variant_files import write_traces
from rag_lab.stages.stage import OFF


@pytest.fixture
def run(tmp_path):
    """Builds a run: variant to the state of each question's first piece; question 2 has three, question 3 none."""

    def build(states, classes=("specific", "fuzzy", "fuzzy", None), recorded=(), repeats=1):
        n = len(classes)
        scores = {name: np.zeros((repeats, n)) for name in states}
        made = write_run(tmp_path / "run", {name: {} for name in states}, {MAIN: scores})
        items = [1, 1, 3, 0]
        for name, ends in states.items():
            questions = [asked(number, items[number], classes[number]) for number in range(n)]
            traces = [
                trace_of(one, repeat, state)
                for repeat in range(repeats)
                for one, state in zip(questions, ends, strict=True)
            ]
            write_traces(made.variant_dir(name) / "traces.jsonl", traces)
            if name in recorded:
                write_json(made.variant_dir(name) / "record.json", {"not_indexed": {"q2": [1]}})
        return read_comparison(made.path).evidence

    return build


BOTH = {"base": ["used", "merging", "not_found", "used"], "other": ["used", "used", "reranking", "used"]}


def counts(table, **where):
    for column, value in where.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return {state: row[state] for state in STATES if row[state]}


def test_counts_by_variant_and_class_add_up_to_the_labelled_pieces(run):
    found = run(BOTH, recorded=BOTH, repeats=2)
    assert list(found.by_variant["items"]) == [10, 10]  # five pieces, asked twice
    assert (found.by_variant[list(STATES)].sum(axis=1) == found.by_variant["items"]).all()
    by_class = found.by_class.groupby("variant_id")[["items", *STATES]].sum()
    assert (by_class.to_numpy() == found.by_variant.set_index("variant_id").to_numpy()).all()
    assert counts(found.by_variant, variant_id="base") == {"not_indexed": 2, "not_found": 4, "merging": 2, "used": 2}
    assert counts(found.by_class, variant_id="other", query_class="specific") == {"used": 2}
    assert found.states == ("not_indexed", "not_found", "merging", "reranking", "used")


def test_what_moved_is_told_from_the_state_under_the_baseline_the_most_first(run):
    found = run(BOTH, recorded=BOTH, repeats=3)
    moved = found.moved.to_dict("records")
    assert moved == [
        {"variant_id": "other", "before": "not_found", "after": "reranking", "items": 3},
        {"variant_id": "other", "before": "merging", "after": "used", "items": 3},
    ]
    changed = {state: counts(found.by_variant, variant_id="other").get(state, 0) for state in STATES}
    before = counts(found.by_variant, variant_id="base")
    for state in STATES:
        net = sum(row["items"] * ((row["after"] == state) - (row["before"] == state)) for row in moved)
        assert changed[state] == before.get(state, 0) + net


def test_what_was_cut_off_is_counted_beside_what_stood_too_deep(run):
    found = run({"base": ["budget", "used", "budget", "used"], "other": ["used"] * 4}, recorded=BOTH)
    assert found.cut == {"base": (2, 2)}
    assert list(found.items.loc[found.items["cut"], "question_id"]) == ["q0", "q2"]


def test_without_classes_there_is_no_table_by_class(run):
    assert run(BOTH, classes=(None,) * 4).by_class.empty


def test_a_question_without_a_class_stands_beside_those_that_have_one(run):
    assert set(run(BOTH, classes=("fuzzy", None, "fuzzy", None)).by_class["query_class"]) == {"fuzzy", NO_CLASS}


def test_without_evidence_and_without_a_baseline_nothing_is_told(run, tmp_path):
    none = run({"base": ["used"], "other": ["used"]}, classes=(None,))
    assert not none.items.empty
    lines = tmp_path / "run" / "variants" / "base" / "traces.jsonl"
    lines.unlink()
    alone = read_comparison(tmp_path / "run").evidence
    assert list(alone.by_variant["variant_id"]) == ["other"] and alone.moved.empty
    (tmp_path / "run" / "variants" / "other" / "traces.jsonl").unlink()
    empty = read_comparison(tmp_path / "run").evidence
    assert empty.items.empty and empty.by_variant.empty and empty.by_class.empty and empty.moved.empty
    assert empty.states == ()


def test_a_run_records_what_its_index_does_not_hold(tmp_path):
    path = write_dataset(tmp_path / "data")
    (path / "corpus" / "oven.txt").write_text(" ")
    base = Pipeline(path, home=tmp_path / "home").set(
        {"retrieval.mode": "bm25", "query.rewrite": "none", "query.hyde": "none", "answer.name": "none"}
    )
    found = compare({"base": base, "narrow": base.set("rerank.final_k", 1)}, ["retrieval.ndcg@5"], progress=False)
    assert RunFolder.open(found.run.path).recorded("base", *NOT_INDEXED) == {"q2": [0]}
    assert counts(found.evidence.by_variant, variant_id="narrow")["not_indexed"] == 1
    assert {state: one.name for state, one in state_names(found.evidence).items()}["not_answered"] == "found"


def test_where_a_reader_was_to_answer_what_reached_it_was_read(run):
    found = run(BOTH)
    items = found.items.assign(state="not_answered")
    assert state_names(replace(found, items=items))["not_answered"].name == "read and not answered"
    assert state_names(replace(found, items=items, asks_reader=False))["not_answered"].name == "found"


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
    missing = unindexed(pipeline.index.chunks.places(), questions)
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


def ranked_trace(candidates, ranked, **changes):
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
    assert fates(ranked_trace(candidates, ranked), 2) == [state]


def test_what_was_cut_off_stood_among_the_first_passages_and_the_rest_below_them():
    deep = ranked_trace([2, 3, 1], [2, 3, 1])
    assert fates(deep, 2) == fates(deep, 3) == ["budget"]


def test_without_the_number_of_passages_each_list_counts_whole():
    assert fates(ranked_trace([2, 3, 1], [2, 3]), None) == ["reranking"]
    assert fates(ranked_trace([1, 2, 3], [2, 3, 1]), None) == ["budget"]


def test_a_selection_is_told_by_the_order_before_it_and_in_older_traces_by_its_record():
    selected = ranked_trace([1, 2, 3], [2, 3], reranked=(hit(1), hit(2), hit(3)))
    assert fates(selected, 2) == ["selection"]
    assert fates(replace(selected, reranked=(hit(2), hit(3), hit(1))), 2) == ["reranking"]
    older = replace(selected, reranked=(), stages=(*selected.stages, StageRecord("select")))
    assert fates(older, 2) == ["selection"]
    assert fates(replace(older, stages=(*selected.stages, StageRecord("select", reason=OFF))), 2) == ["reranking"]


def test_what_a_search_found_was_indexed_whatever_the_record_says():
    assert fates(ranked_trace([2], [2]), 2, [0]) == ["not_indexed"]
    assert fates(ranked_trace([1, 2, 3], [2, 3, 1]), 2, [0]) == ["reranking"]


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
