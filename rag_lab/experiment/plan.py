"""The plan of an experiment: everything is checked, and every question chosen, before anything runs."""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import short_name
from rag_lab._kit.registry import modules_from
from rag_lab._kit.wording import listing
from rag_lab.config import module_problems
from rag_lab.corpus.chunks import late_problem
from rag_lab.data.dataset import Dataset, find_dataset, list_datasets
from rag_lab.data.sampling import cluster_problem
from rag_lab.errors import ConfigError, DatasetError, ModelError, unknown_name
from rag_lab.evaluation import registry
from rag_lab.evaluation.metric import MetricInfo
from rag_lab.experiment import questions as asking
from rag_lab.experiment.built_in_designs import RACING
from rag_lab.experiment.config import SAYS, Draft, ExperimentConfig, Given, Pairs, folder_of, read_experiment
from rag_lab.experiment.design import Expansion, ExperimentError, Variant, Wanted, expand, expand_list, variant_id
from rag_lab.experiment.stage_identities import Readers, limit_problems, model_problem, models_used, run_once
from rag_lab.models import shared
from rag_lab.models.truncation import TokenLength
from rag_lab.rich_display import rich_display
from rag_lab.runs.human_input import margin_problems
from rag_lab.runs.omissions import left_out
from rag_lab.runs.run_folder import RunFolder, VariantPlan
from rag_lab.sources.follow import settled
from rag_lab.stores.registry import store_problem

_LONGEST = 64  # of an experiment's name
MAX_ASKED = 10_000_000  # questions of all variants and repeats; each leaves a line of about 20 KB


@rich_display("rag_lab.notebook.views.pipeline_view:plan_view")
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
    metrics: tuple[registry.ParsedName, ...]
    folder: Path = Path()  # whose files are modules that can be named
    rounds: tuple[tuple[str, ...], ...] = ()
    apart: Mapping[str, Collection[str]] = field(default_factory=dict)
    file: str = ""  # of the experiment, as it was named
    states: Mapping[Path, Dataset] = field(default_factory=dict)  # by folder, of data sets that sources write

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants, baseline first."""
        return self.expansion.variants

    @property
    def deciding_metric(self) -> registry.ParsedName:
        """The metric that decides what is better, the first that is no cost; of a plan that has one."""
        return next(metric for metric in self.metrics if not metric.info.is_cost)

    @property
    def left_out(self) -> dict[str, int]:
        """How many questions of the dataset are not asked, by reason; see `asked.left_out`."""
        elsewhere = {name for ids in self.apart.values() for name in ids}
        others = [question for question in self.dataset.questions if question.question_id not in elsewhere]
        experiment, asked = self.experiment, set(self.questions)
        limit = experiment.limits.questions
        limit = None if limit is None else limit - len(self.apart.get(asking.CHOSE, ()))
        missing = left_out(others, asked, set(self.answered), limit, experiment.seed)
        return {reason: len(ids) for reason, ids in self.apart.items()} | missing

    @property
    def margins(self) -> dict[str, float]:
        """The margin of each metric that has one, by the metric's name in tables."""
        names = {given: metric.name for metric, given in zip(self.metrics, self.experiment.metrics, strict=True)}
        return {names.get(metric, metric): margin for metric, margin in self.experiment.margin.items()}

    @property
    def pairs(self) -> Pairs:
        """The comparisons of two variants that the design declares, as (variant, against), of those that are run."""
        pairs, names = self.experiment.pairs, [variant.variant_id for variant in self.variants]
        if self.experiment.design != "list" or pairs == "baseline":
            return tuple((name, names[0]) for name in names[1:])
        if isinstance(pairs, tuple):
            run_as = {one.label: one.run_as for one in self.expansion.same if one.run_as in names}
            run_as |= {name: name for name in names}
            found = [(run_as[a], run_as[b]) for a, b in pairs if a in run_as and b in run_as]
            if different := dict.fromkeys((a, b) for a, b in found if a != b):
                return tuple(different)
        return tuple((later, earlier) for place, later in enumerate(names) for earlier in names[:place])

    def run_folder(self, path: Path) -> RunFolder:
        """Return the run folder of this plan at `path`; nothing is written."""
        names = dict(zip(self.experiment.metrics, (metric.name for metric in self.metrics), strict=True))
        ids = {one.label: one.run_as for one in self.expansion.same}
        ids |= {one.label: one.variant_id for one in self.variants}
        ids |= {one.variant_id: one.variant_id for one in self.variants}
        # Published figures of what is run, by the variant's id and the metric's name in tables.
        claims = tuple(
            replace(one, variant=ids[one.variant], metric=names.get(one.metric, one.metric))
            for one in self.experiment.claims
            if one.variant in ids
        )
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
            claims=claims,
            file=self.file,
        )


