"""A configuration, a pipeline drawn as its stages, a variant with its scores, a model, and an experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.wording import DASH, counted, interval, plain
from rag_lab.config import PipelineConfig
from rag_lab.evaluation.registry import find_info
from rag_lab.experiment.forecast import caveats, cost_estimate, describe, power_forecast
from rag_lab.experiment.forecast.work import PlanTree, branch_of
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.run.variant_work import VariantWork
from rag_lab.experiment.stage_identities import Readers, roles_used
from rag_lab.experiment.sweep_status import SweepStatus
from rag_lab.models.model_card import ModelCard
from rag_lab.models.providers import SCORERS
from rag_lab.notebook.bench.toggles import owner_of
from rag_lab.notebook.views.view import Box, Page, TextView, View
from rag_lab.pipeline import Pipeline
from rag_lab.records import Score
from rag_lab.report.page.templates import setting
from rag_lab.report.plan_tree import plan_tree_svg, tree_lines
from rag_lab.report.table import Table, shown_frame
from rag_lab.runs.variant_files import to_frame
from rag_lab.stages.steps import STEPS
from rag_lab.statistics.summaries import SHARE, summary

KEYS: dict[str, list[str]] = read_shipped(Path(__file__).with_name("boxes.yaml"))
_MODULES = {step.slot: step.module for step in STEPS if step.slot}  # by slot, the key that an object replaces
_OF_DOCUMENTS = {"splitter": "corpus.splitter", "file_readers": "corpus.readers", "store": "store.name"}


def config_view(config: PipelineConfig) -> View:
    """Return what differs from where a configuration came from; the whole stands folded."""
    origin, changes = config.origin.name or "the defaults", config.changes()
    differs = f"differs in {len(changes)}" if changes else "nothing differs"
    rows = tuple((one.key, setting(one.value), setting(one.before)) for one in changes)
    table = Table("", ("key", "here", f"in {origin}"), rows, names=3)
    return View(
        title=f"PipelineConfig from {origin}: {differs}",
        tables=(table,) if rows else (),
        folded=(("The whole, as YAML", config.to_yaml()),),
    )


def boxes(config: PipelineConfig, replaced: Mapping[str, str]) -> tuple[Box, ...]:
    """Return the stages in their order; `replaced` are the objects in place of what the configuration names."""
    changes: dict[str, list[str]] = {name: [] for name in KEYS}
    for change in config.changes():
        changes[owner_of(change.key, KEYS)].append(f"{change.key} = {setting(change.value)}")
    objects: dict[str, dict[str, str]] = {name: {} for name in KEYS}
    for slot, what in replaced.items():
        key = (_MODULES | _OF_DOCUMENTS).get(slot) or f"models.{slot.removesuffix('_model')}"  # which it replaces
        objects[owner_of(key, KEYS)][slot] = what
    found = []
    for name, text in _texts(config).items():
        # An object in the place of the stage itself stands instead of what the configuration says.
        whole = [what for slot, what in objects[name].items() if slot in _MODULES and slot != "fusion"]
        others = [f"{slot}: {what}" for slot, what in objects[name].items() if slot not in _MODULES or slot == "fusion"]
        shown = ", ".join(filter(None, [*(whole or [text]), *others]))
        notes = (*changes[name], *("replaced by an object" for _ in objects[name]))
        found.append(Box(name, shown, bool(text or whole), notes))
    return tuple(found)


def _texts(config: PipelineConfig) -> dict[str, str]:
    """Return what each stage does, '' where it is off."""
    corpus, models, query, select, answer = config.corpus, config.models, config.query, config.select, config.answer
    size = f"{corpus.chunk_words} words" if corpus.splitter == "sentences" else f"{corpus.chunk_size:,} characters"
    parents = {"fixed": f"{corpus.parent_size:,} characters", "none": "piece"}.get(corpus.parents, corpus.parents)
    reads = {"child": "piece", "document": "document"}.get(config.retrieval.level, parents)
    units = {"child": "pieces", "parent": "parents", "document": "documents"}[config.retrieval.level]
    understands = models.understanding if query.understanding == "llm" else query.understanding
    by_model = {"none": "", "llm": "by the same model"}
    by_model["follow_ups"] = "of questions with a conversation, by the same model"
    phrasings = counted(query.phrasings, "other phrasing") if query.phrasings else ""
    classes = ", ".join(name for name, is_on in query.class_to_hyde.items() if is_on) or "no"
    times = {"always": "always", "suggested": "where the understanding suggests it"}
    hyde = f"{times.get(query.hyde, f'for {classes} questions')}, by "
    hyde += models.hyde if query.hyde_writer == "llm" else query.hyde_writer
    role = next(iter(roles_used(config, Readers()) & SCORERS.keys()), "")
    scorer = f" by {getattr(models, role)}" if role else ""
    cuts = ["" if select.cut == "none" else f"cut at the {select.cut}", "" if select.diversity == "none" else "MMR"]
    selection = ", ".join(filter(None, cuts)) if select.name == "cut" else select.name
    labelled = {
        "gold": "the labelled evidence",
        "gold_first": "the labelled evidence, then what was found",
        "document": "the files of the labelled evidence",
    }
    context = labelled.get(answer.context, f"the first {config.rerank.final_k}")
    readers = {"none": "", "llm": models.generation, "text": f"{models.generation}, in text"}
    readers["extract"] = f"quotes of at most {counted(answer.quote_sentences, 'sentence')}, by {models.embedding}"
    return {
        "Documents": f"{corpus.splitter} pieces of {size}; the reader gets the {reads}",
        "Vectors": f"{models.embedding} in {config.store.name}" if config.searches_vectors else "",
        "Understanding": understands if query.understands else "",
        "Rewriting": ", ".join(filter(None, [by_model.get(query.rewrite, query.rewrite), phrasings])),
        "HyDE": "" if query.hyde == "none" else hyde,
        "Search": f"{config.retrieval.mode}, the {config.retrieval.base_k} best {units}",
        "Reranking": ""
        if config.rerank.name == "none"
        else f"{config.rerank.name}{scorer}, of {config.rerank.input_limit} candidates",
        "Selection": selection if select.is_on else "",
        "Context": "" if answer.context == "none" else f"{context}, at most {answer.context_tokens:,} tokens",
        "Answer": readers.get(answer.name, answer.name),
    }


def pipeline_view(pipeline: Pipeline) -> View:
    """Return the drawing, what differs, and the whole configuration folded."""
    config = pipeline.config
    changed = [f"{one.key} = {setting(one.value)} (there {setting(one.before)})" for one in config.changes()]
    replaced = [f"{place} = {what}" for place, what in pipeline.replaced.items()]
    return View(
        title=f"Pipeline on {pipeline.corpus_name}",
        boxes=boxes(config, pipeline.replaced),
        facts=(
            ("Made from", config.origin.name or "the defaults"),
            ("Changed", ", ".join(changed)),
            ("Replaced", ", ".join(replaced)),
        ),
        folded=(("The whole configuration, as YAML", config.to_yaml()),),
    )


_COLUMNS = ["mean", "low", "high", "asked", "scored", "failed", "not_applicable", "reason"]
_HEADER = ("metric", "mean", "95% interval", "scored", "failed", "not applicable", "reason")


def summary_table(metrics: Sequence[str], scores: Sequence[Score]) -> pd.DataFrame:
    """Return one row a metric: its mean over the questions scored, the ends of its 95% interval, counts, and a reason.

    Repeats are averaged within their question. The numbers are there to compute with; the frame shows itself rounded.
    """
    numbers, view = _summary("", metrics, scores)
    return shown_frame(numbers, view.to_html, view.to_text)


def _summary(title: str, metrics: Sequence[str], scores: Sequence[Score]) -> tuple[pd.DataFrame, View]:
    scales = {metric: info.scale for metric in metrics if (info := find_info(metric))}
    table = summary(to_frame({"variant": scores}), scales=scales).set_index("metric")
    numbers = table.reindex(list(metrics))[_COLUMNS]
    rows = tuple(
        (
            scales.get(str(metric), SHARE).named(str(metric)),
            plain(row["mean"]),
            interval(row["low"], row["high"]),
            f"{row['scored']}/{row['asked']}",
            *(str(row[name]) for name in ("failed", "not_applicable", "reason")),
        )
        for metric, row in numbers.iterrows()
    )
    return numbers, View(title, tables=(Table("", _HEADER, rows, words=1),))


def scores_view(scores: Sequence[Score]) -> View:
    """Return a row for each metric; the title counts questions."""
    metrics = list(dict.fromkeys(score.metric for score in scores))
    questions = len({score.question_id for score in scores})
    title = f"{counted(len(scores), 'score')}: {counted(len(metrics), 'metric')}, {counted(questions, 'question')}"
    return _summary(title, metrics, scores)[1] if scores else View("no scores")


def variant_view(variant: VariantWork) -> View:
    """Return a variant's pipeline, what is asked, and what the scores came to once there are some."""
    drawn = pipeline_view(variant.pipeline)
    asked = f"{len(variant.questions)} questions asked, {len(variant.answered)} answered"
    times = f", {variant.repeats} times" if variant.repeats > 1 else ""
    metrics = list(dict.fromkeys(score.metric for score in variant.scores))
    tables = _summary("", metrics, variant.scores)[1].tables if variant.scores else ()
    title = f"Variant on {variant.pipeline.dataset.name}: {asked}{times}"
    folder, remembered = variant.pipeline.home, variant.pipeline.home / "stages.sqlite"
    home = f"{folder}, where nothing is remembered yet"
    if remembered.is_file():
        megabytes = remembered.stat().st_size / 1e6
        home = f"{folder}, whose {megabytes:,.1f} MB of remembered results are not computed again"
    scored_by = ", ".join(map(str, variant.metrics))
    facts = (*drawn.facts, ("Scored by", scored_by), ("Home", home))
    return replace(drawn, title=title, facts=facts, tables=tables)


