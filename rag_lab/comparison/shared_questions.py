"""What two runs share: the questions that both asked, and which of these are not independent of each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_lab._kit.wording import counted, some_of
from rag_lab.comparison.comparison import Comparison
from rag_lab.data.sampling import clusters_sentence
from rag_lab.errors import RagLabError
from rag_lab.statistics.per_question import cluster_labels

Runs = tuple[Comparison, Comparison]


@dataclass(frozen=True)
class Shared:
    """The questions of both runs, in the order of the first, and their clusters.

    questions: the ids under which both runs asked the same.
    others: the ids under which they asked something different, which says nothing about the variants.
    rule: of the clusters, `none` where neither run declares one.
    clusters: question_id to cluster, None where the questions are independent.
    """

    questions: tuple[str, ...]
    others: tuple[str, ...]
    rule: str
    clusters: Mapping[str, str] | None = field(repr=False)

    def sentences(self, runs: Runs, names: tuple[str, str]) -> list[str]:
        """Say on which questions the runs are compared, and what is resampled together."""
        asked = [len(one.questions) for one in runs]
        told = [
            f"{names[0]} and {names[1]} share {len(self.questions)} of {asked[0]} and {asked[1]} questions; "
            "all that follows is on these."
        ]
        if self.others:
            ids = counted(len(self.others), "id")
            told.append(f"Under {ids} the runs ask different questions, which are left out: {some_of(self.others)}.")
        return [*told, *self._resampled(runs, names)]

    def _resampled(self, runs: Runs, names: tuple[str, str]) -> list[str]:
        if self.clusters is None:
            return []
        declare = [name for name, one in zip(names, runs, strict=True) if one.run.clusters != "none"]
        only = [f"Only {declare[0]} declares this."] if len(declare) == 1 else []
        return [" ".join([clusters_sentence(self.questions, self.clusters, self.rule), *only])]


def shared(runs: Runs) -> Shared:
    """Return what both runs asked.

    Raises:
        RagLabError: if that is nothing, or the runs declare different clusters.
    """
    asked = [_asked(one) for one in runs]
    ids = [name for name in asked[0] if name in asked[1]]
    same = tuple(name for name in ids if asked[0][name] == asked[1][name])
    others = tuple(name for name in ids if asked[0][name] != asked[1][name])
    if not same:
        raise RagLabError(_nothing_shared(runs, len(others)))
    rule = _rule(runs)
    return Shared(same, others, rule, _clusters(runs, same) if rule != "none" else None)


def _asked(comparison: Comparison) -> dict[str, Any]:
    """Return what was asked, by the id of each question that has scores: two datasets may both have a `q1`."""
    scored = set(comparison.scores["question_id"])
    return {name: (one.text, one.history) for name, one in comparison.asked.items() if name in scored}


def _nothing_shared(runs: Runs, n_others: int) -> str:
    paths = " and ".join(str(one.run.path) for one in runs)
    ids = f" ({counted(n_others, 'id')} in both, but for different questions)" if n_others else ""
    return f"{paths} share no question{ids}, so they cannot be compared; give two runs of one dataset."


def _rule(runs: Runs) -> str:
    """Return the rule that either run declares: to take dependent questions for independent ones finds what is not."""
    first, second = runs
    declared = sorted({first.run.clusters, second.run.clusters} - {"none"})
    if len(declared) == 2:
        raise RagLabError(
            f"{first.run.path} declares `clusters: {first.run.clusters}` and {second.run.path} `clusters: "
            f"{second.run.clusters}`, so no one interval is right for both; give two runs that declare the same."
        )
    return declared[0] if declared else "none"


def _clusters(runs: Runs, questions: tuple[str, ...]) -> Mapping[str, str]:
    """Return the clusters of the run in which they leave fewer units, since tags and evidence may differ, too."""
    return min((one.clusters or {} for one in runs), key=lambda found: len(set(cluster_labels(questions, found))))
