"""One line an idea: what the open house promises runs as it stands, on the demo set."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

import rag_lab as rl

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Shortest:
    """The shortest passages first."""

    keep: int = 4
    version: ClassVar[int] = 1

    def __call__(self, question, passages):
        return [-len(passage) for passage in passages]


def my_metric(trace):
    """Whether anything was ranked."""
    return float(bool(trace.ranked))


my_metric.fields = frozenset({"ranked"})


def test_five_lines_compare_a_value_and_an_object_on_the_demo_set():
    base = rl.Pipeline("plant_docs")
    base = base.set("rerank.input_limit", 5)
    likely = base.set("rerank.name", "query_likelihood")
    mine = base.replace(rerank=Shortest(keep=4))
    found = rl.compare({"base": base, "likely": likely, "mine": mine}, ["retrieval.ndcg@10", my_metric], questions=3)
    assert [plan.variant_id for plan in found.run.variants] == ["base", "likely", "mine"]
    assert set(found.summary["metric"]) == {"retrieval.ndcg@10", "my_metric"}
    assert len(found.run.questions) == 3
    assert found.manifest["counts"] == {"scored": 18, "failed": 0, "not_applicable": 0}
    assert "mine: rerank = Shortest(keep=4)" in found._repr_html_()
