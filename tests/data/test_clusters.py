import pytest

from rag_lab.data.clusters import clusters_of
from rag_lab.errors import ConfigError
from rag_lab.records import Evidence, Question

QUESTIONS = [
    Question("a", "?", evidence=(Evidence("x.pdf", 1), Evidence("y.pdf", 2)), tags=("easy", "item-1", "item-2")),
    Question("b", "?", evidence=(Evidence("x.pdf", 7),), tags=("item-1",)),
    Question("c", "?", answerable=False, tags=("easy",)),
]


def test_by_the_document_of_the_first_evidence():
    assert clusters_of(QUESTIONS, "document") == {"a": "x.pdf", "b": "x.pdf"}


def test_by_a_tag():
    assert clusters_of(QUESTIONS, "tag:item-") == {"a": "item-1", "b": "item-1"}
    assert clusters_of(QUESTIONS, "tag:easy") == {"a": "easy", "c": "easy"}


def test_independent_questions_are_not_clustered():
    assert clusters_of(QUESTIONS, "none") is None


@pytest.mark.parametrize("rule", ["", "documents", "tag:", "source"])
def test_an_unknown_rule_is_one_sentence(rule):
    with pytest.raises(ConfigError, match="Unknown clusters .*`document`"):
        clusters_of(QUESTIONS, rule)
