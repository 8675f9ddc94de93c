"""What each question took under each variant, from the traces: seconds, tokens, dollars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_lab.comparison.stage_tables import as_answered
from rag_lab.records import StageRecord, Trace
from rag_lab.statistics.pareto import Means, Medians, medians


@dataclass(frozen=True, slots=True)
class QuestionCosts:
    """The three amounts of a `Price`, on units that can be drawn again: under equal weights they are that price."""

    seconds: Medians
    tokens: Means
    usd: Means


def question_costs(traces: Sequence[Sequence[Trace]], place_of: Mapping[str, int]) -> QuestionCosts:
    """Return what the questions took.

    Args:
        traces: of each variant, at least one.
        place_of: the unit, from 0, of each question that has a trace.
    """
    timed = [as_answered(one) for one in traces]
    took = [np.array([sum(record.seconds for record in trace.stages) for trace in one]) for one in timed]
    places = [np.array([place_of[trace.question.question_id] for trace in one], dtype=np.intp) for one in timed]
    stages = {name: number for number, name in enumerate(_stage_names(traces))}
    shape = (max(place_of.values()) + 1, len(traces), max(len(stages), 1))
    found = [
        (place_of[trace.question.question_id], variant, stages[record.stage], record)
        for variant, one in enumerate(traces)
        for trace in one
        for record in trace.stages
    ]
    cells = [np.array(column, dtype=np.intp) for column in zip(*((a, b, c) for a, b, c, _ in found), strict=True)]
    cell = np.ravel_multi_index(tuple(cells), shape) if found else np.zeros(0, dtype=np.intp)
    records = [record for *_, record in found]
    runs = _summed(cell, np.ones(len(records)), shape)
    return QuestionCosts(
        seconds=medians(took, places),
        tokens=_means(_summed(cell, np.array([_tokens(record) for record in records]), shape), runs),
        usd=_means(_summed(cell, np.array([record.cost_usd for record in records]), shape), runs),
    )


def _stage_names(traces: Sequence[Sequence[Trace]]) -> list[str]:
    return list(dict.fromkeys(record.stage for one in traces for trace in one for record in trace.stages))


def _tokens(record: StageRecord) -> float:
    return float(record.tokens_in + record.tokens_out)


def _summed(
    cell: npt.NDArray[np.intp], amounts: npt.NDArray[np.float64], shape: tuple[int, int, int]
) -> npt.NDArray[np.float64]:
    # A sum of floats depends on its order in the last digit, and no result may depend on the order of the rows.
    order = np.lexsort((amounts, cell))
    sums = np.zeros(shape)
    np.add.at(sums.ravel(), cell[order], amounts[order])
    return sums


def _means(sums: npt.NDArray[np.float64], runs: npt.NDArray[np.float64]) -> Means:
    """Return the means over the runs of each stage, without the stages that took nothing."""
    took = (sums > 0).any(axis=(0, 1))
    return Means(sums[:, :, took], runs[:, :, took])
