"""Names that a digest tells apart can be said."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from rag_lab._kit.digest import digest, digest_word, short_name, source_digest, whole_file, whole_folder


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


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text("before")
    with whole_file(path) as one, whole_file(path) as other:
        one.write_text("one")
        other.write_text("other")
        assert path.read_text() == "before"
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text("before")
    with pytest.raises(OSError, match="disk"), whole_file(path) as partial:
        partial.write_text("half")
        raise OSError("disk full")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def make(target, made):
    with whole_folder(target) as partial:
        if partial:
            made.append(partial)
            partial.mkdir()
            sleep(0.05)
            (partial / "file").write_text("whole")
    return (target / "file").read_text()


def test_it_is_made_once_also_by_many_at_a_time(tmp_path):
    made = []
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: make(tmp_path / "deep" / "folder", made), range(4))) == ["whole"] * 4
    assert len(made) == 1


def test_a_failure_leaves_no_folder_and_the_next_one_makes_it(tmp_path):
    target = tmp_path / "folder"
    with pytest.raises(ZeroDivisionError), whole_folder(target) as partial:
        partial.mkdir()
        (partial / "half").write_text("half")
        raise ZeroDivisionError
    assert not target.exists()
    assert not list(tmp_path.glob("*.partial-*"))
    assert make(target, []) == "whole"


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    leftover = tmp_path / "folder.partial-0"
    leftover.mkdir()
    assert make(tmp_path / "folder", []) == "whole"
    assert not leftover.exists()
