"""Two runs of the same questions: their variants against each other, and what changed between the runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from rag_lab._kit.wording import counted, some_of
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.read_comparison import read_comparison
from rag_lab.comparison.tables.comparable import not_compared
from rag_lab.data.sampling import clusters_sentence
from rag_lab.errors import RagLabError
from rag_lab.evaluation.cutoff_caveats import shallow, shallow_sentences, unequal_text
from rag_lab.runs.run_manifest import Change, manifest_diff, suspects
from rag_lab.statistics.families import Options, answers
from rag_lab.statistics.noise_components import NoiseComponents
from rag_lab.statistics.pairwise import Pair, Pairs, differences_table, pairs_among, score_pairs
from rag_lab.statistics.per_question import cluster_labels
from rag_lab.statistics.randomization import Correction
from rag_lab.statistics.summaries import summary


@dataclass(frozen=True)
class AcrossRuns:
    """Two runs compared on the questions that both asked. Variants are named `run/variant_id`.

    summary: as `Comparison.summary`, on the shared questions.
    differences: as `Comparison.differences`, for the quality metrics: each variant of both runs minus the first run's
        baseline.
    same: the columns of `differences`: each variant that both runs have, the second run's minus the first's.
    shared: the questions that both asked, and their clusters.
    changes: what differs between the manifests and plans.
    """

    first: Comparison
    second: Comparison
    names: tuple[str, str]
    shared: Shared
    changes: tuple[Change, ...]
    scores: pd.DataFrame = field(repr=False)
    summary: pd.DataFrame = field(repr=False)
    differences: pd.DataFrame = field(repr=False)
    same: pd.DataFrame = field(repr=False)

    @property
    def sentences(self) -> list[str]:
        """What is compared, and what to look at where the numbers differ."""
        return [
            *self.shared.sentences((self.first, self.second), self.names),
            *self._cut_offs,
            suspects(self.changes),
        ]

    @property
    def _cut_offs(self) -> list[str]:
        """What cut-offs cannot compare between the variants of the two runs; see `Comparison`."""
        runs = (self.first, self.second)
        metrics = dict.fromkeys(metric for run in runs for metric in run.quality_metrics)
        named = zip(self.names, runs, strict=True)
        configs = {f"{name}: {one}": config for name, run in named for one, config in run.configs.items()}
        told = unequal_text(metrics, configs, questions=self.first.asked.values())
        return [*shallow_sentences(shallow(metrics, configs).values()), *told]

    def label(self, name: str) -> str:
        """Return `run: label of the variant` for `run/variant_id`."""
        run, _, variant_id = name.rpartition("/")
        if not run:
            return variant_id
        return f"{run}: {(self.first if run == self.names[0] else self.second).label(variant_id)}"


def compare_runs(
    first: Path | str, second: Path | str, *, correction: Correction = "max_t", pairs: Pairs = "baseline"
) -> AcrossRuns:
    """Compare two runs on the questions that both asked.

    Args:
        first: a run folder; its baseline is the baseline.
        second: another run of the same questions.
        correction: see `compare`.
        pairs: see `compare`; `all` compares all variants of both runs with each other.

    Raises:
        RagLabError: if a folder is no run or has no scores, the runs share no question or declare different clusters,
            or an option is unknown.
    """
    chosen: dict[str, Any] = {"correction": correction, "pairs": pairs}
    runs = read_comparison(first, **chosen), read_comparison(second, **chosen)
    folders = [one.run.path.resolve().name for one in runs]
    names = (folders[0], folders[1]) if folders[0] != folders[1] else (f"{folders[0]}-1", f"{folders[1]}-2")
    both = shared(runs)
    parts = [
        one.scores[one.scores["question_id"].isin(both.questions)].assign(run=name)
        for one, name in zip(runs, names, strict=True)
    ]
    scores = pd.concat(parts, ignore_index=True)
    prefixed = scores.assign(variant_id=scores["run"].astype(str) + "/" + scores["variant_id"].astype(str))
    is_quality = scores["metric"].isin({*runs[0].quality_metrics, *runs[1].quality_metrics})
    quality = prefixed[is_quality]
    scales = {**runs[0].scales, **runs[1].scales}
    configs = {
        f"{name}/{variant}": config
        for name, run in zip(names, runs, strict=True)
        for variant, config in run.pipelines.items()
    }
    compared, same = (
        [replace(one, withheld=not_compared(one.metric, configs, (one.variant_id, one.against))) for one in some]
        for some in (_pairs(runs, names, quality), _same_variant(runs, names, quality))
    )
    options = Options(runs[0].correction, runs[0].run.strict, both.clusters, _noise(runs), scales)
    hypotheses = [one.hypothesis for one in (*compared, *same) if not one.withheld]
    found = answers(quality, hypotheses, options) if hypotheses else {}
    return AcrossRuns(
        first=runs[0],
        second=runs[1],
        names=names,
        shared=both,
        changes=tuple(manifest_diff(runs[0].run, runs[1].run)),
        scores=prefixed,
        summary=summary(prefixed, clusters=both.clusters, scales=scales),
        differences=differences_table(compared, found),
        same=differences_table(same, found),
    )


def _pairs(runs: tuple[Comparison, Comparison], names: tuple[str, str], scores: pd.DataFrame) -> list[Pair]:
    """Return every variant of both runs against the first run's baseline, or all pairs; none without its scores."""
    baseline = f"{names[0]}/{runs[0].run.baseline}"
    variants = list(dict.fromkeys(scores["variant_id"]))
    if baseline not in variants:
        return []
    ordered = [baseline, *(variant for variant in variants if variant != baseline)]
    return score_pairs(scores, pairs_among(ordered, runs[0].pairs), runs[0].main_metric)


def _same_variant(runs: tuple[Comparison, Comparison], names: tuple[str, str], scores: pd.DataFrame) -> list[Pair]:
    """Return each variant that both runs have, the second run's against the first's: there the run is what varies."""
    there = set(scores["variant_id"])
    ids = [plan.variant_id for plan in runs[0].variants]
    pairs = [(f"{names[1]}/{one}", f"{names[0]}/{one}") for one in ids]
    return score_pairs(scores, [pair for pair in pairs if there.issuperset(pair)], runs[0].main_metric)


def _noise(runs: tuple[Comparison, Comparison]) -> dict[str, NoiseComponents]:
    """Return the noise of each metric in the run where it is the larger."""
    found = [(name, noise) for one in runs for name, noise in one.noise.items()]
    return dict(sorted(found, key=lambda pair: pair[1].per_question or 0.0))  # of two of one name the last stays


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
        ids_in_both = f" ({counted(len(others), 'id')} in both, but for different questions)" if others else ""
        raise RagLabError(
            f"{runs[0].run.path} and {runs[1].run.path} share no question{ids_in_both}, so they cannot be compared; "
            "give two runs of one dataset."
        )
    rule = _rule(runs)
    return Shared(same, others, rule, _clusters(runs, same) if rule != "none" else None)


def _asked(comparison: Comparison) -> dict[str, Any]:
    """Return what was asked, by the id of each question that has scores: two datasets may both have a `q1`."""
    scored = set(comparison.scores["question_id"])
    return {name: (one.text, one.history) for name, one in comparison.asked.items() if name in scored}


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
