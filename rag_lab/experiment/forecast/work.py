"""The work of a plan: what each stage or metric has to do, counted once for all variants, and as a tree of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_lab.experiment.design import variant_label
from rag_lab.report.plan_tree import Branch

_SUMS = ("n", "remembered", "tokens_in", "tokens_out", "thinking_tokens", "embedded_tokens", "embedded_chars")
Step = tuple[str, str]  # a stage's name and the digest of what it does


@dataclass(frozen=True, slots=True)
class Work:
    """What one stage or metric has to do with one model: a row of a bill.

    `n` counts units: a `call` of a chat model, a `question` for a module of one's own or for a reader that quotes, a
    `pair` that a reranker scores,
    a `chunk` to embed, a `file` that a model reads or splits, a `score` for which somebody's metric asks a judge nobody
    knows how often. `at_most`: a part of it depends on results that are not there yet. `remembered` counts results that
    the memory holds. `thinking_tokens` are at most so many of `tokens_out`. `tokens_measured`: tokens are a mean of an
    earlier sweep; otherwise they are at most, by prompts and settings. `embedded_tokens` are at most what an embedding
    model reads that costs money, `embedded_chars` what any reads, at most `corpus_chars` where that is not 0; they are
    in no total. `cost_usd` is None where calls cost money and no table has a price, `minutes` where no sweep has
    measured such a call; both are 0 where nothing is called.
    """

    purpose: str
    model: str
    unit: str
    n: int = 0
    at_most: bool = False
    remembered: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    thinking_tokens: int = 0
    tokens_measured: bool = False
    cost_usd: float | None = 0.0
    minutes: float | None = 0.0
    embedded_tokens: int = 0
    embedded_chars: int = 0
    corpus_chars: int = 0

    @property
    def calls(self) -> int:
        """Calls of a chat model; 0 for what another kind of model does."""
        return self.n if self.unit == "call" else 0

    @property
    def chars_to_embed(self) -> int:
        """Characters that an embedding model reads; texts of a corpus that many questions quote are embedded once."""
        return min(self.embedded_chars, self.corpus_chars or self.embedded_chars)

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.tokens_in + self.tokens_out


class Tally:
    """The work of a whole plan: each result is counted once, whichever variants need it."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._work: dict[tuple[str, str, str], Work] = {}

    def is_new(self, key: str) -> bool:
        """Tell whether `key` is met for the first time, and note it."""
        new = key not in self._seen
        self._seen.add(key)
        return new

    def add(self, work: Work) -> None:
        """Put `work` to what is there of its purpose, model and unit."""
        place = (work.purpose, work.model, work.unit)
        if old := self._work.get(place):
            sums: dict[str, Any] = {name: getattr(old, name) + getattr(work, name) for name in _SUMS}
            sums |= {name: None for name in ("cost_usd", "minutes") if getattr(work, name) is None}
            at_most, corpus_chars = old.at_most or work.at_most, max(old.corpus_chars, work.corpus_chars)
            work = replace(old, at_most=at_most, corpus_chars=corpus_chars, **sums)
        self._work[place] = work

    @property
    def work(self) -> list[Work]:
        """All work, in the order in which it was first met."""
        return list(self._work.values())


def new_work(before: Sequence[Work], after: Sequence[Work]) -> list[Work]:
    """Return what has been added between two looks at a tally."""
    known = {(work.purpose, work.model, work.unit): work.n for work in before}
    added = [(work, work.n - known.get((work.purpose, work.model, work.unit), 0)) for work in after]
    return [replace(work, n=n) for work, n in added if n]


@dataclass(frozen=True, slots=True)
class _Path:
    variant: str
    settings: Mapping[str, Any]  # dotted keys that any variant changes
    steps: Sequence[Step]
    work: Mapping[str, Sequence[Work]]  # by stage; what this variant is the first to need


@dataclass
class WorkTree:
    """Takes the variants in the order in which their work is counted."""

    _paths: dict[str, _Path] = field(default_factory=dict)

    def add(self, variant: str, settings: Mapping[str, Any], steps: Sequence[Step], new: Sequence[Work]) -> None:
        """Take a variant with its stages in order and the work that no variant before it needs.

        What belongs to none of its stages, as scoring, is put behind the last.
        """
        names = {name for name, _ in steps}
        work: dict[str, list[Work]] = {}
        for one in new:
            work.setdefault(one.purpose if one.purpose in names else "", []).append(one)
        self._paths.setdefault(variant, _Path(variant, settings, [*steps, ("", variant)], work))

    def tree(self) -> Branch | None:
        """Return the tree; None where there is no variant."""
        paths = list(self._paths.values())
        return _branch(paths, 0, {}, "") if paths else None


def _branch(paths: Sequence[_Path], depth: int, known: Mapping[str, Any], stage: str) -> Branch:
    """Return the branch of variants that have done the same before place `depth` of their stages."""
    first = paths[0].settings
    shared = {key: value for key, value in first.items() if all(path.settings.get(key) == value for path in paths)}
    label = variant_label({key: value for key, value in shared.items() if key not in known})
    work: list[Work] = []
    while depth < len(paths[0].steps) and len({path.steps[depth] for path in paths}) == 1:
        work += [one for path in paths for one in path.work.get(path.steps[depth][0], ())]
        depth += 1
    parts: dict[Step, list[_Path]] = {}
    for path in paths if len(paths) > 1 else ():  # the last step of each is its own
        parts.setdefault(path.steps[depth], []).append(path)
    branches = tuple(_branch(part, depth, shared, step[0]) for step, part in parts.items())
    counts: Counter[str] = Counter()
    for one in work:
        counts[one.unit] += one.n
    units = tuple((unit, n) for unit, n in counts.items() if n)
    at_most = any(one.at_most for one in work)
    return Branch(label if branches else paths[0].variant, stage, len(paths), units, at_most, branches)
