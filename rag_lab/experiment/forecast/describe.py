"""What a plan would do, as text for `rag-lab sweep` and its `--dry-run`."""

from rag_lab._kit.home import usable_home
from rag_lab._kit.registry import modules_from
from rag_lab._kit.wording import listing
from rag_lab.data.labels import names_file_alone, whole_files_sentences
from rag_lab.data.sampling import cluster_proposal, clusters_of, clusters_sentence
from rag_lab.evaluation.cutoff_caveats import shallow, shallow_sentences, unequal_text
from rag_lab.evaluation.registry import ExpectedGap, compares_passages, expected_gaps
from rag_lab.experiment.built_in_designs import STAGED, stages_of
from rag_lab.experiment.forecast.cost_estimate import cost_notes, cost_table, estimate
from rag_lab.experiment.forecast.truncation import refusals, truncation_sentences, truncations_of
from rag_lab.experiment.forecast.work import WorkTree
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.questions import SEARCHES
from rag_lab.experiment.race import aims, deciding_metric, full_plan
from rag_lab.experiment.stage_identities import models_asked
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question
from rag_lab.report.plan_tree import tree_lines
from rag_lab.report.table import Table
from rag_lab.runs.omissions import asked_sentence

TREE_TITLE = "Stages that variants share, with what is left to do on each branch"


def describe(plan: Plan) -> str:
    """Return the variants, the questions, the bill, models and metrics. Nothing is run to find out."""
    # with the statistics, which a sweep does not need
    from rag_lab.experiment.forecast.power_text import declared_sentences, not_compared_sentence

    grown = WorkTree()
    bill, models, tree = estimate(plan, tree=grown), models_table(plan), grown.tree()
    parts = [
        not_compared_sentence(plan),
        f"{plan.experiment.name}: {plan.experiment.question}",
        questions_sentence(plan),
        variants_table(plan).with_notes(),
        "\n".join([f"{TREE_TITLE}:", *tree_lines(tree)]) if tree and tree.branches else "",
        rounds_table(plan).with_notes(race_notes(plan)) if plan.rounds else "",
        cost_table(bill).with_notes(cost_notes(bill, plan.experiment.limits)),
        models.with_notes() if models.rows else "Models: none",
        f"Metrics: {', '.join(plan.experiment.metrics)}",
        "\n".join(declared_sentences(plan)),
        *notes_of(plan),
    ]
    return "\n\n".join(filter(None, parts))


def notes_of(plan: Plan) -> list[str]:
    """Return what is to be known of variants and metrics before it runs, and what is left out."""
    found = truncations_of(plan)
    truncated = refusals(found, plan) or truncation_sentences(found, plan)
    return [
        *(f"Note: {notice}" for notice in (*plan.expansion.notices, *cut_off_sentences(plan), *truncated)),
        *(["\n".join(sentences)] if (sentences := not_applicable_sentences(plan)) else []),
        *(f"Left out: {problem}" for problem in plan.dataset.problems),
    ]


def questions_sentence(plan: Plan) -> str:
    """Return how many questions are asked, how often, and how many of them are answered, and why not all are."""
    repeats, limit, why = plan.experiment.repeats, plan.experiment.limits.answers, ""
    if len(plan.answered) < len(plan.questions):
        why = "" if limit is None else f" (limits.answers: {limit})"
        if not any(variant.config.answer.is_on for variant in plan.variants):
            why = " (no variant answers: answer.name is none)"
    asked = (
        f"Dataset {plan.dataset.name}: {asked_sentence(len(plan.questions), plan.left_out)} Each is asked "
        f"{'once' if repeats == 1 else f'{repeats} times'}, {len(plan.answered)} of them are answered{why}."
    )
    rule = plan.experiment.clusters
    clusters = clusters_of(plan.dataset.questions, rule)
    if clusters is not None:
        return f"{asked} {clusters_sentence(plan.questions, clusters, rule)}"
    return f"{asked} {cluster_proposal(_asked(plan), rule)}".rstrip()


def variants_table(plan: Plan) -> Table:
    """Return a row for each variant, the baseline first."""
    changes = {one.variant_id: [f"{key} = {value}" for key, value in one.changes.items()] for one in plan.variants}
    rows = tuple((name, ", ".join(some) or "-") for name, some in changes.items())
    title = f"{len(plan.variants)} variants ({plan.experiment.design})"
    return Table(title, ("variant", "differs from the baseline in"), rows, 2)


def models_table(plan: Plan) -> Table:
    """Return a row for each role and model that any variant or metric asks."""
    metrics = plan.experiment.metrics
    with modules_from(plan.folder):
        used = {(role, spec) for v in plan.variants for role, spec in models_asked(v.config, metrics).items()}
    if plan.experiment.judge is not None:
        used.add(("judge", plan.experiment.judge))
    return Table("Models", ("role", "model"), tuple(sorted(used)), 2)


