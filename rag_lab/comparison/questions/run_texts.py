"""What the passages of a run's rankings say, for traces that are shown: read from its folder where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from rag_lab.records import Span, Trace
from rag_lab.runs.run_folder import RunFolder


class RunTexts(Mapping[Span, str]):
    """The texts of ranked hits by where they stand, as far as any variant of the run kept or read them."""

    def __init__(self, run: RunFolder, traces: Mapping[str, list[Trace]]) -> None:
        self._run, self._traces = run, traces

    def __getitem__(self, place: Span) -> str:
        return self._texts[place]

    def __iter__(self) -> Iterator[Span]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    @cached_property
    def _texts(self) -> dict[Span, str]:
        traces = [trace for some in self._traces.values() for trace in some]
        read = {passage.parent_id: passage.retrieved for trace in traces for passage in trace.passages}
        known = self._run.passages() | read
        return {hit.span: known[hit.parent_id] for trace in traces for hit in trace.ranked if hit.parent_id in known}
