"""Answers that people rate without the names of variants: which to read, and what the ratings make of a judge's scores.

Two variants are compared. A question to which both gave the same answer needs no label for their difference. The others
are drawn at random within two strata, those on which the judge sees the larger difference more often: there labels
narrow the comparison most (Neyman 1934).
"""

import math
import random
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import fmean

import numpy as np
import pandas as pd

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import counted, listing
from rag_lab.comparison.blind_trials import Side, side_of
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.errors import ConfigError
from rag_lab.records import Passage, Question
from rag_lab.runs import human_input
from rag_lab.runs.human_input import AnswerLabel, Asked
from rag_lab.statistics.prediction_powered import FEWEST, Corrected, corrected_mean
from rag_lab.statistics.shares import krippendorff_alpha

Key = tuple[str, str]  # question, and digest of what is shown of an answer
_SAME, _CLOSE, _FAR = "same answer", "judged alike", "judged apart"
_SHARES = {_CLOSE: 1.0, _FAR: 1.5}  # how often a question of a stratum is drawn, as the spread of labels goes there
_SAME_SHARE = 1 / 6  # of the labels go to answers of both, by which the mean of a variant is known


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