def not_applicable_sentences(plan: Plan) -> list[str]:
    """Return one sentence for each metric and reason, with the variants where they are not all; labels come first."""
    questions = _asked(plan)
    variants_of: dict[ExpectedGap, list[str]] = {}
    with modules_from(plan.folder):
        gaps = {
            answers: expected_gaps(plan.experiment.metrics, questions, set(plan.answered) if answers else set())
            for answers in {variant.config.answer.is_on for variant in plan.variants}
        }
    for variant in plan.variants:
        for gap in gaps[variant.config.answer.is_on]:
            variants_of.setdefault(gap, []).append(variant.variant_id)
    sentences = []
    if any(names_file_alone(item) for question in questions for item in question.evidence):
        with modules_from(plan.folder):
            pipeline = Pipeline.planned(plan.expansion.baseline.config, plan.dataset, home=usable_home())
            sentences = whole_files_sentences(pipeline.locate(questions)[0] if pipeline.index.is_built else questions)
        if blind := [metric for metric in plan.experiment.metrics if compares_passages(metric)]:
            sentences = [f"{one[:-1]}, so that {listing(blind)} cannot be measured." for one in sentences]
    for gap, names in variants_of.items():
        in_all = len(names) == len(plan.variants)
        sentences.append(str(gap) if in_all else f"{str(gap)[:-1]} (in {', '.join(names)}).")
    return sentences


def _asked(plan: Plan) -> list[Question]:
    asked = set(plan.questions)
    return [question for question in plan.dataset.questions if question.question_id in asked]


def cut_off_sentences(plan: Plan) -> list[str]:
    """Return what cut-offs cannot compare: deeper than a ranking can be, or over passages of different size."""
    configs = {variant.variant_id: variant.config for variant in plan.variants}
    metrics = plan.experiment.metrics
    return [
        *shallow_sentences(shallow(metrics, configs).values()),
        *unequal_text(metrics, configs, questions=_asked(plan)),
    ]


def counted_truncations(plan: Plan) -> list[str]:
    """Return the same where it will be counted; where it is refused the sweep says so itself, and does not start."""
    found = truncations_of(plan)
    return [] if refusals(found, plan) else truncation_sentences(found, plan)


def _counts(plan: Plan) -> list[tuple[int, int, int]]:
    """Return the questions, the new ones among them, and the most variants of each round, and of the proof."""
    sizes = [len(questions) for questions in plan.rounds]
    rounds = [(size, size - before, len(plan.variants)) for size, before in zip(sizes, [0, *sizes], strict=False)]
    return [*rounds, (len(plan.questions), len(plan.questions), 2)]


def rounds_table(plan: Plan) -> Table:
    """Return a row for each round of a race, stage or all trials of a search, and for the proof."""
    experiment, counts = plan.experiment, _counts(plan)
    n, rows = counts[0][0], list[tuple[str, int, int, int]]()
    if experiment.design not in SEARCHES:
        rows = [(str(number), *row) for number, row in enumerate(counts[:-1], start=1)]
    elif experiment.design == STAGED:
        for number, (stage, keys) in enumerate(stages_of(experiment.factors).items(), start=1):
            others = [key for key in experiment.factors if key not in keys]
            n_variants = sum(not any(key in others for key in variant.changes) for variant in plan.variants)
            rows.append((f"{number} {stage}", n, n if number == 1 else 0, n_variants))
    else:
        rows.append(("trials", n, n, experiment.n or 0))
    title = "Stages and proof" if experiment.design in SEARCHES else "Rounds of the race"
    cells = tuple((name, *(f"{n:,}" for n in numbers)) for name, *numbers in (*rows, ("proof", *counts[-1])))
    return Table(title, ("round", "questions", "new", "variants"), cells)


def race_notes(plan: Plan) -> list[str]:
    """Return what is to be known of a race or a search before it runs; nothing where there is none."""
    if not plan.rounds:
        return []
    metric, design, repeats = deciding_metric(plan).name, plan.experiment.design, plan.experiment.repeats
    if design not in SEARCHES:
        asked = repeats * sum(n_new * n_variants for _, n_new, n_variants in _counts(plan))
        whole = full_plan(plan)
        full = repeats * len(whole.questions) * len(whole.variants)
        return [
            f"Each round measures {metric} alone and drops who is shown to be worse than another, never the baseline; "
            "the best by its mean of those left and the baseline are then asked the questions of the proof, which "
            "chose nothing. Variants beside them have no proof. What is left to do is counted as if nobody were "
            "dropped.",
            f"A variant is asked a question {asked:,} times at most; all variants on all {len(whole.questions):,} "
            f"questions would be {full:,} times, so that {1 - asked / full:.0%} are saved at least.",
        ]
    if design == STAGED:
        how = (
            f"Each stage varies its factors beside what the stages before it have chosen, and the best mean in "
            f"{metric} is carried on; its variants are named, and counted below, as if no stage found anything better "
            "than the baseline."
        )
    else:
        names = " and ".join(one.name for one in aims(plan))
        how = (
            f"The trials are to improve {names}; which they are depends on their results. The variants that are named, "
            "and counted below, were drawn at random in their place."
        )
    return [
        how,
        f"The means that choose prove nothing. The best in {metric} and the baseline are then asked the questions of "
        "the proof, which chose nothing: one comparison.",
    ]
