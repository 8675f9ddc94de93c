"""What a plan would do, as text for `rag-lab sweep` and its `--dry-run`."""

from contextlib import suppress

from rag_lab._kit.registry import modules_from
from rag_lab._kit.wording import listing
from rag_lab.data.sampling import cluster_proposal, clusters_of, clusters_sentence
from rag_lab.errors import RagLabError
from rag_lab.evaluation.judge_check import judge_warnings
from rag_lab.experiment.built_in_designs import STAGED, stages_of
from rag_lab.experiment.config import SAYS, Limits
from rag_lab.experiment.forecast import caveats
from rag_lab.experiment.forecast.cost_estimate import TITLES, UNKNOWN, CostEstimate, amount_text, estimate
from rag_lab.experiment.forecast.work import PlanTree, Work, branch_of
from rag_lab.experiment.plan import Plan, readers_of
from rag_lab.experiment.questions import SEARCHES
from rag_lab.experiment.race import aims, full_plan
from rag_lab.experiment.stage_identities import is_read, models_used, price_of
from rag_lab.report.plan_tree import tree_lines
from rag_lab.report.table import Table
from rag_lab.runs.omissions import asked_sentence

TREE_TITLE = "Stages that variants share, with what is left to do on each branch"
AT_MOST = "≤"
_HEADER = ("stage or metric", "model", "remembered", "to do", "", "tokens read", "written", "USD")


def describe(plan: Plan) -> str:
    """Return the variants, the questions, the bill, models and metrics. Nothing is run to find out."""
    paths = PlanTree()
    bill, models, tree = estimate(plan, tree=paths), models_table(plan), branch_of([*paths.values()])
    parts = [
        caveats.not_compared_sentence(plan),
        f"{plan.experiment.name}: {plan.experiment.question}",
        questions_sentence(plan),
        variants_table(plan, paths).with_notes(inert_sentences(plan)),
        "\n".join([f"{TREE_TITLE}:", *tree_lines(tree)]) if tree.branches else "",
        rounds_table(plan).with_notes(race_notes(plan)) if plan.rounds else "",
        cost_table(bill).with_notes(cost_notes(bill, plan.experiment.limits)),
        models.with_notes() if models.rows else "Models: none",
        f"Metrics: {', '.join(plan.experiment.metrics)}",
        "\n".join(caveats.declared_sentences(plan)),
        *notes_of(plan),
    ]
    return "\n\n".join(filter(None, parts))


def notes_of(plan: Plan) -> list[str]:
    """Return what is to be known of variants and metrics before it runs, and what is left out."""
    found, not_applicable = caveats.truncations_of(plan), caveats.not_applicable_sentences(plan)
    truncated = caveats.refusals(found, plan) or caveats.truncation_sentences(found, plan)
    writers = {one.config.models.generation for one in plan.variants if one.config.answer.asks_model}
    quality = [metric.info for metric in plan.metrics if not metric.info.is_cost]
    first = plan.experiment.design if quality and "judge" in quality[0].needs else ""
    judges = enumerate(plan.experiment.judges)
    judged = [one for n, judge in judges for one in judge_warnings(judge, writers, "" if n else first)]
    notices = (*plan.expansion.notices, *caveats.cut_off_sentences(plan), *truncated, *judged)
    return [
        *(f"Note: {notice}" for notice in notices),
        *(["\n".join(not_applicable)] if not_applicable else []),
        *(f"Left out: {problem}" for problem in plan.dataset.problems),
    ]


