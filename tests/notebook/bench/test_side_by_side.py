from dataclasses import replace

import pytest
from factories import make_answer, make_hit, make_passage, make_question, make_trace

from rag_lab.config import PipelineConfig
from rag_lab.notebook.bench.answers import Column, SideBySide, compared
from rag_lab.records import Hit, StageRecord, Trace

BASE = PipelineConfig()


def column(letter: str, trace: Trace | None, config: PipelineConfig = BASE, **changes) -> Column:
    return Column(letter, "as it started", config, trace, lambda hit: f"text of page {hit.page}", **changes)


def trace_of(*pages: int, read: int = 2, **changes) -> Trace:
    """A trace that ranks these pages of one file; the evidence stands on page 1."""
    hits = tuple(make_hit(page) for page in pages)
    passages = tuple(make_passage(n, hit.page, parent_id=hit.parent_id) for n, hit in enumerate(hits[:read], 1))
    return make_trace(**({"ranked": hits, "candidates": hits, "passages": passages} | changes))


def side_by_side(*traces: Trace | None) -> SideBySide:
    return SideBySide(make_question(), tuple(column("ABC"[n], trace) for n, trace in enumerate(traces)))


def test_passages_rise_fall_come_and_go_against_the_first_column() -> None:
    shown = side_by_side(trace_of(2, 3, 1), trace_of(1, 2, 4))
    assert [row.hit.page for row in shown.rows] == [1, 2, 4, 3]  # as the newest ranks them, then what it lost
    places = {row.hit.page: row.places[1] for row in shown.rows}
    assert (places[1].rank, places[1].moved) == (1, 2)
    assert (places[2].rank, places[2].moved) == (2, -1)
    assert places[4].is_new and not places[4].is_gone
    assert places[3].is_gone and places[3].rank is None
    assert places[1].is_read and not places[4].is_read
    assert [row.holds_evidence for row in shown.rows] == [True, False, False, False]
    assert shown.rows[0].text == "text of page 1"


def test_evidence_that_a_ranking_left_out_is_a_candidate_with_its_rank() -> None:
    candidates: tuple[Hit, ...] = tuple(make_hit(page) for page in (5, 6, 1))
    shown = side_by_side(trace_of(5, 6, candidates=candidates), trace_of(5, 6, candidates=candidates))
    (evidence,) = [row for row in shown.rows if row.holds_evidence]
    assert [place.candidate for place in evidence.places] == [3, 3]
    assert not any(place.is_gone or place.is_new for place in evidence.places)


def test_sentences_say_where_the_evidence_went_and_what_is_read() -> None:
    assert side_by_side(trace_of(2, 3, 1), trace_of(1, 2, 4)).sentences[:2] == [
        "The evidence rises: B has it at rank 1, A at rank 3.",
        "1 of the 2 passages that B reads are not read by A.",
    ]
    assert side_by_side(trace_of(1, 2), trace_of(2, 3)).sentences[0] == (
        "The evidence falls: B has it nowhere, A at rank 1."
    )
    assert side_by_side(trace_of(2, 1), trace_of(2, 1)).sentences == [
        "The evidence stands at rank 2 in both A and B.",
        "B reads the same 2 passages that A reads.",
        "B answers word for word as A.",
    ]


def test_a_setting_that_reads_less_of_the_same_says_so() -> None:
    assert side_by_side(trace_of(1, 2, 3, read=3), trace_of(1, 2, 3, read=1)).sentences[1] == (
        "B reads 1 of the 3 passages that A reads."
    )


def test_nothing_is_said_of_a_column_that_has_not_ended() -> None:
    shown = SideBySide(
        make_question(), (column("A", trace_of(1)), column("B", trace_of(2), unfinished="generate"), column("C", None))
    )
    assert shown.sentences == []
    assert [place.rank for place in shown.rows[0].places] == [None, 1, None]


def test_answers_are_marked_where_they_differ_from_the_first() -> None:
    first = trace_of(1, answer=make_answer("It is 180 degrees."))
    other = trace_of(1, answer=make_answer("It is 200 degrees."))
    shown = side_by_side(first, other)
    assert [[piece.text.strip() for piece in one if piece.marked] for one in shown.answers()] == [["180"], ["200"]]
    third = side_by_side(first, other, trace_of(1, answer=None)).answers()
    assert [any(piece.marked for piece in one) for one in third] == [False, True, False]


def test_costs_stand_stage_by_stage_and_a_stage_that_did_not_run_is_none() -> None:
    with_rerank = trace_of(1, stages=(StageRecord("search", seconds=1.0), StageRecord("rerank", seconds=2.0)))
    without = trace_of(1, stages=(StageRecord("search", seconds=1.0, tokens_in=3, tokens_out=4),))
    shown = side_by_side(without, with_rerank)
    assert list(shown.costs) == ["search", "rerank"]
    assert shown.costs["rerank"][0] is None and shown.costs["rerank"][1].seconds == 2.0
    assert (shown.columns[0].tokens, shown.columns[1].seconds) == (7, 3.0)


def test_only_what_differs_in_the_settings_is_listed() -> None:
    changed = BASE.override({"rerank.name": "query_likelihood"})
    shown = SideBySide(make_question(), (column("A", None), column("B", None, changed)))
    assert shown.differences == {"rerank.name": ("none", "query_likelihood")}
    assert shown.rows == () and shown.searched == {}


def test_what_was_searched_is_told_where_a_stage_made_something_of_the_question() -> None:
    rewritten = replace(trace_of(1), search_query="oven heat", query_class="specific", phrasings=("hot oven", "heat"))
    assert side_by_side(trace_of(1), rewritten).searched == {
        "Class": ("", "specific"),
        "Searched": ("", "oven heat"),
        "Searched, too": ("", "hot oven\nheat"),
    }


def marked(pieces) -> list[str]:
    return [piece.text.strip() for piece in pieces if piece.marked]


def test_words_that_the_other_text_lacks_are_marked_and_both_texts_stay_whole() -> None:
    before, after = "The valve opens at 290 bar.", "The valve of P-1 opens at 310 bar."
    old, new = compared(before, after)
    assert "".join(piece.text for piece in old) == before and "".join(piece.text for piece in new) == after
    assert marked(old) == ["290"] and marked(new) == ["of P-1", "310"]


@pytest.mark.parametrize(
    ("before", "after", "gone", "new"),
    [
        ("same words", "same  words", [], []),
        ("", "all new", [], ["all new"]),
        ("all gone", "", ["all gone"], []),
        ("one two", "two one", ["two"], ["two"]),
    ],
)
def test_the_ends(before: str, after: str, gone: list[str], new: list[str]) -> None:
    old, fresh = compared(before, after)
    assert (marked(old), marked(fresh)) == (gone, new)
