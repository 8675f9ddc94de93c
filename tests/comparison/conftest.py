from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic_run
from compared_runs import build, comparison, grid, promising, routed, run, synthetic, wide

from rag_lab.comparison.comparison import Comparison, read_comparison

__all__ = ["build", "compared", "comparison", "grid", "promising", "routed", "run", "synthetic", "wide"]


@pytest.fixture
def compared(tmp_path: Path) -> Callable[..., Comparison]:
    """Compares a run with these scores in one metric: `compared(values, plans, metric=…, seconds=…, …)`.

    Without plans the variants differ in `rerank.final_k`, and so in what every metric of rankings reads. `seconds` are
    those of a question, 1 where a variant is not named; `margins` and `pairs` are declared in the plan of the run.
    """

    def build_and_read(
        values: Mapping[str, Any],
        plans: Mapping[str, Any] | None = None,
        metric: str = synthetic_run.MAIN,
        seconds: Mapping[str, float] | None = None,
        declared: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Comparison:
        plans = plans or {name: {"rerank.final_k": 5 + index} if index else {} for index, name in enumerate(values)}
        path = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        run = synthetic_run.write_run(path, plans, {metric: values}, **options)
        if declared:
            replace(run, **declared).write_plan()
        found = read_comparison(run.path)
        if seconds is None:
            return found
        took = [seconds.get(name, 1.0) for name in found.latency["variant_id"]]
        return replace(found, latency=found.latency.assign(median_s=took))

    return build_and_read