def plan(
    experiment: Given,
    *,
    settings: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    questions: str = "",
    folder: Path | None = None,
) -> Plan:
    """Check an experiment and choose its questions.

    Args:
        experiment: its file, the mapping that would stand in it, or an `ExperimentConfig`.
        settings: dotted keys that are changed in all of its variants.
        only: variants that are run beside the baseline, by id or label; all where empty.
        questions: how many are asked, or with + how many more than the experiment's limit; that where empty.
        folder: where paths and modules are looked for; beside the file, or else in the current folder, where None.

    Raises:
        ExperimentError: naming everything that is wrong with it, its dataset, metrics, models and stores at once.
    """
    folder = (folder or folder_of(experiment)).resolve()
    named = str(experiment) if isinstance(experiment, Path | str) else ""
    name = named or "The experiment"
    with modules_from(folder):
        draft = _with_subset(read_experiment(experiment), settings or {}, only, questions)
        problems = list(draft.problems)
        expansion, dataset = _expand(draft, problems), _dataset(draft, folder, problems)
        if dataset is not None and not draft.config.metrics and "metrics" not in draft.broken:
            metrics = list(registry.default_metrics(dataset.questions))
            draft = replace(draft, config=draft.config.model_copy(update={"metrics": metrics}))
        config = draft.config
        problems += _part_problems(draft, expansion)
        if problems or expansion is None or dataset is None:
            raise ExperimentError(name, problems)
        states = _states(config, expansion, dataset)
        dataset = states.get(dataset.path.resolve(), dataset)
        answers = any(variant.config.answer.is_on for variant in expansion.variants)
        if config.design in (RACING, *asking.SEARCHES):
            try:
                asked = asking.race_questions(dataset.questions, config, answers)
            except ExperimentError as error:
                raise ExperimentError(name, error.problems) from error
        else:
            asked = asking.RaceQuestions((), *asking.choose_questions(dataset.questions, config, answers), {})
        parsed = tuple(map(registry.parse_name, config.metrics))
        expansion = run_once(expansion, readers_of(config, dataset, asked.proof, asked.answered))
        n_variants, n_asked = len(expansion.variants), len(asked.proof) + len(asked.rounds[-1] if asked.rounds else ())
        if asked.rounds and n_variants < 3:  # the baseline among them
            too_few = SAYS["few_to_search" if config.design in asking.SEARCHES else "few_to_race"]
            raise ExperimentError(name, [too_few.format(design=config.design, n=n_variants)])
        if (n := n_variants * n_asked * config.repeats) > MAX_ASKED:
            of = {"variants": n_variants, "questions": n_asked, "repeats": config.repeats, "n": n, "most": MAX_ASKED}
            raise ExperimentError(name, [SAYS["too_many"].format(**of)])
        parts = (config, dataset, expansion, asked.proof, asked.answered, parsed, folder, asked.rounds, asked.apart)
        return Plan(*parts, named, states)


def readers_of(
    config: ExperimentConfig, dataset: Dataset, questions: Sequence[str], answered: Sequence[str]
) -> Readers:
    """Return what metrics and reports read of the questions that are asked."""
    asked, reads = set(questions), registry.reads_of(config.metrics, ())
    contexts = any("passages" in reads(one) for one in dataset.questions if one.question_id in asked)
    turns = any(one.history for one in dataset.questions if one.question_id in asked)
    return Readers(bool(answered), contexts, dataset.language, turns)


def _with_subset(draft: Draft, settings: Mapping[str, Any], only: Sequence[str], questions: str = "") -> Draft:
    """Return an experiment with `settings` (dotted keys) in all of its variants, of which `only` some are run.

    It gets another name, and with it a run folder, as `ablation__final_k-3__only_hyde-always`: what is left out or set
    otherwise replaces no earlier result.
    """
    if not settings and not only and not questions:
        return draft
    given, problems = draft.config, list(draft.problems)
    differing = set(given.factors)
    if given.variants:
        first, *others = [config.flat() for config in given.variants.values()]
        differing = {key for key in first if any(other[key] != first[key] for other in others)}
    problems += [
        f"{key}: the variants differ in it, so that no value can be set for all; choose variants with --only."
        for key in settings
        if key in differing
    ]
    parts = [given.name, *([variant_id(settings, among=settings)] if settings else [])]
    parts += [f"only_{'_'.join(only)}"] if only else []
    limits = given.limits
    if questions:
        more, known = questions.removeprefix("+"), limits.questions
        if not more.isdecimal() or int(more) < 1:
            problems.append(f"--questions is how many, as 200, or how many more, as +50; got {questions!r:.40}.")
        elif more != questions and known is None:
            problems.append("--questions +N adds to limits.questions, which this experiment has not: all are asked.")
        else:
            n = int(more) + (known or 0) * (more != questions)
            limits, parts = limits.model_copy(update={"questions": n}), [*parts, f"questions-{n}"]
    text = "__".join(re.sub(r"[^a-z0-9_-]+", "-", part.lower()).strip("-") for part in parts)
    name = short_name(text, _LONGEST, [dict(settings), list(only), *([questions] if questions else [])])
    changed: dict[str, Any] = {"name": name, "limits": limits, "only": [*given.only, *only]}
    if len(problems) == len(draft.problems):
        try:
            changed["base"] = given.base.override(settings)
            changed["variants"] = {name: config.override(settings) for name, config in given.variants.items()}
        except ConfigError as error:
            problems.append(str(error))
    return replace(draft, config=given.model_copy(update=changed), problems=tuple(problems))


