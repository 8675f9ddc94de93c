"""A whole stage of one's own, held to the contract of a stage: see `stage.Stage`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from rag_lab._kit.own_code import OwnCode, OwnCodeError
from rag_lab.errors import ConfigError
from rag_lab.records import Trace
from rag_lab.stages.stage import Outcome, Stage


class CheckedStage:
    """A stage that somebody brought. What it does wrong costs the questions that it does it to.

    A batch that fails as a whole is run again question by question.

    Args:
        stage: theirs.
        code: the stage, as something that is called; its `run` is.
        sets: the fields that the place in the pipeline must set, which later stages read.
    """

    def __init__(self, stage: Stage, code: OwnCode, sets: tuple[str, ...]) -> None:
        self._stage, self._code = stage, code
        self.name = stage.name
        self.reads, self.writes = tuple(stage.reads), tuple(stage.writes)
        self.batch_size, self.costly = int(stage.batch_size), bool(stage.costly)
        if missing := sorted(set(sets) - {path.partition(".")[0] for path in self.writes}):
            raise ConfigError(
                f"The {code.what} does not write {' and '.join(missing)}, which later stages read; name it in `writes`."
            )

    def identity(self) -> Mapping[str, Any]:
        """Theirs, and the digest of their source."""
        return {"own": dict(self._stage.identity()), "code": self._code.identity()}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Run the batch; where it gives nothing usable, each trace alone."""
        try:
            return self._run(traces)
        except OwnCodeError as error:
            if len(traces) == 1:
                return [Outcome(status="failed", reason=str(error), lasting=False)]
        return [outcome for trace in traces for outcome in self.run([trace])]

    def _run(self, traces: Sequence[Trace]) -> list[Outcome]:
        outcomes: list[Outcome] = self._code.call(list(traces), accept=lambda given: self._accepted(given, len(traces)))
        return outcomes

    def _accepted(self, given: Any, n: int) -> list[Outcome]:
        outcomes = list(given) if isinstance(given, Sequence) else [given]
        if strangers := [type(outcome).__name__ for outcome in outcomes if not isinstance(outcome, Outcome)]:
            raise OwnCodeError(f"the {self._code.what} returned {strangers[0]} where an Outcome is due")
        if len(outcomes) != n:
            raise OwnCodeError(f"the {self._code.what} returned {len(outcomes)} outcomes for {n} questions")
        for outcome in outcomes:
            self._check(outcome.updates)
        return outcomes

    def _check(self, updates: Mapping[str, Any]) -> None:
        if undeclared := sorted(set(updates) - set(self.writes)):
            raise ConfigError(
                f"The {self._code.what} writes {', '.join(undeclared)}, which its `writes` do not name; add it there."
            )
        for path, value in updates.items():
            try:
                _field(path.partition(".")[0], "." in path).validate_python(value)
            except ValidationError as error:
                wrong = error.errors()[0]["msg"]
                raise OwnCodeError(f"the {self._code.what} set {path} to what it cannot be: {wrong}") from None


@cache
def _field(name: str, is_entry: bool) -> TypeAdapter[Any]:
    hint = get_type_hints(Trace)[name]
    return TypeAdapter(hint.__args__[1] if is_entry else hint)
