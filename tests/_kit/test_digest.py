"""Names that a digest tells apart can be said."""

import re

from rag_lab._kit.digest import digest, digest_word, short_name, source_digest


def test_a_digest_can_be_said_as_a_word_that_stays_the_same():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert re.fullmatch("(?:[bdfgklmnprstvz][aeiou]){5}", digest_word([1])) and digest_word([1]) == digest_word([1])
    assert len({digest_word(n) for n in range(2000)}) == 2000


def test_a_name_that_is_too_long_is_cut_between_words_and_told_from_others():
    assert short_name("mode_and_hyde", 40, 1) == "mode_and_hyde"
    found = short_name("chunk_size_and_answer_and_mode_and_hyde", 30, 1)
    assert found == f"chunk_size-{digest_word(1)}" and len(found) <= 30
    assert short_name("chunk_size_and_answer_and_mode_and_hyde", 30, 2) != found


def cell(source, name="mine"):
    """What `name` is after a cell with this source has run in a notebook."""
    namespace = {"__name__": "__main__"}
    exec(source, namespace)
    return namespace[name]


BASE = """
LIMIT = 3
def helper(x):
    return x + 1
def mine(question, passages):
    return [helper(LIMIT) for _ in passages]
"""


def test_whatever_the_cell_names_counts_and_nothing_else():
    same = (BASE, "\n\n" + BASE, BASE + "OTHER = 1\n")
    assert len({source_digest(cell(source)) for source in same}) == 1
    others = (BASE.replace("= 3", "= 4"), BASE.replace("x + 1", "x + 2"), BASE.replace("[helper", "[-helper"))
    assert len({source_digest(cell(source)) for source in (BASE, *others)}) == 4


CLASS = """
from dataclasses import dataclass
@dataclass(frozen=True)
class mine:
    keep: int = 4
    version = 1
    def __call__(self, question, passages):
        return self.score(passages)
    def score(self, passages):
        return [len(text) for text in passages]
"""


def test_every_method_and_default_of_a_class_counts():
    changed = (CLASS.replace("[len", "[-len"), CLASS.replace("= 4", "= 5"), CLASS.replace("version = 1", "version = 2"))
    assert len({source_digest(cell(source)) for source in (CLASS, CLASS + "\n", *changed)}) == 4


def test_functions_made_in_a_function_of_a_file_are_told_apart_by_code_and_closure():
    def times(factor):
        return lambda value: value * factor

    one, other = (lambda value: value), (lambda value: -value)
    assert source_digest(one) != source_digest(other)
    assert source_digest(times(2)) != source_digest(times(3))
    assert source_digest(times(2)) == source_digest(times(2))
