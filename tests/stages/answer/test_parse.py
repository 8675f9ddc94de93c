import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.models.json_repair import RepairError
from rag_lab.records import Citation, Passage, Question, Trace
from rag_lab.stages.answer.parse import Parse, parse_reply, without_loop
from rag_lab.stages.answer.prompts import NOT_FOUND

PASSAGES = (
    Passage(1, "a#p1", "a.pdf", 1, 0, 9, "The press runs at 140 bar."),
    Passage(2, "b#0-9", "b.md", None, 0, 9, "Filters last 500 hours."),
)


def reply(answer="140 bar", citations=()):
    return json.dumps({"answer": answer, "citations": list(citations)})


@given(st.text(min_size=1).filter(str.strip), st.lists(st.sampled_from([1, 2]), unique=True))
def test_what_is_rendered_is_read_back(text, numbers):
    answer, rule = parse_reply(reply(text, numbers), PASSAGES)
    assert answer.text == text.strip()
    assert [citation.number for citation in answer.citations] == numbers
    assert rule == ""


def test_a_citation_counts_once_and_only_if_it_names_a_passage_of_the_context():
    answer, _ = parse_reply(reply(citations=[1, 3, "1", 0, 1, "two"]), PASSAGES)
    assert answer.citations == (Citation(1, "a.pdf", 1),)
    assert answer.rejected_citations == ("3", "0", "two")


@pytest.mark.parametrize("written", [2, "2", "[2]", "Passage 2", {"passage": 2, "quote": "500 hours"}])
def test_the_ways_in_which_models_write_a_citation(written):
    answer, _ = parse_reply(reply(citations=[written]), PASSAGES)
    assert [(c.source, c.page) for c in answer.citations] == [("b.md", None)]


@pytest.mark.parametrize(("mark", "thinking"), [("<think>", "Pressure? {no}"), ("", 'Is {"answer": "90"} right? No.')])
def test_thinking_is_split_off_also_without_an_opening_mark(mark, thinking):
    answer, rule = parse_reply(f"{mark}{thinking}</think>{reply()}", PASSAGES)
    assert (answer.thinking, answer.text, rule) == (thinking, "140 bar", "")


def test_thinking_that_never_ends_leaves_no_answer():
    with pytest.raises(RepairError):
        parse_reply("<think>and so on", PASSAGES)


def test_abstention_is_the_shared_phrase():
    assert parse_reply(reply(NOT_FOUND), PASSAGES)[0].abstained
    assert not parse_reply(reply("It says 140 bar."), PASSAGES)[0].abstained


@pytest.mark.parametrize("raw", ["", "140 bar", '{"citations": [1]}', '{"answer": ""}', '{"answer": 7}'])
def test_malformed_output_fails_and_keeps_the_raw_text(raw):
    trace = Trace(Question("q", "?"), passages=PASSAGES, raw_text=raw)
    (outcome,) = Parse().run([trace])
    assert outcome.status == "failed"
    assert outcome.reason
    assert "raw_text" not in outcome.updates
    assert trace.raw_text == raw


def test_a_repair_is_a_fallback_with_its_rule():
    (outcome,) = Parse().run([Trace(Question("q", "?"), passages=PASSAGES, raw_text='{"answer": "140 ba')])
    assert outcome.status == "fallback"
    assert "cut off" in outcome.reason


@given(st.text())
def test_arbitrary_text_gives_an_outcome(raw):
    (outcome,) = Parse().run([Trace(Question("q", "?"), passages=PASSAGES, raw_text=raw)])
    assert outcome.status in ("ok", "fallback", "failed")


ROUND = "I'm a product tester."


@pytest.mark.parametrize("tail", ["", " ", " I'm a pro", " I'm a product tester"])
def test_a_circle_is_kept_once_however_its_last_round_ends(tail):
    text, rounds = without_loop(f"Hello. {' '.join([ROUND] * 9)}{tail}")
    assert (text, rounds) == (f"Hello. {ROUND}", 9)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The valve opens at 290 bar.",
        f"{ROUND} {ROUND}",
        "| --- | --- | --- | --- | --- | --- |",
        "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0",
        f"{ROUND} {ROUND} {ROUND} But then the press was stopped.",
        "Check valve V1. Check valve V2. Check valve V3. Check valve V4.",
    ],
)
def test_what_is_no_circle_is_left_as_it_is(text):
    assert without_loop(text) == (text, 0)


def test_a_long_reply_is_not_searched_for_long():
    assert without_loop("ab " * 30_000)[1] == 0
    assert without_loop("".join(chr(97 + n * n % 26) for n in range(19_000)))[1] in (0, 729, 730, 731)


def test_the_answer_says_what_was_cut_and_the_citation_stays():
    passage = Passage(1, "p", "a.txt", None, 0, 1, "x")
    answer, rule = parse_reply(f'{{"answer": "{" ".join([ROUND] * 5)}", "citations": [1]}}', [passage])
    assert (answer.text, len(answer.citations)) == (ROUND, 1)
    assert rule == "said the same 5 times, which is kept once"
