"""`compare`: pipelines in memory, or a run folder, as one comparison that shows itself.

Pipelines leave a run folder below the home folder, laid out as a sweep's; so reports and comparisons are made of both
in the same way, at any later time.
"""

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from tqdm.auto import tqdm

from rag_lab._kit import digest, wording
from rag_lab._kit.home import PRIVATE
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.evaluation import registry
from rag_lab.experiment.config import ExperimentConfig, Limits
from rag_lab.experiment.design import BASELINE, Expansion, Variant, variant_label
from rag_lab.experiment.manifest import VariantState, now
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.questions import choose_questions
from rag_lab.experiment.run import outputs, variant_work
from rag_lab.experiment.run.progress import is_watched
from rag_lab.pipeline import Pipeline
from rag_lab.report import shown_comparison
from rag_lab.runs import human_input
from rag_lab.stages.stage import Off
from rag_lab.statistics import families, randomization

_LONGEST = 64  # characters of a comparison's name
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_WORDS = re.compile(r"[A-Za-z0-9._-]+")
Tell = Callable[[str, float], None]  # the step that begins, and which share of the work is done


def compare(
    runs: Mapping[str, Pipeline] | Path | str,
    metrics: Sequence[registry.AnyMetric] = (),
    *,
    questions: int | Sequence[str] | None = None,
    correction: randomization.Correction = "max_t",
    pairs: families.Pairs = "baseline",
    margin: Mapping[str, float] | None = None,
    judge: str | Sequence[str] | None = None,
    judge_language: str = "",
    metric_embedding: str | None = None,
    repeats: int = 1,
    seed: int = 0,
    progress: bool | Tell = True,
) -> shown_comparison.ShownComparison:
    """Compare pipelines in memory, which are run, or the variants of a run folder.

    What stages and metrics compute is remembered as a sweep's is; stopped and called again, it goes on where it was.
    Answers are generated where a metric may read them, and where no question has a label: then no pipeline is called
    better, and what each changes is told. The run is kept in `<home>/compared/`.

    Args:
        runs: a folder written by `rag-lab sweep`, or pipelines by name, the baseline first, all on the same documents.
        metrics: names, functions or objects, the one that decides first; what the labels allow where none is given.
        questions: how many, a stratified sample, or their ids, or texts of your own; all where None.
        correction: of the p-values of a family: `max_t` (step-down maximum), `bh` (Benjamini-Hochberg, weaker, for
            screening many variants) or `none`.
        pairs: every variant against the `baseline`, or `all` pairs; with more comparisons, each is harder to find.
        margin: by metric the largest mean loss that you would accept, so that what costs less may be used, or left out.
            Of pipelines it is declared before they run, of a folder it is shown as post hoc.
        judge: a model, where a metric needs one; of several each further one scores the judged metrics again.
        judge_language: of the examples in the judge's prompts, as german; English where empty.
        metric_embedding: the model that metrics embed with; that of the first pipeline where None.
        repeats: how often each question is asked.
        seed: draws the sample.
        progress: show a bar, or what is told of each step; what it raises ends the comparison.

    Raises:
        RagLabError: if the folder is no run, has no scores yet, the pipelines cannot be compared, or an option is
            unknown.
    """
    if isinstance(runs, Path | str):
        if metrics or questions is not None or judge or repeats != 1:
            raise ConfigError(f"{runs} was run already; give pipelines to choose metrics and questions.")
        return shown_comparison.compare(runs, correction=correction, pairs=pairs, margin=margin)
    if pairs not in get_args(families.Pairs):
        raise ConfigError(unknown_name("choice of pairs", pairs, get_args(families.Pairs)))
    pipelines, ids, n = _asking(_pipelines(runs), questions)
    first = next(iter(pipelines.values()))
    chosen = [question for question in first.dataset.questions if not ids or question.question_id in ids]
    is_labelled = any(question.is_labelled for question in chosen)
    metrics, judge = registry.with_judges(tuple(metrics) or registry.default_metrics(chosen), judge)
    if problems := registry.problems(metrics, judge is not None, language=judge_language):
        raise ConfigError(" ".join(problems))
    parsed = [registry.parse_name(metric) for metric in metrics]
    names = [metric.name for metric in parsed]
    if wrong := human_input.margin_problems(margin or {}, {metric.name: metric.info for metric in parsed}):
        raise ConfigError(" ".join(wrong))
    asked_for = [names, ids, n, judge, judge_language, metric_embedding, repeats, seed]
    made_of = [first.dataset.digest, {name: _identity(pipeline) for name, pipeline in pipelines.items()}, asked_for]
    named = re.sub(r"[^a-z0-9_]+", "-", "_vs_".join(pipelines).lower()).strip("_-")
    experiment = ExperimentConfig(
        name=digest.short_name(f"{named}-{digest.digest_word(made_of)}".lstrip("-"), _LONGEST, made_of),
        question=f"{'Which is better' if is_labelled else 'What changes'}: {', '.join(pipelines)}?",
        dataset=first.dataset.name,
        design="list",
        pairs=pairs,
        metrics=names,
        margin=dict(margin or {}),
        judge=judge,
        judge_language=judge_language,
        repeats=repeats,
        limits=Limits(questions=n),
        seed=seed,
    )
    answers = not is_labelled or any(metric.info.reads_answers for metric in parsed)
    asked, answered = choose_questions(first.dataset.questions, experiment, answers, parsed)
    if ids:
        asked, answered = ids, tuple(name for name in ids if name in set(answered))
    expansion, used = _expansion(pipelines)
    plan = Plan(experiment, first.dataset, expansion, asked, answered, tuple(parsed))
    work = {
        name: variant_work.VariantWork(
            pipeline, asked, answered, metrics, judge, judge_language,
            metric_embedding or first.config.models.embedding, repeats,
        )
        for name, pipeline in used.items()
    }  # fmt: skip
    return shown_comparison.compare(_run(plan, work, first.home, progress), correction=correction, pairs=pairs)