_SURE = {True: "yes", False: "no", None: "unknown"}


def card_view(card: ModelCard) -> Page:
    """Return what a model is, what it can do, and what it needs of this machine."""
    is_chat, context, cache = card.keeps_schema is not None, card.context_tokens, ""
    if card.cache is not None and context is not None:
        cache = card.cache.formula(context, card.batch)
    window = [] if context is None else [f"{context:,} tokens"]
    if card.trained_tokens is not None and card.trained_tokens != context:
        window.append(f"made for {card.trained_tokens:,}")
    too_long = context and card.trained_tokens and context > card.trained_tokens
    memory = ""
    if card.memory_mb is not None and card.weights_mb is not None:
        keys = "" if card.cache_mb is None else f" + {card.cache_mb:,.0f} cache of keys and values"
        memory = f"{card.memory_mb:,.0f} MiB = {card.weights_mb:,.0f} weights{keys}"
        memory += "; what a call computes with comes on top"
    measured = []
    if found := card.measured:
        measured = [f"{found.tokens_per_second:,.1f} tokens a second"]
        measured += [] if found.memory_mb is None else [f"{found.memory_mb:,.0f} MiB"]
        measured += [] if found.load_s is None else [f"{found.load_s:,.1f} s to load"]
        measured += [] if found.joules_per_token is None else [f"{found.joules_per_token:,.2f} J a token"]
    known = (
        ("Kind", card.kind),
        ("Parameters", "" if card.parameters is None else f"{card.parameters / 1e6:,.0f} million"),
        ("Weights", card.stored_as + ("" if card.bits is None else f", {card.bits:.1f} bits each on average")),
        ("Context", ", ".join(window) + ("; beyond that its replies are worth nothing" if too_long else "")),
        ("Licence", card.licence or ("" if card.disk_bytes is None else "its files name none")),
        ("On disk", "" if card.disk_bytes is None else f"{card.disk_bytes / 1e6:,.0f} MB"),
        ("Memory", memory),
        ("Cache", cache),
        ("Measured here", ", ".join(measured)),
        ("Thinks", _SURE[card.thinks] if is_chat else ""),
        ("Sees images", _SURE[card.sees] if is_chat else ""),
        ("Keeps a schema", _SURE[card.keeps_schema] if is_chat else ""),
    )
    facts, text = [(name, fact) for name, fact in known if fact], TextView()
    text.facts([("Model", card.model), *facts, *(("Note", note) for note in card.notes)])
    return Page("model_card.html", {"model": card.model, "facts": facts, "notes": card.notes}, text)


