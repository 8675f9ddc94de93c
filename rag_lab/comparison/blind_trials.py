"""What people judge without the names of variants: which of two answers is better, and answers that they rate.

What was preferred is a paired result. Of ratings it is said which answers to read, and what they make of a judge's
scores. Two variants are compared. A question to which both gave the same answer needs no label for their difference.
The others are drawn at random within two strata, those on which the judge sees the larger difference more often: there
labels narrow the comparison most (Neyman 1934).
"""

import math
import random
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import fmean

import numpy as np
import pandas as pd
from scipy.special import ndtri

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import counted, listing, p_text, short_verdict
from rag_lab.comparison.passages import excerpt
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.errors import ConfigError
from rag_lab.records import Passage, Question, Trace
from rag_lab.runs import human_input
from rag_lab.runs.human_input import AnswerLabel, Asked, Preference, read_preferences
from rag_lab.statistics.families import lone_answer
from rag_lab.statistics.intervals import PairedDifference
from rag_lab.statistics.prediction_powered import FEWEST, Corrected, corrected_mean
from rag_lab.statistics.shares import krippendorff_alpha
from rag_lab.statistics.verdict import Answer

Key = tuple[str, str]  # question, and digest of what is shown of an answer
_SAME, _CLOSE, _FAR = "same answer", "judged alike", "judged apart"
_SHARES = {_CLOSE: 1.0, _FAR: 1.5}  # how often a question of a stratum is drawn, as the spread of labels goes there
_SAME_SHARE = 1 / 6  # of the labels go to answers of both, by which the mean of a variant is known


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


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer as it is read: without the names of the variants that gave it."""

    question: Question
    side: Side
    passages: tuple[Passage, ...]

    @property
    def key(self) -> Key:
        """What a label of it names."""
        return self.question.question_id, digest(asdict(self.side))


@dataclass(frozen=True)
class LabelledPair:
    """Two variants on the questions that both were to answer: their answers, the judge's scores, people's labels."""

    tables: RunTables
    pair: tuple[str, str]  # the variant, and what it is set against
    metric: str  # of the judge

    @cached_property
    def answers(self) -> dict[str, tuple[ShownAnswer, ShownAnswer]]:
        """Both answers by question, of the first repeat, where both were to answer."""
        unread = self.tables.run.passages()
        first, second = (
            {t.question.question_id: t for t in self.tables.traces.get(v, ()) if t.repeat == 0} for v in self.pair
        )
        found = {}
        for name in (one for one in first if one in second):
            traces = first[name], second[name]
            if all(trace.answer is not None or trace.failure for trace in traces):
                one, other = (ShownAnswer(t.question, side_of(t, unread, True), t.passages) for t in traces)
                found[name] = one, other
        return found

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The judge's scores, higher is better, a row a question, a column a variant; the worst where one failed."""
        rows = self.tables.scores
        rows = rows[(rows["metric"] == self.metric) & (rows["repeat"] == 0)]
        table = rows.pivot(index="question_id", columns="variant_id", values="value")
        table = self.tables.sign(self.metric) * table.reindex(index=[*self.answers], columns=[*self.pair])
        return table.fillna(table.min().min()).fillna(0.0)

    @cached_property
    def strata(self) -> "pd.Series[str]":
        """The stratum of each question."""
        apart = (self.scores[self.pair[0]] - self.scores[self.pair[1]]).abs()
        differ = pd.Series({name: one.side != other.side for name, (one, other) in self.answers.items()}, dtype=bool)
        far = differ.mask(~(apart > apart[differ].median()), other=False)
        if min(far.sum(), (differ & ~far).sum()) < FEWEST:  # too few for two strata
            far = differ
        return pd.Series(np.where(far, _FAR, np.where(differ, _CLOSE, _SAME)), index=[*self.answers], dtype=object)

    def ask(self, n: int, seed: int = 0) -> Asked:
        """Return the answers to be rated with up to `n` labels, in order; more labels go on where fewer end.

        An answer that could not be given needs no label: it is a bad one.
        """
        counts = self.strata.value_counts()
        n_same = min(round(n * _SAME_SHARE), counts.get(_SAME, 0))
        weights = {one: share * counts[one] for one, share in _SHARES.items() if one in counts}
        order: list[tuple[float, str]] = []
        for stratum, names in self.strata.sort_index().groupby(self.strata):
            drawn = random.Random(f"{seed} {stratum}").sample([*names.index], len(names))  # noqa: S311 -- no secret
            rate = n_same if stratum == _SAME else weights[stratum] / sum(weights.values()) * (n - n_same) / 2
            order += [((place + 0.5) / rate, name) for place, name in enumerate(drawn) if rate]
        chosen: list[Key] = []
        for _, name in sorted(order):
            keys = [*dict.fromkeys(one.key for one in self.answers[name] if not one.side.missing)]
            if len(chosen) + len(keys) <= n:
                chosen += random.Random(f"{seed} {name}").sample(keys, len(keys))  # noqa: S311
        return Asked(*self.pair, self.metric, n, tuple(chosen))

    @cached_property
    def read(self) -> tuple[list[AnswerLabel], list[str]]:
        """The last rating of each person on each answer, and what makes the ratings doubtful."""
        written, problems = human_input.read_labels(self.tables.run.path / human_input.LABELS_FILE)
        labels, n_changed = human_input.latest(written)
        every = {one.key for both in self.answers.values() for one in both}
        known = [one for one in labels if one.key in every]
        return known, [*problems, *human_input.label_problems(known, len(labels) - len(known), n_changed)]

    @cached_property
    def ratings(self) -> dict[Key, list[float]]:
        """The ratings of each answer, 1 for a good one, one a person."""
        found: dict[Key, list[float]] = defaultdict(list)
        for one in self.read[0]:
            if one.rating != "skip":
                found[one.key].append(float(one.rating == "up"))
        return found

    @cached_property
    def labels(self) -> pd.DataFrame:
        """What people found of both answers, a row a question: the share of them who found it good.

        Only what was drawn counts: who chooses what to rate chooses what is found.
        """
        asked = human_input.read_asked(self.tables.run.path)
        drawn = set(asked.answers) if asked else set()

        def of(shown: ShownAnswer) -> float:
            found = self.ratings.get(shown.key, []) if shown.key in drawn else []
            return 0.0 if shown.side.missing else fmean(found) if found else math.nan

        rows = {name: [of(one), of(other)] for name, (one, other) in self.answers.items()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=[*self.pair], dtype=float)

    def corrected(self, variant: str | None = None, weight: float | None = None) -> Corrected:
        """Return the mean of the labels of a variant, or where None the difference of both.

        `weight` as in `corrected_mean`: 0 for labels alone.
        """
        first, second = self.pair
        rated = self.labels.where(self.labels.notna().all(axis=1))
        if variant is None:
            scores = self.scores[first] - self.scores[second]
            labels = (rated[first] - rated[second]).mask(self.strata == _SAME, 0.0)
        else:
            scores, labels = self.scores[variant], rated[variant]
        clusters = [(self.tables.clusters or {}).get(name, name) for name in self.answers]
        reach = 1.0 if variant is None else 0.5
        return corrected_mean(scores.to_numpy(), labels.to_numpy(), reach, self.strata.tolist(), clusters, weight)

    @property
    def sentences(self) -> list[str]:
        """What labels say of the judge, how many would settle the comparison, and what makes them doubtful."""
        both = self.corrected()
        name, against = (self.tables.called(one) for one in self.pair)
        people = [*dict.fromkeys(one.by for one in self.read[0])]
        n_rated = int(self.labels.notna().all(axis=1).sum())
        found = [
            f"{counted(len(self.read[0]), 'rating')} by {listing(people)}; of the questions that were drawn "
            f"{n_rated} have a rating of both answers, of {len(self.answers)} questions in all."
        ]
        if (alpha := krippendorff_alpha(self.ratings.values())) is not None:
            n_twice = sum(len(each) > 1 for each in self.ratings.values())
            found.append(f"Krippendorff's alpha of {counted(n_twice, 'answer')} that several rated: {alpha:.2f}.")
        if both.low is None:
            found.append(f"Too few labels for an interval: at least {FEWEST} questions of the draw need one.")
        elif both.is_settled:
            better = (name, against) if (both.mean or 0) > 0 else (against, name)
            found.append(f"By labels and judge together, people find {better[0]} better than {better[1]}.")
        else:
            needed = both.labels_needed()
            more = f"about {needed} questions with labels would, if the difference stays as it is"
            none = "no number of labels would on these questions, if the difference stays as it is: ask more questions"
            found.append(
                f"Labels and judge together do not settle {name} against {against}; {more if needed else none}."
            )
        return [*found, *self.read[1]]


