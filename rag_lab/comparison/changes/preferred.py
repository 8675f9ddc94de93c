"""What a person preferred between two variants, blind, as a paired result with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri

from rag_lab._kit.wording import counted, p_text, short_verdict
from rag_lab.comparison.changes.blind_trials import blind_trials
from rag_lab.comparison.run_tables import RunTables
from rag_lab.runs.preferences import Preference, read_preferences
from rag_lab.statistics.families import lone_answer
from rag_lab.statistics.intervals import PairedDifference
from rag_lab.statistics.verdict import Answer


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
        decided = self.difference.wins + self.difference.losses
        return self.difference.wins / decided if decided else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of `share`, by Wilson (1927): a dozen choices that all agree do not make it narrow."""
        won, decided = self.difference.wins, self.difference.wins + self.difference.losses
        if not decided:
            return None
        z = float(ndtri(0.975))
        middle = (won + z * z / 2) / (decided + z * z)
        reach = z / (decided + z * z) * math.sqrt(won * (decided - won) / decided + z * z / 4)
        return max(0.0, middle - reach), min(1.0, middle + reach)

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or why neither can be said."""
        return self.answer.verdict

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
        told = found.get(self.verdict, f"the data cannot tell: {short_verdict(self.verdict)}")
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