HEADER = ("variant", "stands", "done", "remembered", "computed", "calls", "USD", "minutes", "left", "failed")


def plan_view(plan: Plan) -> View:
    """Return what would be asked under which variants, and what that would take. Nothing is run to find out."""
    experiment, paths = plan.experiment, PlanTree()
    bill, tree = cost_estimate.estimate(plan, tree=paths), branch_of([*paths.values()])
    power = power_forecast.power_forecast(plan, power_forecast.runs_of(plan))
    tables = (
        describe.variants_table(plan, paths),
        describe.rounds_table(plan) if plan.rounds else None,
        describe.cost_table(bill),
        describe.models_table(plan),
        power_forecast.power_table(power) if power.rows else None,
    )
    drawn = []
    if tree.branches:
        drawn.append((describe.TREE_TITLE, Markup(plan_tree_svg(tree)), tuple(tree_lines(tree))))  # noqa: S704 (escaped)
    notes = [
        *describe.inert_sentences(plan),
        *describe.race_notes(plan),
        *describe.cost_notes(bill, experiment.limits),
        *describe.notes_of(plan),
    ]
    return View(
        title=f"{experiment.name}: {experiment.question}",
        facts=(
            ("Not compared", caveats.not_compared_sentence(plan)),
            ("Questions", describe.questions_sentence(plan)),
            ("Metrics", ", ".join(experiment.metrics)),
            ("Declared", " ".join(caveats.declared_sentences(plan))),
        ),
        tables=tuple(filter(None, tables)),
        drawn=tuple(drawn),
        notes=(*notes, *power_forecast.power_notes(power)),
    )


