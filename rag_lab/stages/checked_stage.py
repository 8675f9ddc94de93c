"""A whole stage of one's own, held to the contract of a stage: see `stage.Stage`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from rag_lab._kit.own_code import OwnCode, OwnCodeError
from rag_lab.errors import ConfigError
from rag_lab.records import Hit, Passage, Question, Trace
from rag_lab.stages.stage import Outcome, Stage
from rag_lab.stages.trace_fields import field_type

IsVisible = Callable[[str, Question], bool]  # a file, and who asks
_ACCESS = ("question.may_see", "question.namespace")


class CheckedStage:
    """A stage that somebody brought. What it does wrong costs the questions that it does it to.

    Args:
        stage: theirs.
        code: the stage, as something that is called; its `run` is.
        sets: the fields that the place in the pipeline must set, which later stages read.
        is_visible: tells whether the asker of a question may see a file.
    """

    def __init__(self, stage: Stage, code: OwnCode, sets: tuple[str, ...], is_visible: IsVisible) -> None:
        self._stage, self.code, self._is_visible = stage, code, is_visible
        self.name = stage.name
        # What is checked for one asker must not be replayed for another.
        self.reads, self.writes = tuple(dict.fromkeys((*stage.reads, *_ACCESS))), tuple(stage.writes)
        self.batch_size, self.costly = int(stage.batch_size), bool(stage.costly)
        if missing := sorted(_fields(sets) - _fields(self.writes)):
            raise ConfigError(
                f"The {code.what} does not write {' and '.join(missing)}, which later stages read; name it in `writes`."
            )

    def identity(self) -> Mapping[str, Any]:
        """Theirs, with the digest of their source."""
        return self.code.identity()

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Run the batch.

        Raises:
            OwnCodeError: if it gives nothing usable; `run_stage` then runs each trace alone.
        """
        outcomes: list[Outcome] = self.code.call(list(traces), accept=lambda given: self._accepted(given, traces))
        return outcomes

    def _accepted(self, given: Any, traces: Sequence[Trace]) -> list[Outcome]:
        outcomes = list(given) if isinstance(given, Sequence) else [given]
        if strangers := [type(outcome).__name__ for outcome in outcomes if not isinstance(outcome, Outcome)]:
            raise OwnCodeError(f"the {self.code.what} returned {strangers[0]} where an Outcome is due")
        if len(outcomes) != len(traces):
            raise OwnCodeError(f"the {self.code.what} returned {len(outcomes)} outcomes for {len(traces)} questions")
        for outcome, trace in zip(outcomes, traces, strict=True):
            self._check(outcome.updates, trace.question)
        return outcomes

    def _check(self, updates: Mapping[str, Any], question: Question) -> None:
        if undeclared := sorted(set(updates) - set(self.writes)):
            raise ConfigError(
                f"The {self.code.what} writes {', '.join(undeclared)}, which its `writes` do not name; add it there."
            )
        for path, value in updates.items():
            try:
                field_type(path).validate_python(value)
            except ValidationError as error:
                wrong = error.errors()[0]["msg"]
                raise OwnCodeError(f"the {self.code.what} set {path} to what it cannot be: {wrong}") from None
            for record in _records(value):
                self._check_record(path, record, question)

    def _check_record(self, path: str, record: Hit | Passage, question: Question) -> None:
        if isinstance(record, Hit) and not all(map(math.isfinite, (record.score, *record.scores.values()))):
            raise OwnCodeError(f"the {self.code.what} set {path} with a score that is no number")
        if not self._is_visible(record.source, question):
            raise OwnCodeError(f"the {self.code.what} set {path} from {record.source}, which the asker may not see")


def _fields(paths: Sequence[str]) -> set[str]:
    return {path.partition(".")[0] for path in paths}


def _records(value: Any) -> Iterator[Hit | Passage]:
    if isinstance(value, Hit | Passage):
        yield value
    elif isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _records(inner)