def questions_sentence(plan: Plan) -> str:
    """Return how many questions are asked, how often, and how many of them are answered, and why not all are."""
    repeats, limit, why = plan.experiment.repeats, plan.experiment.limits.answers, ""
    if len(plan.answered) < len(plan.questions):
        why = "" if limit is None else f" (limits.answers: {limit})"
        if not any(variant.config.answer.is_on for variant in plan.variants):
            why = " (no variant answers: answer.name is none)"
    rule = plan.experiment.clusters
    clusters = clusters_of(plan.dataset.questions, rule)
    of_clusters = clusters_sentence(plan.questions, clusters, rule) if clusters is not None else ""
    of_clusters = of_clusters or cluster_proposal(caveats.asked_questions(plan), rule)
    return (
        f"Dataset {plan.dataset.name}: {asked_sentence(len(plan.questions), plan.left_out)} Each is asked "
        f"{'once' if repeats == 1 else f'{repeats} times'}, {len(plan.answered)} of them are answered{why}. "
        f"{of_clusters}"
    ).rstrip()


def variants_table(plan: Plan, paths: PlanTree) -> Table:
    """Return a row for each variant, the baseline first: its keys, and all stages that they make other ones."""
    rows, steps = [], {name: dict(path.steps) for name, path in paths.items()}
    base = steps.get(plan.expansion.baseline.variant_id, {})
    for one in plan.variants:
        ours = steps.get(one.variant_id, base)
        stages = [name for name in dict.fromkeys([*base, *ours]) if name and base.get(name) != ours.get(name)]
        changes = [f"{key} = {value}" for key, value in one.changes.items()]
        rows.append((one.variant_id, ", ".join(changes) or "-", ", ".join(stages) or "-"))
    title = f"{len(plan.variants)} variants ({plan.experiment.design})"
    return Table(title, ("variant", "differs from the baseline in", "and so in the stages"), tuple(rows), 3)


def inert_sentences(plan: Plan) -> list[str]:
    """Return a sentence for each variant with keys that change nothing on this data set."""
    inert, before = dict[str, list[str]](), plan.expansion.baseline.config.flat()
    with modules_from(plan.folder):
        readers = readers_of(plan.experiment, plan.dataset, plan.questions, plan.answered)
        for one, key in ((variant, key) for variant in plan.variants[1:] for key in variant.changes):
            with suppress(RagLabError):  # the other value does not go with the rest
                if not is_read(one.config, key, before[key], readers):
                    inert.setdefault(one.variant_id, []).append(key)
    return [f"{name}: nothing reads {listing(keys)} here." for name, keys in inert.items()]


def models_table(plan: Plan) -> Table:
    """Return a row for each role and model that any variant or metric asks."""
    metrics, used = plan.experiment.metrics, set[tuple[str, str]]()
    with modules_from(plan.folder):
        for variant in plan.variants:
            used |= models_used(variant.config, metrics, asked=True).items()
    used |= {("judge", judge) for judge in plan.experiment.judges}
    return Table("Models", ("role", "model"), tuple(sorted(used)), 2)


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
    metric, design, repeats = plan.deciding_metric.name, plan.experiment.design, plan.experiment.repeats
    if design not in SEARCHES:
        asked = repeats * sum(n_new * n_variants for _, n_new, n_variants in _counts(plan))
        whole = full_plan(plan)
        full = repeats * len(whole.questions) * len(whole.variants)
        of = {"asked": asked, "n": len(whole.questions), "full": full, "saved": 1 - asked / full}
        return [SAYS["race"].format(metric=metric), SAYS["race_asks"].format(**of)]
    names = " and ".join(one.name for one in aims(plan))
    how = SAYS["stages" if design == STAGED else "trials"].format(metric=metric, names=names)
    return [how, SAYS["search_proof"].format(metric=metric)]


def cost_table(bill: CostEstimate) -> Table:
    """Return a row for each stage and metric, and the total."""
    calls = [row for row in bill.rows if row.calls]
    total = Work(
        "total",
        "",
        "call",
        bill.calls,
        any(row.at_most for row in calls),
        tokens_in=sum(row.tokens_in for row in calls),
        tokens_out=sum(row.tokens_out for row in calls),
        tokens_measured=all(row.tokens_measured for row in calls),
        cost_usd=bill.cost_usd,
    )
    purpose, model, _, *others = _cells(total)
    rows = (*map(_cells, bill.rows), (purpose, model, "", *others))
    return Table("What is left to do, counted once where variants share it", _HEADER, rows, 2)


