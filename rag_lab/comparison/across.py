"""Two runs of the same questions: their variants against each other, and what changed between the runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from rag_lab._kit.wording import counted, some_of
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.tables.changes import Changed, changed_answers
from rag_lab.data.sampling import clusters_sentence
from rag_lab.errors import RagLabError
from rag_lab.evaluation.cutoff_caveats import not_compared, shallow, shallow_sentences, unequal_text
from rag_lab.runs.run_manifest import Change, manifest_diff, suspects
from rag_lab.statistics.families import Options, Pairs, answers, differences_table, pairs_among, score_pairs
from rag_lab.statistics.randomization import Correction
from rag_lab.statistics.summaries import cluster_labels, summary

Runs = tuple[Comparison, Comparison]


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
    shared: "Shared"
    changes: tuple[Change, ...]
    scores: pd.DataFrame = field(repr=False)
    summary: pd.DataFrame = field(repr=False)
    differences: pd.DataFrame = field(repr=False)
    same: pd.DataFrame = field(repr=False)

    @property
    def sentences(self) -> list[str]:
        """What is compared, and what to look at where the numbers differ."""
        runs, both = (self.first, self.second), self.shared
        asked = [len(one.questions) for one in runs]
        told = [
            f"{self.names[0]} and {self.names[1]} share {len(both.questions)} of {asked[0]} and {asked[1]} questions; "
            "all that follows is on these."
        ]
        if both.others:
            ids, some = counted(len(both.others), "id"), some_of(both.others)
            told.append(f"Under {ids} the runs ask different questions, which are left out: {some}.")
        if both.clusters is not None:
            declare = [name for name, one in zip(self.names, runs, strict=True) if one.run.clusters != "none"]
            only = f" Only {declare[0]} declares this." if len(declare) == 1 else ""
            told.append(clusters_sentence(both.questions, both.clusters, both.rule) + only)
        if self.changed_answers:
            old = sum(bool(one[-1]) for one in self.changed_answers)
            n = counted(len(self.changed_answers), "answer")
            told.append(f"{n} changed; {old} of those before cite words that stand in their file no more.")
        metrics = dict.fromkeys(metric for run in runs for metric in run.quality_metrics)
        named = zip(self.names, runs, strict=True)
        configs = {f"{name}: {one}": config for name, run in named for one, config in run.configs.items()}
        unequal = unequal_text(metrics, configs, questions=self.first.asked.values())
        return [*told, *shallow_sentences(shallow(metrics, configs).values()), *unequal, suspects(self.changes)]

    @cached_property
    def changed_answers(self) -> list[Changed]:
        """What the second run changed of the answers of the same variants."""
        before, after = self.first.traces, self.second.traces
        both = [(self.first.label(one), before[one], after[one]) for one in before if one in after]
        return [changed for each in both for changed in changed_answers(*each)]

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

    The baseline is that of the first run. `correction`, `pairs`: see `compare`; `all` are all variants of both runs.

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
    main, there = runs[0].main_metric, set(quality["variant_id"])
    baseline, chosen_pairs = f"{names[0]}/{runs[0].run.baseline}", []
    if baseline in there:
        others = [variant for variant in dict.fromkeys(quality["variant_id"]) if variant != baseline]
        chosen_pairs = pairs_among([baseline, *others], runs[0].pairs)
    # Of each variant that both runs have, the second run's against the first's: there the run is what varies.
    twins = [(f"{names[1]}/{plan.variant_id}", f"{names[0]}/{plan.variant_id}") for plan in runs[0].variants]
    compared, same = (
        [
            replace(one, withheld=not_compared(one.metric, configs, (one.variant_id, one.against)))
            for one in score_pairs(quality, some, main)
        ]
        for some in (chosen_pairs, [pair for pair in twins if there.issuperset(pair)])
    )
    noise = sorted((one for run in runs for one in run.noise.items()), key=lambda pair: pair[1].per_question or 0.0)
    larger = dict(noise)  # of two of one name the last stays
    options = Options(runs[0].correction, runs[0].run.strict, both.clusters, larger, scales)
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


def shared(runs: Runs) -> Shared:
    """Return what both runs asked."""
    asked = []
    for one in runs:  # two datasets may both have a `q1`
        scored = set(one.scores["question_id"])
        asked.append({name: (q.text, q.history) for name, q in one.asked.items() if name in scored})
    ids = [name for name in asked[0] if name in asked[1]]
    same = tuple(name for name in ids if asked[0][name] == asked[1][name])
    others = tuple(name for name in ids if asked[0][name] != asked[1][name])
    first, second = (one.run for one in runs)
    if not same:
        ids_in_both = f" ({counted(len(others), 'id')} in both, but for different questions)" if others else ""
        raise RagLabError(
            f"{first.path} and {second.path} share no question{ids_in_both}, so they cannot be compared; give two runs "
            "of one dataset."
        )
    # The rule that either run declares: to take dependent questions for independent ones finds what is not.
    declared = sorted({first.clusters, second.clusters} - {"none"})
    if len(declared) == 2:
        raise RagLabError(
            f"{first.path} declares `clusters: {first.clusters}` and {second.path} `clusters: {second.clusters}`, so "
            "no one interval is right for both; give two runs that declare the same."
        )
    if not declared:
        return Shared(same, others, "none", None)
    # Tags and evidence may differ, too: the clusters of the run in which they leave fewer units.
    clusters = min((one.clusters or {} for one in runs), key=lambda found: len(set(cluster_labels(same, found))))
    return Shared(same, others, declared[0], clusters)
