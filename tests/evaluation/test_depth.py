from typing import Any

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.evaluation.shallow import ranking_depth
from rag_lab.records import Hit, Question, Trace
from rag_lab.stages.rerank import KeepOrder
from rag_lab.stages.retrieval.fusion import Merge
from rag_lab.stages.run_stage import run_stage


def hits(prefix: str, n: int) -> tuple[Hit, ...]:
    names = [f"{prefix}{rank}" for rank in range(n)]
    return tuple(Hit(name, f"{name}.0", name, 1, 0, 100, 1.0) for name in names)


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({}, "2 x rerank.final_k"),
        ({"rerank.final_k": 50}, "rerank.input_limit"),
        ({"rerank.final_k": 50, "rerank.input_limit": 100}, "retrieval.base_k"),
        (
            {"rerank.final_k": 50, "rerank.input_limit": 100, "query.hyde": "always"},
            "retrieval.base_k + retrieval.hyde_k",
        ),
    ],
)
def test_it_is_how_many_hits_the_stages_leave(changes: dict[str, Any], setting: str) -> None:
    config = PipelineConfig().override(changes)
    found = hits("hyde", config.retrieval.hyde_k) if config.query.hyde != "none" else ()
    traces = [Trace(Question("q", "?"), base_hits=hits("base", config.retrieval.base_k), hits={"hyde": found})]
    for stage in (Merge(config.rerank.input_limit), KeepOrder(2 * config.rerank.final_k)):
        traces = run_stage(stage, traces)
    assert ranking_depth(config) == (len(traces[0].ranked), setting)
