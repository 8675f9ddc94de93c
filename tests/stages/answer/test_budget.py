from doubles import TEXTS, Corpus, hits
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.records import Passage, Question, Trace
from rag_lab.stages.answer.budget import ContextBudget, Wanted
from rag_lab.stages.answer.context import Assemble
from rag_lab.stages.answer.prompts import render_passages
from rag_lab.testing import ScriptedChat

COUNTER = ScriptedChat([])


def assemble(parent_ids, max_tokens, final_k=9, max_bytes=0):
    trace = Trace(Question("q", "?"), ranked=tuple(hits(*parent_ids)))
    (outcome,) = Assemble(Corpus(), ContextBudget(COUNTER, max_tokens, max_bytes), final_k).run([trace])
    return outcome


@given(st.permutations(list(TEXTS)), st.integers(1, 4), st.integers(1, 600))
def test_the_budget_is_never_exceeded_and_the_order_is_kept(parent_ids, final_k, max_tokens):
    passages = assemble(parent_ids, max_tokens, final_k).updates["passages"]
    assert not passages or COUNTER.count_tokens(render_passages(passages)) <= max_tokens
    assert [passage.number for passage in passages] == list(range(1, len(passages) + 1))
    found = [passage.parent_id for passage in passages]
    assert found == [parent_id for parent_id in parent_ids[:final_k] if parent_id in found]


@given(st.permutations(list(TEXTS)), st.integers(1, 600), st.integers(1, 3000))
def test_neither_of_two_budgets_is_exceeded(parent_ids, max_tokens, max_bytes):
    passages = assemble(parent_ids, max_tokens, max_bytes=max_bytes).updates["passages"]
    text = render_passages(passages)
    assert not passages or (COUNTER.count_tokens(text) <= max_tokens and len(text.encode()) <= max_bytes)


def test_bytes_are_those_of_utf_8_and_the_reason_names_both_budgets():
    (passage,) = assemble(["press#p1"], 10_000, max_bytes=200).updates["passages"]
    assert passage.text == TEXTS["press#p1"]
    outcome = assemble(["press#p1", "oven#p2"], 10_000, max_bytes=60)
    assert outcome.reason == "2 of 2 passages did not fit 10000 tokens and 60 bytes"


@given(st.integers(1, 600))
def test_every_passage_is_the_span_it_says(max_tokens):
    for passage in assemble(list(TEXTS), max_tokens).updates["passages"]:
        assert TEXTS[passage.parent_id][passage.start : passage.end] == passage.text


def test_what_fits_stands_whole_with_source_and_page():
    (passage,) = assemble(["press#p1"], 500).updates["passages"]
    assert passage.text == TEXTS["press#p1"]
    assert render_passages([passage]).startswith("[1] (press.pdf, page 1)\n")


def test_a_long_parent_is_cut_around_the_child_that_matched():
    (passage,) = assemble(["oven#p2"], 80).updates["passages"]
    middle = len(TEXTS["oven#p2"]) // 2
    assert passage.start < middle < passage.end
    assert passage.start > 0
    assert passage.end < len(TEXTS["oven#p2"])


def test_what_a_short_passage_leaves_goes_to_those_after_it():
    alone = assemble(["press#p1", "oven#p2"], 300).updates["passages"][1]
    half = assemble(["oven#p2"], 150).updates["passages"][0]
    assert len(alone.text) > len(half.text)


def test_passages_that_do_not_fit_are_counted():
    outcome = assemble(list(TEXTS), 5)
    assert outcome.updates["passages"] == ()
    assert outcome.reason == "4 of 4 passages did not fit 5 tokens"


class Greedy(ScriptedChat):
    """A counter for which a text that joins passages is longer than its parts."""

    def count_tokens(self, text):
        return super().count_tokens(text) * (1 + text.count("\n\n["))


@given(st.permutations(list(TEXTS)), st.integers(1, 600))
def test_the_whole_is_counted_not_only_its_parts(parent_ids, max_tokens):
    counter = Greedy([])
    trace = Trace(Question("q", "?"), ranked=tuple(hits(*parent_ids)))
    (outcome,) = Assemble(Corpus(), ContextBudget(counter, max_tokens), 9).run([trace])
    passages = outcome.updates["passages"]
    assert not passages or counter.count_tokens(render_passages(passages)) <= max_tokens


def test_a_passage_that_many_questions_find_is_counted_once():
    counted = []

    class Recording(ScriptedChat):
        def count_tokens(self, text):
            counted.append(text)
            return super().count_tokens(text)

    trace = Trace(Question("q", "?"), ranked=tuple(hits(*TEXTS)))
    Assemble(Corpus(), ContextBudget(Recording([]), 10_000), 9).run([trace, trace])
    assert len(counted) == 2 * (len(TEXTS) + 1)  # each passage by itself, and once the whole
    assert len(set(counted)) == len(TEXTS) + 1


def test_a_window_of_a_file_that_is_one_text_names_the_page_on_which_it_begins():
    long = "Alarm A7 of the oven means that the burner is locked out. " * 30
    whole = Passage(1, "m.pdf#0-1740", "m.pdf", 3, 0, len(long), long)
    (passage,) = ContextBudget(COUNTER, 60).shared([Wanted(whole, 1500, ((3, 0), (4, 900)))])
    assert passage.start > 900 and passage.page == 4
    assert "(m.pdf, page 4)" in render_passages([passage])
    (plain,) = ContextBudget(COUNTER, 60).shared([Wanted(whole, 1500)])
    assert plain.page == 3
