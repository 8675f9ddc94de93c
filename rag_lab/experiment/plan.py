"""The plan of an experiment: everything is checked, and every question chosen, before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_lab._kit.module_files import modules_from
from rag_lab.config import PipelineConfig, module_problems
from rag_lab.data.dataset import Dataset, list_datasets
from rag_lab.data.sampling import cluster_problem
from rag_lab.errors import ConfigError, DatasetError
from rag_lab.evaluation.applicability import reads_of
from rag_lab.evaluation.metric import MetricInfo
from rag_lab.evaluation.registry import ParsedName, default_metrics, parse_name
from rag_lab.evaluation.registry import problems as metric_problems
from rag_lab.experiment.config import Draft, ExperimentConfig, Given, folder_of, name_of, read_experiment
from rag_lab.experiment.design import Expansion, Variant, expand, expand_list
from rag_lab.experiment.designs.design_keys import RACING, Pairs, primary_pairs
from rag_lab.experiment.experiment_error import ExperimentError
from rag_lab.experiment.model_checks import limit_problems, model_problem, models_used
from rag_lab.experiment.questions import (
    CHOSE,
    SEARCHES,
    RaceQuestions,
    choose_questions,
    objective_problems,
    race_questions,
    variants_problem,
)
from rag_lab.experiment.same_pipeline import run_once
from rag_lab.experiment.stage_identities import Readers
from rag_lab.experiment.subset import chosen, with_subset
from rag_lab.rich_display import rich_display
from rag_lab.runs.margins import margin_problems
from rag_lab.runs.omissions import left_out
from rag_lab.runs.run_folder import RunFolder, VariantPlan
from rag_lab.stores.registry import store_problem

MAX_ASKED = 10_000_000  # questions of all variants and repeats; each leaves a line of about 20 KB


@rich_display("rag_lab.notebook.views.experiment_view:plan_view")
@dataclass(frozen=True, slots=True)
class Plan:
    """An experiment that can run. `questions` are the ids asked, `answered` those for which answers are generated.

    In a race they are those of the proof; `rounds` are those that drop variants before it, each with those of the round
    before. In a design that chooses as it goes, `rounds` holds those that choose once for each stage, and the variants
    stand for those that will be made. `apart` are the ids that are not asked here as they are asked elsewhere, by the
    reason.
    """

    experiment: ExperimentConfig
    dataset: Dataset
    expansion: Expansion
    questions: tuple[str, ...]
    answered: tuple[str, ...]
    metrics: tuple[ParsedName, ...]
    folder: Path = Path()  # whose files are modules that can be named
    rounds: tuple[tuple[str, ...], ...] = ()
    apart: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants, baseline first."""
        return self.expansion.variants

    @property
    def left_out(self) -> dict[str, int]:
        """How many questions of the dataset are not asked, by reason; see `asked.left_out`."""
        elsewhere = {name for ids in self.apart.values() for name in ids}
        others = [question for question in self.dataset.questions if question.question_id not in elsewhere]
        experiment, asked = self.experiment, set(self.questions)
        limit = experiment.limits.questions
        limit = None if limit is None else limit - len(self.apart.get(CHOSE, ()))
        missing = left_out(others, asked, set(self.answered), limit, experiment.seed)
        return {reason: len(ids) for reason, ids in self.apart.items()} | missing

    @property
    def margins(self) -> dict[str, float]:
        """The margin of each metric that has one, by the metric's name in tables."""
        names = {given: metric.name for metric, given in zip(self.metrics, self.experiment.metrics, strict=True)}
        return {names.get(metric, metric): margin for metric, margin in self.experiment.margin.items()}

    @property
    def pairs(self) -> Pairs:
        """The comparisons of two variants that the design declares, as (variant, against)."""
        names = [variant.variant_id for variant in self.variants]
        same = {one.label: one.run_as for one in self.expansion.same}
        return primary_pairs(names, self.experiment.design, self.experiment.pairs, same)

    def run_folder(self, path: Path) -> RunFolder:
        """Return the run folder of this plan at `path`; nothing is written."""
        return RunFolder(
            path=path,
            name=self.experiment.name,
            question=self.experiment.question,
            dataset=self.dataset.name,
            baseline=self.expansion.baseline.variant_id,
            metrics=tuple(metric.name for metric in self.metrics),
            repeats=self.experiment.repeats,
            variants=tuple(VariantPlan(v.variant_id, v.label, dict(v.changes)) for v in self.variants),
            questions=self.questions,
            answered=self.answered,
            left_out=self.left_out,
            clusters=self.experiment.clusters,
            own_metrics={metric.name: metric.info for metric in self.metrics if metric.is_custom},
            design=self.experiment.design,
            pairs=self.pairs,
            margins=self.margins,
            same=self.expansion.same,
            strict=self.experiment.strict,
        )


def plan(
    experiment: Given,
    *,
    settings: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    folder: Path | None = None,
) -> Plan:
    """Check an experiment and choose its questions.

    Args:
        experiment: its file, the mapping that would stand in it, or an `ExperimentConfig`.
        settings: dotted keys that are changed in all of its variants.
        only: variants that are run beside the baseline, by id or label; all where empty.
        folder: where paths and modules are looked for; beside the file, or else in the current folder, where None.

    Raises:
        ExperimentError: naming everything that is wrong with it, its dataset, metrics, models and stores at once.
    """
    folder = (folder or folder_of(experiment)).resolve()
    with modules_from(folder):
        return _plan(name_of(experiment), with_subset(read_experiment(experiment), settings or {}, only), folder)