def _shown_in(bar: Any, name: str, place: int, tell: Tell | None, pipeline: Pipeline) -> variant_work.VariantProgress:
    """Return what shows in the one bar for all pipelines at which stage the one of this name is."""
    on = [one.name for one in pipeline.stages if not isinstance(one, Off)]
    passed = float(place)  # pipelines before this one; and of this one the share of its stages

    def show(stage: str, done: int, total: int | None) -> None:
        nonlocal passed
        step = stage if total is None else f"{stage} {done}/{total}"
        if stage in on:
            passed = place + (on.index(stage) + done / max(total or 0, 1)) / (len(on) + 1)  # scores come last
        bar.set_postfix_str(f"{name}: {step}")
        if tell:
            tell(f"{name}: {step}", passed / bar.total)

    return variant_work.VariantProgress(None, show)


def _run(plan: Plan, work: Mapping[str, variant_work.VariantWork], home: Path, progress: bool | Tell) -> Path:
    """Run the pipelines and leave their run folder, whole or not at all; what is computed is remembered anyway."""
    target = home / "compared" / plan.experiment.name
    target.parent.mkdir(PRIVATE, parents=True, exist_ok=True)
    start = now()
    with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as scratch:
        run = human_input.dated(plan.run_folder(Path(scratch, "run")), target)
        run.write_plan()
        tell = progress if callable(progress) else None
        shown = progress is True and is_watched()
        states = []
        with tqdm(total=len(work), desc="pipelines", unit="pipeline", disable=not shown) as bar:
            for place, (name, variant) in enumerate(work.items()):
                began_s = time.monotonic()
                variant.out = run.variant_dir(name)
                variant.progress = _shown_in(bar, name, place, tell, variant.pipeline)
                variant.run()
                variant.score()
                variant.save()
                seconds = time.monotonic() - began_s
                states.append(VariantState(name, "ok", seconds=seconds, record=variant.record()))
                bar.update()
        outputs.finish(plan, run, states, start, has_report=False)
        if (target / human_input.PREFERENCES_FILE).is_file():  # what a person did is not computed again
            shutil.copy2(target / human_input.PREFERENCES_FILE, run.path)
        digest.put_in_place(run.path, target)
    return target


