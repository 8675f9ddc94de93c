"""The conclusions of a run in plain words, the first thing a reviewer reads: what differs, why, and what to doubt."""

from __future__ import annotations

from rag_lab.comparison.bounds.gain_sentences import gain_told
from rag_lab.comparison.changes.change_sentences import changes_told, is_measured, next_steps, no_labels
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.front.front_sentences import against_told
from rag_lab.comparison.hyde_sentences import conclusion
from rag_lab.comparison.run_tables import RunTables
from rag_lab.comparison.unread.unread_sentences import unread_told
from rag_lab.comparison.verdict_sentences import main_effects_by_margin, verdict
from rag_lab.data.evidence import whole_files_sentences
from rag_lab.data.sampling import cluster_proposal, clusters_sentence
from rag_lab.evaluation.cutoff_caveats import shallow_sentences
from rag_lab.models.toy_note import toy_note
from rag_lab.runs.margins import post_hoc_sentence
from rag_lab.runs.omissions import same_pipeline_sentences
from rag_lab.runs.run_manifest import FAILOVER_KEY, failover_sentences
from rag_lab.statistics.noise_components import noise_sentence

NOT_MEASURED = (
    "The noise was not measured, since every question was asked once: how much the same run would differ from itself "
    "is not known; `repeats: 2` or more in the experiment file measures it."
)


def topics(comparison: Comparison) -> dict[str, list[str]]:
    """Return the conclusions by topic, the most important first; topics of which nothing can be said are left out."""
    metric = comparison.main_metric
    if comparison.is_unlabelled:
        return _without_labels(comparison)
    if metric is None or comparison.scores.empty:
        return {"Variants": verdict(comparison)}
    found = {
        "Modules": [*main_effects_by_margin(comparison, metric), *comparison.effects.reliable_sentences(metric)],
        "Variants": verdict(comparison),
        "Preferred": [one.sentence for one in comparison.preferences],
        "Reach": gain_told(comparison),
        "Cost": against_told(comparison),
        "Not read": unread_told(comparison),
        "Labels": whole_files_sentences(list(comparison.asked.values())),
        "Cut-offs": [*shallow_sentences(comparison.shallow.values()), *comparison.unequal_text],
        "Clusters": _clusters(comparison),
        "Margin": [told] if (told := post_hoc_sentence(comparison.run)) else [],
        "Run once": same_pipeline_sentences(comparison.run.same),
        "Models": _models(comparison),
        "Routing": [conclusion(study) for study in comparison.routing],
        "Answers": _toys(comparison),
        "Judge": [note.sentence for note in comparison.judges],
        "Noise": noise_sentences(comparison)[:1],
    }
    return {topic: sentences for topic, sentences in found.items() if sentences}


def _without_labels(comparison: Comparison) -> dict[str, list[str]]:
    """Return what can be said without labels; metrics that need none, as a judge's, are told beside it."""
    is_scored = is_measured(comparison)
    found = {
        "Labels": [no_labels(comparison)],
        "Preferred": [one.sentence for one in comparison.preferences],
        "What changed": changes_told(comparison),
        "Measured": verdict(comparison) if is_scored else [],
        "Not read": unread_told(comparison),
        "Models": _models(comparison),
        "Answers": _toys(comparison),
        "Judge": [note.sentence for note in comparison.judges] if is_scored else [],
        "Next": next_steps(comparison),
    }
    return {topic: sentences for topic, sentences in found.items() if sentences}


def conclusions(comparison: Comparison) -> list[str]:
    """Return the sentences of all topics."""
    return [sentence for sentences in topics(comparison).values() for sentence in sentences]


def _clusters(comparison: Comparison) -> list[str]:
    if comparison.clusters is None:
        proposal = cluster_proposal(list(comparison.asked.values()), comparison.run.clusters)
        return [proposal] if proposal else []
    return [clusters_sentence(list(comparison.questions["question_id"]), comparison.clusters, comparison.run.clusters)]


def _models(tables: RunTables) -> list[str]:
    """Return who played the roles for which several models are named; nothing where none is."""
    states = tables.manifest.get("variants", {})
    return failover_sentences(
        {
            tables.called(plan.variant_id): states.get(plan.variant_id, {}).get(FAILOVER_KEY, {})
            for plan in tables.variants
        }
    )


def _toys(tables: RunTables) -> list[str]:
    """Return what is to be known of answers that a packaged model wrote; nothing where none did."""
    records = (record for traces in tables.traces.values() for trace in traces for record in trace.stages)
    wrote = {record.model for record in records if record.stage == "generate"}
    return sorted({toy_note(model, "answers of this run") for model in wrote} - {""})


def noise_sentences(tables: RunTables) -> list[str]:
    """Return a sentence a metric, or one that the noise was not measured."""
    told = [noise_sentence(found, metric) for metric, found in tables.noise.items()]
    return told or [NOT_MEASURED]
