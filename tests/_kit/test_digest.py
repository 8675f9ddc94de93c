"""Names that a digest tells apart can be said."""

import re

from rag_lab._kit.digest import digest, short_name, spoken


def test_a_digest_can_be_said_as_a_word_that_stays_the_same():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert re.fullmatch("(?:[bdfgklmnprstvz][aeiou]){5}", spoken([1])) and spoken([1]) == spoken([1])
    assert len({spoken(n) for n in range(2000)}) == 2000


def test_a_name_that_is_too_long_is_cut_between_words_and_told_from_others():
    assert short_name("mode_and_hyde", 40, 1) == "mode_and_hyde"
    found = short_name("chunk_size_and_answer_and_mode_and_hyde", 30, 1)
    assert found == f"chunk_size-{spoken(1)}" and len(found) <= 30
    assert short_name("chunk_size_and_answer_and_mode_and_hyde", 30, 2) != found
