"""Evidence that no passage of an index holds."""

from rag_lab.comparison.tables.evidence import unindexed
from rag_lab.records import Evidence, Question

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