def status_view(status: SweepStatus) -> View:
    """Return a line for each variant, and of a race for each round: stage, what it took, what is left, failures."""
    ended = sum(one.state not in ("waiting", "running") for one in status.variants)
    left = status.left.text() if status.left else "not known yet" if status.state == "running" else ""
    parts = (*status.rounds, status)
    # Variants of a race's proof wait until its rounds have ended.
    is_begun = not status.rounds or any(one.state != "waiting" for one in status.variants)
    return View(
        title=f"{status.name}: {status.state}",
        facts=(
            ("Stands", status.said),
            ("Variants", f"{ended} of {len(status.variants)} have ended"),
            ("Calls", f"{status.calls:,}, {status.cost_usd:.4f} USD"),
            ("Left", left),
        ),
        tables=tuple(_table(one, f"Round {one.path.name}: {one.state}") for one in status.rounds)
        + ((_table(status, "Proof" if status.rounds else "Variants"),) if is_begun else ()),
        notes=tuple(f"{one.variant_id}: {one.reason}" for part in parts for one in part.variants if one.reason),
    )


def _table(status: SweepStatus, title: str) -> Table:
    rows = tuple(
        (
            one.variant_id,
            one.stage if one.state == "running" else one.state,
            f"{one.done}/{one.total}" if one.total else "",
            DASH if one.remembered is None else f"{one.remembered:,}",
            DASH if one.computed is None else f"{one.computed:,}",
            f"{one.calls:,}",
            f"{one.cost_usd:.4f}",
            f"{one.seconds / 60:.1f}",
            one.left.text() if one.left else "?" if one.state == "running" else "",
            f"{one.failed:,}" + (f" (+{one.fell_back:,} fell back)" if one.fell_back else ""),
        )
        for one in status.variants
    )
    return Table(title, HEADER, rows)