def _pipelines(runs: Mapping[str, Pipeline]) -> dict[str, Pipeline]:
    """Return the pipelines by file-safe names."""
    if not isinstance(runs, Mapping) or not runs:
        raise ConfigError(f"Give a run folder or pipelines by name, as {{'base': Pipeline(...)}}, not {runs!r:.80}.")
    found: dict[str, Pipeline] = {}
    for name, pipeline in runs.items():
        if not isinstance(pipeline, Pipeline):
            raise ConfigError(f"{name!r} is {type(pipeline).__name__} {pipeline!r:.60}; give a Pipeline.")
        safe = _UNSAFE.sub("-", str(name)).strip(".-")[:64]
        if not safe or safe.casefold() in {other.casefold() for other in found}:
            raise ConfigError(f"The name {name!r} cannot name a folder beside the others; give another one.")
        found[safe] = pipeline
    first = next(iter(found))
    for name, pipeline in found.items():
        if pipeline.dataset.digest != found[first].dataset.digest:
            raise ConfigError(f"{first} and {name} have not the same documents and questions; give both the same.")
    return found


def _asking(
    pipelines: dict[str, Pipeline], questions: int | Sequence[str] | None
) -> tuple[dict[str, Pipeline], tuple[str, ...], int | None]:
    """Return the pipelines with their questions, and the ids to ask, in the order of the data set, or how many to draw.

    Data sets are read anew, since labels may have been written while the pipelines were there.
    """
    texts = False  # a question, and not the id of one, in which no space stands
    if not isinstance(questions, str | int | None):
        texts = any(not isinstance(one, str) or len(one.split()) > 1 for one in questions)
    dataset = next(iter(pipelines.values())).asking(questions if texts else None).dataset
    if not dataset.questions:
        raise ConfigError(f'{dataset.name} has no questions; give some, as in questions=["What does it weigh?"].')
    pipelines = {name: one.sharing(dataset) for name, one in pipelines.items()}
    if texts or questions is None:
        return pipelines, (), None
    if isinstance(questions, int) and not isinstance(questions, bool) and questions > 0:
        return pipelines, (), questions
    if isinstance(questions, str | int) or not isinstance(questions, Sequence) or not questions:
        raise ConfigError(f"questions is how many (1 or more) or a list of ids, got {questions!r:.80}.")
    known = [question.question_id for question in dataset.questions]
    for name in (name for name in questions if name not in known):
        unknown = unknown_name("question", str(name), known[:20])
        raise ConfigError(f"{unknown} A text of more than one word is a question.")
    return pipelines, tuple(name for name in known if name in set(questions)), None


def _expansion(pipelines: Mapping[str, Pipeline]) -> tuple[Expansion, dict[str, Pipeline]]:
    """Return the variants and their pipelines; one that is the same as an earlier one is run once."""
    first = next(iter(pipelines.values()))
    before = {**first.config.flat(), **first.replaced}
    seen: dict[str, str] = {}
    variants: list[Variant] = []
    notices, used = [], {}
    for name, pipeline in pipelines.items():
        identity = digest.digest(_identity(pipeline))
        if identity in seen:
            notices.append(f"{name} is the same pipeline as {seen[identity]} and is run once.")
            continue
        seen[identity], used[name] = name, pipeline
        described = {**pipeline.config.flat(), **pipeline.replaced}  # its keys, and the objects in its places
        changes = {key: value for key, value in described.items() if before.get(key) != value}
        text, label = variant_label(changes), name  # with its changes, where the name does not say them
        if name == wording.letters(len(variants)):
            label = text or BASELINE
        elif text and name not in _WORDS.findall(text):
            label = f"{name}: {text}"
        variants.append(Variant(name, label, changes, pipeline.config))
    return Expansion(tuple(variants), tuple(notices)), used


def _identity(pipeline: Pipeline) -> Any:
    sources = {
        slot: digest.source_digest(made if hasattr(made, "__name__") else type(made))
        for slot, made in pipeline.overrides.items()
    }
    own = {place: prompt.digest for place, prompt in pipeline.config.prompts.custom().items()}
    return [pipeline.config.model_dump(), pipeline.replaced, sources, *([own] if own else [])]
