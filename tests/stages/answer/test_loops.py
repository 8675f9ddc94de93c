"""A reply that goes round in a circle is kept once, and says so; one that merely repeats a word is left alone."""

import pytest

from rag_lab.records import Passage
from rag_lab.stages.answer.loops import without_loop
from rag_lab.stages.answer.parse import parse_reply

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
