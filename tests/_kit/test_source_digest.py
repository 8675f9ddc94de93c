"""The digest of what no file holds: classes and functions as a notebook's cells define them."""

from rag_lab._kit.source_digest import source_digest


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


def test_the_same_cell_run_again_is_the_same():
    assert source_digest(cell(BASE)) == source_digest(cell("\n\n" + BASE))


def test_whatever_the_cell_names_counts():
    digests = {
        source_digest(cell(source))
        for source in (
            BASE,
            BASE.replace("= 3", "= 4"),
            BASE.replace("x + 1", "x + 2"),
            BASE.replace("[helper", "[-helper"),
        )
    }
    assert len(digests) == 4


def test_a_name_that_the_cell_does_not_use_does_not_count():
    assert source_digest(cell(BASE)) == source_digest(cell(BASE + "OTHER = 1\n"))


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