def _expand(draft: Draft, problems: list[str]) -> Expansion | None:
    """Return the variants, those that `only` names by id or label and the baseline alone; what is wrong is added."""
    config = draft.config
    try:
        if config.design != "list" and not config.variants:
            wanted = Wanted(config.n, config.resolution, config.seed, config.only_if)
            found = expand(config.base, config.factors, config.design, wanted)
        elif "variants" in draft.broken:
            return None
        else:
            found = expand_list(config.variants)
        if not config.only:
            return found
        known = [v.variant_id for v in found.variants]
        ids = {v.label: v.variant_id for v in found.variants} | {name: name for name in known}
        if unknown := [unknown_name("variant", name, known) for name in config.only if name not in ids]:
            raise ExperimentError("only", unknown)
    except ExperimentError as error:
        problems += error.problems
        return None
    named, baseline, notices = {ids[name] for name in config.only}, found.baseline.variant_id, found.notices
    variants = tuple(v for v in found.variants if v.variant_id in {*named, baseline})
    if missing := [name for name in known if name not in {*named, baseline}]:
        also = "" if baseline in named else f" {baseline} runs, too: the others are compared with it."
        notices += (f"{len(variants)} of {len(known)} variants are run, without {listing(missing)}.{also}",)
    return Expansion(variants, notices, found.same)


def _dataset(draft: Draft, folder: Path, problems: list[str]) -> Dataset | None:
    """Return the data set: by its name, by a path from the experiment's file, or by one from here."""
    if "dataset" in draft.broken:
        return None
    name = draft.config.dataset
    path = folder / Path(name).expanduser()
    try:
        dataset = Dataset.load(path if path.exists() and name not in dict(list_datasets()) else name)
    except DatasetError as error:
        problems.append(f"dataset: {error}")
        return None
    if not dataset.questions:
        problems.append(f"dataset: {name} has no usable question; see `rag-lab datasets check`.")
    elif problem := cluster_problem(dataset.questions, draft.config.clusters):
        problems.append(problem)
    return dataset


def _states(config: ExperimentConfig, expansion: Expansion, dataset: Dataset) -> dict[Path, Dataset]:
    """Return the states that the variants read of data sets which sources write, by folder."""
    read = [variant.config.flat() for variant in expansion.variants]
    read += [{key: value} for key, values in config.factors.items() for value in values]
    names = [one.get(key) for one in read for key in ("corpus.folder", "corpus.distractors_from")]
    names += [name.strip() for one in read for name in one.get("retrieval.also", "").split(",")]
    states: dict[Path, Dataset] = {}
    for place in [dataset.location, *sorted({*filter(None, names)})]:
        with suppress(DatasetError):  # which is said where it is read
            path = find_dataset(place).resolve()
            if path not in states and (state := settled(place)):
                states[path] = state
    return states


def _part_problems(draft: Draft, expansion: Expansion | None) -> list[str]:
    """Return what keeps a metric, model, store or module of any variant from being used, or a margin from holding."""
    config = draft.config
    problems = registry.problems(config.metrics, has_judge=config.judge is not None, language=config.judge_language)
    if not draft.broken & {"metrics", "margin"}:
        infos: dict[str, MetricInfo] = {}
        for metric in config.metrics:
            with suppress(ConfigError):  # which is among those that were found
                parsed = registry.parse_name(metric)
                infos |= {metric: parsed.info, parsed.name: parsed.info}
        problems += margin_problems(config.margin, infos)
    problems += asking.objective_problems(config)
    variants = expansion.variants if expansion else ()
    known = [*(one.variant_id for one in variants), *(one.label for one in variants)]
    known += [one.label for one in expansion.same] if expansion else []
    for claim in config.claims:
        if claim.metric not in config.metrics and "metrics" not in draft.broken:
            problems.append(f"claims: {unknown_name('metric', claim.metric, config.metrics)}")
        if known and not config.only and claim.variant not in known:
            problems.append(f"claims: {unknown_name('variant', claim.variant, known)}")
    configs = [variant.config for variant in variants] or [config.base]
    models = {(role, text) for one in configs for role, text in models_used(one, config.metrics).items()}
    models |= {("judge", judge) for judge in config.judges}
    problems += [problem for role, text in sorted(models) if (problem := model_problem(role, text))]
    problems += limit_problems(config.limits, models)
    stores = sorted({one.store.name for one in configs if one.searches_vectors})
    problems += [problem for name in stores if (problem := store_problem(name))]
    by_tokens = {(one.models.embedding, one.corpus.chunk_tokens or 0) for one in configs if one.corpus.cuts_by_tokens}
    with suppress(ModelError):  # which is among the problems of models
        late = {one.models.embedding for one in configs if one.corpus.context == "late" and one.searches_vectors}
        problems += [late_problem(shared.embedder(name), name) for name in sorted(late)]
        problems += [TokenLength(shared.embedder(name)).problem(size, name) for name, size in sorted(by_tokens)]
    return [*filter(None, problems), *module_problems(configs)]
