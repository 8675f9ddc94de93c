"""Pairs of answers that a person compares without names, and what was preferred, as a paired result."""

import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from scipy.special import ndtri

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import counted, p_text, short_verdict
from rag_lab.comparison.passages import excerpt
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.records import Question, Trace
from rag_lab.runs.human_input import Preference, read_preferences
from rag_lab.statistics.families import lone_answer
from rag_lab.statistics.intervals import PairedDifference
from rag_lab.statistics.verdict import Answer


@dataclass(frozen=True, slots=True)
class Side:
    """What one variant shows of a question: an answer with its citations, or the passages that it found."""

    text: str  # of the answer; "" where passages are shown
    places: tuple[tuple[str, int | None, str], ...]  # source, page, and quote or opening, of citations or passages
    is_answer: bool
    missing: str = ""  # why there is nothing to show


@dataclass(frozen=True, slots=True)
class Trial:
    """One question with two sides; `left` and `right` are the variants, which nobody sees before the end."""

    question: Question
    left: str
    right: str
    sides: tuple[Side, Side]

    @property
    def shown(self) -> str:
        """The digest of what both sides show, whichever is on the left."""
        return digest(sorted(digest(asdict(side)) for side in self.sides))


@dataclass(frozen=True, slots=True)
class Trials:
    """The trials of a pair of variants, in the order in which they are asked; `alike` questions show the same twice."""

    pair: tuple[str, str]
    trials: tuple[Trial, ...]
    alike: int


def blind_trials(tables: RunTables, pair: tuple[str, str], seed: int = 0) -> Trials:
    """Return the trials of a pair: what both show of every question, where it is not the same.

    Answers are compared where either variant was to answer, else the passages of the ranking. Order and sides depend on
    the seed and the ids alone, so that the same run asks in the same way again. Of several repeats the first is shown.
    """
    unread = tables.run.passages()
    first, second = ({t.question.question_id: t for t in tables.traces[v] if t.repeat == 0} for v in pair)
    found, alike = [], 0
    for name in sorted(first.keys() & second.keys()):
        traces = first[name], second[name]
        answers = any(trace.answer is not None for trace in traces)
        sides = [side_of(trace, unread, answers) for trace in traces]
        if sides[0] == sides[1]:
            alike += 1
            continue
        order = [0, 1]
        random.Random(f"{seed} side {name}").shuffle(order)  # noqa: S311 -- no secret, only an order
        left, right = order
        found.append(Trial(traces[0].question, pair[left], pair[right], (sides[left], sides[right])))
    random.Random(f"{seed} order").shuffle(found)  # noqa: S311
    return Trials(pair, tuple(found), alike)


def side_of(trace: Trace, unread: Mapping[str, str], is_answer: bool) -> Side:
    """Return the answer of a trace, or the passages that it ranked; `unread` has texts that no reader got."""
    if not is_answer:
        texts = {**unread, **{passage.parent_id: passage.text for passage in trace.passages}}
        hits = [(hit.source, hit.page, excerpt(texts.get(hit.parent_id, ""))) for hit in trace.ranked]
        return Side("", tuple(hits), False, "" if hits else "nothing was found")
    if trace.answer is None:
        failure = trace.failure
        return Side("", (), True, f"{failure.stage} failed" if failure else "no answer was asked for")
    cited = tuple((one.source, one.page, one.quote) for one in trace.answer.citations)
    return Side(trace.answer.text.strip(), cited, True)


@dataclass(frozen=True, slots=True)
class Preferred:
    """How often a person preferred `variant_id` to `against`.

    `answer` is over the questions that were judged: 1 where `variant_id` was preferred, -1 where `against` was, 0 where
    neither was. So its difference is wins minus losses as a share, and its p-value that of the sign test.
    """

    variant_id: str
    against: str
    answer: Answer
    skipped: int
    stale: int  # choices between texts that are not those of the run any more; not counted
    names: tuple[str, str]  # of both, for sentences

    @property
    def difference(self) -> PairedDifference:
        """Wins, ties and losses, and their mean."""
        return self.answer.difference

    @property
    def share(self) -> float | None:
        """The share of the decided questions on which `variant_id` was preferred; None where none was decided."""
        won, lost = self.difference.wins, self.difference.losses
        return won / (won + lost) if won + lost else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of `share`, by Wilson (1927): a dozen choices that all agree do not make it narrow."""
        won = self.difference.wins
        decided = won + self.difference.losses
        if not decided:
            return None
        z = float(ndtri(0.975))
        middle = (won + z * z / 2) / (decided + z * z)
        reach = z / (decided + z * z) * math.sqrt(won * (decided - won) / decided + z * z / 4)
        return max(0.0, middle - reach), min(1.0, middle + reach)

    @property
    def sentence(self) -> str:
        """What was preferred how often, and what that allows to say."""
        one, (name, other) = self.difference, self.names
        skipped = f" {counted(self.skipped, 'question')} skipped." if self.skipped else ""
        if self.stale:
            skipped += f" {counted(self.stale, 'choice')} between texts that have changed since: not counted."
        if not one.n:
            return f"Nobody has judged {name} against {other} yet.{skipped}"
        counts = (
            f"A person who saw no names preferred {name} on {one.wins} of {counted(one.n, 'question')}, {other} on "
            f"{one.losses}, neither on {one.ties}"
        )
        won = ""
        if self.interval and self.answer.p_value is not None:
            low, high = self.interval
            won = f" ({self.share:.0%} of those decided [{low:.0%} to {high:.0%}], p {p_text(self.answer.p_value)})"
        found = {"better": f"{name} is reliably preferred", "worse": f"{other} is reliably preferred"}
        told = found.get(self.answer.verdict, f"the data cannot tell: {short_verdict(self.answer.verdict)}")
        return f"{counts}{won}: {told}.{skipped}"


def preferred(tables: RunTables) -> tuple[Preferred, ...]:
    """Return what was preferred for each pair that was judged, in the order of the plan."""
    order = {plan.variant_id: place for place, plan in enumerate(tables.variants)}
    by_pair: dict[tuple[str, str], list[Preference]] = {}
    for one in read_preferences(tables.run.path):
        if one.left in order and one.right in order and one.left != one.right:
            first, second = sorted((one.left, one.right), key=order.__getitem__)
            by_pair.setdefault((first, second), []).append(one)
    return tuple(preferred_of(tables, pair, by_pair[pair]) for pair in sorted(by_pair, key=lambda p: order[p[1]]))


def preferred_of(tables: RunTables, pair: tuple[str, str], made: list[Preference]) -> Preferred:
    """Return the result of the choices `made` on a pair; the second of the pair is the one that is set against."""
    against, variant = pair
    shown = {trial.question.question_id: trial.shown for trial in blind_trials(tables, pair).trials}
    ours = [one for one in made if {one.left, one.right} == {*pair}]
    valid = [one for one in ours if shown.get(one.question_id) == one.shown]
    judged = [one for one in valid if one.choice != "skip"]
    sides = [float(one.preferred == variant) - float(one.preferred == against) for one in judged]
    return Preferred(
        variant_id=variant,
        against=against,
        answer=lone_answer(sides),
        skipped=len(valid) - len(judged),
        stale=len(ours) - len(valid),
        names=(tables.called(variant), tables.called(against)),
    )
