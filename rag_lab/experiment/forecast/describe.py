"""What a plan would do, and what a run has spent, as text for `rag-lab sweep` and its `--dry-run`."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from rag_lab._kit.home import usable_home
from rag_lab._kit.module_files import modules_beside
from rag_lab._kit.text_table import text_table
from rag_lab._kit.wording import listing
from rag_lab.data.evidence import names_file_alone, whole_files_told
from rag_lab.data.sampling import cluster_proposal, clusters_of, clusters_told
from rag_lab.evaluation.applicability import Foreseen, compares_passages, foreseen_gaps
from rag_lab.evaluation.cutoff_caveats import shallow, shallow_told, unequal_text
from rag_lab.experiment.config import Limits
from rag_lab.experiment.design import Variant
from rag_lab.experiment.forecast.bill import bill_rows
from rag_lab.experiment.forecast.estimate import Bill, estimate
from rag_lab.experiment.forecast.foreseen_work import Work
from rag_lab.experiment.forecast.grown_tree import GrownTree
from rag_lab.experiment.forecast.machine_minutes import MachineMinutes
from rag_lab.experiment.forecast.race_forecast import ROUND_HEADER, race_notes, round_rows
from rag_lab.experiment.forecast.search_forecast import is_search
from rag_lab.experiment.forecast.unread_forecast import refusals, unread_found, unread_told
from rag_lab.experiment.model_checks import embedding_price, models_asked, price_of
from rag_lab.experiment.plan import Plan
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question
from rag_lab.report.figures.plan_tree import tree_lines
from rag_lab.runs.omissions import asked_sentence
from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.run_manifest import minutes_text

UNKNOWN = "?"
AT_MOST = "≤"
TREE_TITLE = "Stages that variants share, with what is left to do on each branch"
_WIDTH = 110  # of lines of prose
VARIANT_HEADER = ("variant", "differs from the baseline in")
MODEL_HEADER = ("role", "model")
BILL_HEADER = ("stage or metric", "model", "remembered", "to do", "", "tokens read", "written", "USD")
_TITLES = {"calls": "calls", "tokens": "tokens", "cost_usd": "USD"}


def describe(plan: Plan) -> str:
    """Return the variants, the questions, the bill, models and metrics. Nothing is run to find out."""
    # with the statistics, which a sweep does not need
    from rag_lab.experiment.forecast.declared import declared_told, not_compared_told

    grown = GrownTree()
    bill = estimate(plan, tree=grown)
    models = models_of(plan)
    parts = [
        *filter(None, [not_compared_told(plan)]),
        f"{plan.experiment.name}: {plan.experiment.question}",
        questions_told(plan),
        f"{len(plan.variants)} variants ({plan.experiment.design}):\n{text_table(VARIANT_HEADER, variant_rows(plan))}",
        *tree_told(grown),
        *([rounds_text(plan)] if plan.rounds else []),
        f"What is left to do, counted once where variants share it:\n{bill_text(bill, plan.experiment.limits)}",
        f"Models:\n{text_table(MODEL_HEADER, models)}" if models else "Models: none",
        f"Metrics: {', '.join(plan.experiment.metrics)}",
        "\n".join(declared_told(plan)),
        *notes_of(plan),
    ]
    return "\n\n".join(parts)


def tree_told(grown: GrownTree) -> list[str]:
    """Return the stages that variants share as a tree; nothing of one variant."""
    tree = grown.tree()
    if tree is None or not tree.branches:
        return []
    return ["\n".join([f"{TREE_TITLE}:", *tree_lines(tree)])]


def rounds_title(plan: Plan) -> str:
    """Return what the table of rounds is called."""
    return "Stages and proof" if is_search(plan) else "Rounds of the race"


def rounds_text(plan: Plan) -> str:
    """Return the rounds of a race or a search, its proof, and what is to be known of them."""
    told = (fill(f"- {note}", _WIDTH, subsequent_indent="  ") for note in race_notes(plan))
    return "\n".join([f"{rounds_title(plan)}:\n{text_table(ROUND_HEADER, round_rows(plan))}", *told])


def notes_of(plan: Plan) -> list[str]:
    """Return what is to be known of variants and metrics before it runs, and what is left out."""
    return [
        *(f"Note: {notice}" for notice in (*plan.expansion.notices, *too_deep(plan), *unread(plan))),
        *(["\n".join(sentences)] if (sentences := not_applicable(plan)) else []),
        *(f"Left out: {problem}" for problem in plan.dataset.problems),
    ]


def questions_told(plan: Plan) -> str:
    """Return how many questions are asked, how often, and how many of them are answered."""
    repeats = plan.experiment.repeats
    times = "once" if repeats == 1 else f"{repeats} times"
    asked = (
        f"Dataset {plan.dataset.name}: {asked_sentence(len(plan.questions), plan.left_out)} Each is asked {times}, "
        f"{len(plan.answered)} of them are answered{_why_so_few(plan)}."
    )
    rule = plan.experiment.clusters
    clusters = clusters_of(plan.dataset.questions, rule)
    if clusters is not None:
        return f"{asked} {clusters_told(plan.questions, clusters, rule)}"
    chosen = set(plan.questions)
    proposal = cluster_proposal([one for one in plan.dataset.questions if one.question_id in chosen], rule)
    return f"{asked} {proposal}".rstrip()


def _why_so_few(plan: Plan) -> str:
    """Return in parentheses why not all questions are answered, or ''."""
    if len(plan.answered) == len(plan.questions):
        return ""
    if not any(variant.config.answer.is_on for variant in plan.variants):
        return " (no variant answers: answer.name is none)"
    return "" if plan.experiment.limits.answers is None else f" (limits.answers: {plan.experiment.limits.answers})"


def variant_rows(plan: Plan) -> list[tuple[str, str]]:
    """Return a row of `VARIANT_HEADER` for each variant, the baseline first."""
    return [(variant.variant_id, _changes(variant)) for variant in plan.variants]


def _changes(variant: Variant) -> str:
    return ", ".join(f"{key} = {value}" for key, value in variant.changes.items()) or "-"


def models_of(plan: Plan) -> list[tuple[str, str]]:
    """Return a row of `MODEL_HEADER` for each role and model that any variant or metric asks."""
    metrics = plan.experiment.metrics
    with modules_beside(plan.folder):
        used = {(role, spec) for v in plan.variants for role, spec in models_asked(v.config, metrics).items()}
    if plan.experiment.judge is not None:
        used.add(("judge", plan.experiment.judge))
    return sorted(used)


def not_applicable(plan: Plan) -> list[str]:
    """Return one sentence for each metric and reason, with the variants where they are not all; labels come first."""
    questions = _asked(plan)
    variants_of: dict[Foreseen, list[str]] = {}
    with modules_beside(plan.folder):
        gaps = {
            answers: foreseen_gaps(plan.experiment.metrics, questions, set(plan.answered) if answers else set())
            for answers in {variant.config.answer.is_on for variant in plan.variants}
        }
    for variant in plan.variants:
        for gap in gaps[variant.config.answer.is_on]:
            variants_of.setdefault(gap, []).append(variant.variant_id)
    told = [_sentence(gap, names, len(plan.variants)) for gap, names in variants_of.items()]
    return [*_by_whole_files(plan, questions), *told]


def _by_whole_files(plan: Plan, questions: Sequence[Question]) -> list[str]:
    """Say that labels name files alone, and which metrics cannot be measured by them."""
    if not any(names_file_alone(item) for question in questions for item in question.evidence):
        return []
    with modules_beside(plan.folder):
        pipeline = Pipeline.planned(plan.expansion.baseline.config, plan.dataset, home=usable_home())
        told = whole_files_told(pipeline.locate(questions)[0] if pipeline.index.is_built else questions)
    blind = [metric for metric in plan.experiment.metrics if compares_passages(metric)]
    return [f"{one[:-1]}, so that {listing(blind)} cannot be measured." if blind else one for one in told]


def _asked(plan: Plan) -> list[Question]:
    asked = set(plan.questions)
    return [question for question in plan.dataset.questions if question.question_id in asked]


def too_deep(plan: Plan) -> list[str]:
    """Return what cut-offs cannot compare: deeper than a ranking can be, or over passages of different size."""
    configs = {variant.variant_id: variant.config for variant in plan.variants}
    metrics = plan.experiment.metrics
    return [*shallow_told(shallow(metrics, configs).values()), *unequal_text(metrics, configs, questions=_asked(plan))]


def unread(plan: Plan) -> list[str]:
    """Return what models will never read of what they are sent, as far as it is known before it runs."""
    found = unread_found(plan)
    return refusals(found, plan) or unread_told(found, plan)


def unread_counted(plan: Plan) -> list[str]:
    """Return the same where it will be counted; where it is refused the sweep says so itself, and does not start."""
    found = unread_found(plan)
    return [] if refusals(found, plan) else unread_told(found, plan)


def _sentence(gap: Foreseen, variants: list[str], n_variants: int) -> str:
    if len(variants) == n_variants:
        return str(gap)
    return f"{str(gap)[:-1]} (in {', '.join(variants)})."


def bill_text(bill: Bill, limits: Limits) -> str:
    """Return the work of each stage and metric, the total, and what the numbers rest on."""
    told = (fill(f"- {note}", _WIDTH, subsequent_indent="  ") for note in bill_notes(bill, limits))
    return "\n".join([text_table(BILL_HEADER, bill_cells(bill)), *told])


def bill_cells(bill: Bill) -> list[tuple[str, ...]]:
    """Return a row of `BILL_HEADER` for each stage and metric, and the total."""
    return [*map(_cells, bill.rows), _total(bill)]


def bill_notes(bill: Bill, limits: Limits) -> list[str]:
    """Return what the numbers of a bill rest on, and which limits they pass."""
    return [*_notes(bill), *_stops(bill, limits)]


def spent_text(run: RunFolder) -> str:
    """Return what was spent beside what was estimated, one line a stage or metric, then the minutes."""
    rows = bill_rows(run)
    columns = [(measure, when) for measure in _TITLES for when in ("estimated", "spent")]
    header = ("stage or metric", *(f"{_TITLES[measure]} {when}" for measure, when in columns))
    cells = [(row["purpose"], *(_amount(m, row[f"{m}_{when}"]) for m, when in columns)) for row in rows]
    return f"{text_table(header, cells)}\n- {minutes_text(rows)}"


def _cells(row: Work) -> tuple[str, ...]:
    remembered = "-" if row.unit == "file" else f"{row.remembered:,}"
    of_calls = ("", "", "")
    if row.unit == "call":
        bound = "" if row.tokens_measured or not row.n else f"{AT_MOST} "
        of_calls = (f"{bound}{row.tokens_in:,}", f"{bound}{row.tokens_out:,}", _amount("cost_usd", row.cost_usd))
    elif row.unit == "score":
        of_calls = (UNKNOWN, UNKNOWN, _amount("cost_usd", row.cost_usd))
    to_do = f"{AT_MOST} {row.n:,}" if row.at_most else f"{row.n:,}"
    unit = row.unit if row.n == 1 else f"{row.unit}s"
    return (row.purpose, row.model, remembered, to_do, unit, *of_calls)


def _total(bill: Bill) -> tuple[str, ...]:
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
    return (purpose, model, "", *others)


def _amount(measure: str, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if measure == "cost_usd":
        return f"{value:,.4f}" if 0 < value < 1 else f"{value:,.2f}"
    return f"{value:,.1f}" if measure == "minutes" else f"{value:,}"


def _notes(bill: Bill) -> list[str]:
    notes = []
    if any(row.at_most or (row.calls and not row.tokens_measured) for row in bill.rows):
        notes.append(
            f"{AT_MOST} at most: a stage that waits for another's result is counted as if it needed every call, and "
            "prompts and replies, until a sweep has measured them, as long as the settings let them become."
        )
    notes += [
        f"Thinking: at most {min(row.thinking_tokens, row.tokens_out):,} of the tokens that {row.purpose} writes."
        for row in bill.rows
        if row.thinking_tokens
    ]
    if unknown := ", ".join(row.purpose for row in bill.rows if row.unit == "score"):
        notes.append(f"Nobody knows how often {unknown} asks the judge for a score: say it in its `calls`.")
    notes += [_embedded(row) for row in bill.rows if row.embedded_tokens]
    return [*notes, _minutes(bill), *_prices([row.model for row in bill.rows if row.unit in ("call", "score")])]


def _embedded(row: Work) -> str:
    """Return what embedding costs: beside the table, since neither a limit nor what is spent counts it."""
    found = embedding_price(row.model)
    usd = _amount("cost_usd", found.cost_usd(row.embedded_tokens, 0) if found else None)
    by = f" by {found.table} of {found.checked}" if found else ""
    return (
        f"Embedding by {row.model} reads at most {row.embedded_tokens:,} tokens, {usd} dollars{by}; limits and what is "
        "spent leave that out."
    )


def _minutes(bill: Bill) -> str:
    unmeasured = ", ".join(dict.fromkeys(row.purpose for row in bill.rows if row.minutes is None))
    why = f"; the first sweep measures {unmeasured}" if unmeasured else ""
    return f"Minutes of calls, one after the other: {_amount('minutes', bill.minutes)}{why}. {_on_top(bill.machine)}"


def _on_top(machine: MachineMinutes | None) -> str:
    """Return what a sweep takes beside calls."""
    if machine is None:
        return "Loading, embedding, reranking and notebooks come on top."
    parts = {"embedding": machine.embedding, "notebooks": machine.notebooks, "start, scores and report": machine.report}
    told = ", ".join(f"{name} {_amount('minutes', minutes)}" for name, minutes in parts.items())
    assumed = f"; {listing(machine.assumed)} assumed, until a sweep here has measured it" if machine.assumed else ""
    return (
        f"On top, without jobs side by side, {_amount('minutes', machine.total)}: {told}{assumed}. Loading chat models "
        "and reranking are not counted."
    )


def _prices(models: Sequence[str]) -> list[str]:
    found = {model: price_of(model) for model in dict.fromkeys(models)}
    told = [f"{m} by {known.table} of {known.checked}" for m, known in found.items() if known and known != "free"]
    missing = [model for model, known in found.items() if known is None]
    notes = [f"Prices: {', '.join(told)}; correct them in prices.toml in the home folder."] if told else []
    if missing:
        notes.append(f"No price is known for {', '.join(missing)}; add one to prices.toml in the home folder.")
    return notes


def _stops(bill: Bill, limits: Limits) -> list[str]:
    """Return which limits the estimate passes."""
    wanted = {"cost_usd": bill.cost_usd, "calls": bill.calls, "minutes": bill.minutes}
    given = {name: getattr(limits, name) for name in wanted}
    return [
        f"limits.{name} = {given[name]:g} is less than the {_amount(name, amount)} {_TITLES.get(name, name)} above: "
        "the sweep may stop there, and goes on once the limit is raised."
        for name, amount in wanted.items()
        if given[name] is not None and amount is not None and amount > given[name]
    ]