def _plan(name: str, draft: Draft, folder: Path) -> Plan:
    problems = list(draft.problems)
    expansion = _expand(draft, problems)
    dataset = _dataset(draft, folder, problems)
    if dataset is not None and not draft.config.metrics and "metrics" not in draft.broken:
        metrics = list(default_metrics(dataset.questions))
        draft = replace(draft, config=draft.config.model_copy(update={"metrics": metrics}))
    problems += _metric_problems(draft)
    problems += objective_problems(draft.config)
    problems += _model_problems(draft, expansion)
    problems += _store_problems(draft, expansion)
    problems += module_problems(_configs(draft, expansion))
    if problems or expansion is None or dataset is None:
        raise ExperimentError(name, problems)
    answers = any(variant.config.answer.is_on for variant in expansion.variants)
    asked = _asked(name, draft.config, dataset, answers)
    expansion = run_once(expansion, readers_of(draft.config, dataset, asked.proof, asked.answered))
    if asked.rounds and (problem := variants_problem(len(expansion.variants), draft.config.design)):
        raise ExperimentError(name, [problem])
    n_asked = len(asked.proof) + len(asked.rounds[-1] if asked.rounds else ())
    if problem := _size_problem(len(expansion.variants), n_asked, draft.config.repeats):
        raise ExperimentError(name, [problem])
    parsed = tuple(map(parse_name, draft.config.metrics))
    return Plan(
        draft.config, dataset, expansion, asked.proof, asked.answered, parsed, folder, asked.rounds, asked.apart
    )


def readers_of(
    config: ExperimentConfig, dataset: Dataset, questions: Sequence[str], answered: Sequence[str]
) -> Readers:
    """Return what metrics and reports read of the questions that are asked."""
    asked, reads = set(questions), reads_of(config.metrics, ())
    contexts = any("passages" in reads(one) for one in dataset.questions if one.question_id in asked)
    turns = any(one.history for one in dataset.questions if one.question_id in asked)
    return Readers(bool(answered), contexts, dataset.language, turns)


def _asked(name: str, experiment: ExperimentConfig, dataset: Dataset, answers: bool) -> RaceQuestions:
    """Return the questions of a race, or of a sweep without rounds."""
    if experiment.design not in (RACING, *SEARCHES):
        return RaceQuestions((), *choose_questions(dataset.questions, experiment, answers), {})
    try:
        return race_questions(dataset.questions, experiment, answers)
    except ExperimentError as error:
        raise ExperimentError(name, error.problems) from error


def _size_problem(n_variants: int, n_questions: int, repeats: int) -> str:
    """Return what makes the plan too large to be kept and compared, or ''."""
    n = n_variants * n_questions * repeats
    if n <= MAX_ASKED:
        return ""
    return (
        f"The plan asks {n_variants:,} variants x {n_questions:,} questions x {repeats:,} repeats = {n:,} times, "
        f"and at most {MAX_ASKED:,} are allowed; lower limits.questions, repeats or the number of variants."
    )


def _expand(draft: Draft, problems: list[str]) -> Expansion | None:
    config = draft.config
    try:
        if config.design == "list" or config.variants:
            return None if "variants" in draft.broken else chosen(expand_list(config.variants), config.only)
        return chosen(expand(config.base, config.factors, config.design, config.wanted), config.only)
    except ExperimentError as error:
        problems += error.problems
        return None


def _dataset(draft: Draft, folder: Path, problems: list[str]) -> Dataset | None:
    if "dataset" in draft.broken:
        return None
    try:
        dataset = Dataset.load(_dataset_path(draft.config.dataset, folder))
    except DatasetError as error:
        problems.append(f"dataset: {error}")
        return None
    if not dataset.questions:
        problems.append(f"dataset: {draft.config.dataset} has no usable question; see `rag-lab datasets check`.")
    elif problem := cluster_problem(dataset.questions, draft.config.clusters):
        problems.append(problem)
    return dataset


def _dataset_path(dataset: str, folder: Path) -> str | Path:
    """Return a path that leads from the experiment's file to a folder; else the name, or the path from here."""
    is_name = dataset in dict(list_datasets())
    path = folder / Path(dataset).expanduser()
    return path if path.exists() and not is_name else dataset


def _metric_problems(draft: Draft) -> list[str]:
    config = draft.config
    found = metric_problems(config.metrics, has_judge=config.judge is not None, language=config.judge_language)
    if draft.broken & {"metrics", "margin"}:
        return found
    infos: dict[str, MetricInfo] = {}
    for metric in config.metrics:
        with suppress(ConfigError):  # which is among those that were found
            parsed = parse_name(metric)
            infos |= {metric: parsed.info, parsed.name: parsed.info}
    return found + margin_problems(config.margin, infos)


def _store_problems(draft: Draft, expansion: Expansion | None) -> list[str]:
    """Return what keeps the vector store of any variant that searches one from being used."""
    names = {config.store.name for config in _configs(draft, expansion) if config.searches_vectors}
    return [problem for name in sorted(names) if (problem := store_problem(name))]


def _configs(draft: Draft, expansion: Expansion | None) -> list[PipelineConfig]:
    return [variant.config for variant in expansion.variants] if expansion else [draft.config.base]


def _model_problems(draft: Draft, expansion: Expansion | None) -> list[str]:
    """Return what keeps a model of any variant, or the judge, from being used."""
    metrics = draft.config.metrics
    configs = _configs(draft, expansion)
    needed = {(role, text) for config in configs for role, text in models_used(config, metrics).items()}
    if draft.config.judge is not None:
        needed.add(("judge", draft.config.judge))
    problems = [problem for role, text in sorted(needed) if (problem := model_problem(role, text))]
    return problems + limit_problems(draft.config.limits, needed)