def labelled_pair(tables: RunTables, pair: tuple[str, str] | None = None, metric: str | None = None) -> LabelledPair:
    """Return a pair of variants with their labels: that of the last draw, else the best variant and the baseline.

    The metric is the first that a judge gives, else the first that reads answers.

    Raises:
        ConfigError: where the run has no two variants that answer.
    """
    drawn = human_input.read_asked(tables.run.path)
    if drawn is not None and {drawn.variant_id, drawn.against} <= tables.traces.keys():
        pair, metric = pair or (drawn.variant_id, drawn.against), metric or drawn.metric
    main, base = tables.main_metric or "", tables.run.baseline
    means = (
        tables.sign(main) * tables.summary[tables.summary["metric"] == main].set_index("variant_id")["mean"].dropna()
    )
    answering = [one for one, traces in tables.traces.items() if any(t.answer is not None for t in traces)]
    rest = sorted((v for v in answering if v != base), key=lambda v: float(means.get(v, -math.inf)), reverse=True)
    if pair is None and (base not in answering or not rest):
        raise ConfigError("Nothing can be rated: this run has no two variants, the baseline among them, with answers.")
    infos = {name: info for name in tables.quality_metrics if (info := tables.run.metric(name)) is not None}
    reading = [name for name, info in infos.items() if "answer" in info.needs]
    reading.sort(key=lambda name: "judge" not in infos[name].needs)  # the first of a judge, if there is one
    return LabelledPair(tables, pair or (rest[0], base), metric or next(iter(reading), ""))


def labelled_answers(tables: RunTables) -> LabelledPair | None:
    """Return the pair that people rated; None where nobody rated anything."""
    if (tables.run.path / human_input.LABELS_FILE).is_file():
        with suppress(ConfigError):
            return labelled_pair(tables)
    return None
