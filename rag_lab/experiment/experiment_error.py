"""Everything that is wrong with an experiment, in one error."""

from __future__ import annotations

from collections.abc import Iterable

from rag_lab.errors import ConfigError


class ExperimentError(ConfigError):
    """What is wrong with an experiment; `problems` holds one sentence each, and `str()` lists them all."""

    def __init__(self, where: str, problems: Iterable[str]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__(_listing(where, self.problems))


def _listing(where: str, problems: tuple[str, ...]) -> str:
    if len(problems) == 1:
        return f"{where}: {problems[0]}"
    lines = "".join(f"\n  - {problem}" for problem in problems)
    return f"{where} has {len(problems)} problems, and nothing was run:{lines}"