def cost_notes(bill: CostEstimate, limits: Limits) -> list[str]:
    """Return what the numbers of a bill rest on, and which limits they pass."""
    notes = []
    if any(row.at_most or (row.calls and not row.tokens_measured) for row in bill.rows):
        notes.append(SAYS["at_most"].format(sign=AT_MOST))
    notes += [
        f"Thinking: at most {min(row.thinking_tokens, row.tokens_out):,} of the tokens that {row.purpose} writes."
        for row in bill.rows
        if row.thinking_tokens
    ]
    if unknown := ", ".join(row.purpose for row in bill.rows if row.unit == "score"):
        notes.append(f"Nobody knows how often {unknown} asks the judge for a score: say it in its `calls`.")
    for row in bill.rows:
        if row.embedded_tokens:  # beside the table, since neither a limit nor what is spent counts it
            price, usd, by = price_of(row.model, embeds=True), UNKNOWN, ""
            if price and price != "free":
                usd = amount_text("cost_usd", price.cost_usd(row.embedded_tokens, 0))
                by = f" by {price.table} of {price.checked}"
            notes.append(SAYS["embedding"].format(row=row, usd=usd, by=by))
    unmeasured = ", ".join(dict.fromkeys(row.purpose for row in bill.rows if row.minutes is None))
    on_top = "Loading, embedding, reranking and notebooks come on top."
    if machine := bill.machine:
        minutes = (machine.embedding, machine.notebooks, machine.report)
        embedding, notebooks, report, total = (amount_text("minutes", one) for one in (*minutes, sum(minutes)))
        named = f"embedding {embedding}, notebooks {notebooks}, start, scores and report {report}"
        assumed = f"; {listing(machine.assumed)} assumed, until a sweep here has measured it" if machine.assumed else ""
        on_top = SAYS["on_top"].format(total=total, named=f"{named}{assumed}")
    took = f"Model calls take {amount_text('minutes', bill.minutes)} minutes, one after the other."
    if unmeasured:
        took = f"How long model calls take is not known; the first sweep measures {unmeasured}."
    notes.append(f"{took} {on_top}")
    prices = {row.model: price_of(row.model) for row in bill.rows if row.unit in ("call", "score")}
    found = [f"{m} by {known.table} of {known.checked}" for m, known in prices.items() if known and known != "free"]
    if found:
        notes.append(f"Prices: {', '.join(found)}; correct them in prices.toml in the home folder.")
    if missing := [model for model, known in prices.items() if known is None]:
        notes.append(f"No price is known for {', '.join(missing)}; add one to prices.toml in the home folder.")
    for name, amount in {"cost_usd": bill.cost_usd, "calls": bill.calls, "minutes": bill.minutes}.items():
        limit = getattr(limits, name)
        if limit is not None and amount is not None and amount > limit:
            wanted = f"{amount_text(name, amount)} {TITLES.get(name, name)}"
            notes.append(SAYS["limit"].format(name=name, limit=limit, wanted=wanted))
    return notes


def _cells(row: Work) -> tuple[str, ...]:
    remembered = "-" if row.unit == "file" else f"{row.remembered:,}"
    of_calls = ("", "", "")
    if row.unit == "call":
        bound = "" if row.tokens_measured or not row.n else f"{AT_MOST} "
        of_calls = (f"{bound}{row.tokens_in:,}", f"{bound}{row.tokens_out:,}", amount_text("cost_usd", row.cost_usd))
    elif row.unit == "score":
        of_calls = (UNKNOWN, UNKNOWN, amount_text("cost_usd", row.cost_usd))
    to_do = f"{AT_MOST} {row.n:,}" if row.at_most else f"{row.n:,}"
    unit = row.unit if row.n == 1 else f"{row.unit}s"
    return (row.purpose, row.model, remembered, to_do, unit, *of_calls)
