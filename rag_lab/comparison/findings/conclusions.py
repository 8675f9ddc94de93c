"""The conclusions of a run in plain words, the first thing a reviewer reads: what differs, why, and what to doubt."""

from rag_lab._kit.wording import counted, listing, some_of
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.caveats import truncation_sentences
from rag_lab.comparison.findings.change_sentences import changes_sentences, is_measured, next_steps, no_labels
from rag_lab.comparison.findings.evidence_sentences import gain_sentences
from rag_lab.comparison.findings.statements import main_effects, margin_sentence
from rag_lab.comparison.findings.verdict import verdict
from rag_lab.comparison.tables.hyde_study import study_conclusion
from rag_lab.comparison.tables.pareto import Cost, Front
from rag_lab.comparison.tables.prices import NOTICED_S, NOTICED_SHARE, NOTICED_TOKENS
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.data.evidence import whole_files_sentences
from rag_lab.data.sampling import cluster_proposal, clusters_sentence
from rag_lab.evaluation.cutoff_caveats import shallow_sentences
from rag_lab.models.card.small_model import small_model_note
from rag_lab.runs.margins import post_hoc_sentence
from rag_lab.runs.omissions import same_pipeline_sentences
from rag_lab.runs.run_manifest import FAILOVER_KEY, failover_sentences
from rag_lab.statistics.noise_components import noise_sentence

NOT_MEASURED = (
    "The noise was not measured, since every question was asked once: how much the same run would differ from itself "
    "is not known; `repeats: 2` or more in the experiment file measures it."
)
COST_NAMES: dict[Cost, str] = {"seconds": "seconds", "tokens": "tokens", "usd": "dollars"}
MEANING = (
    "On a front stands every variant that no other beats: none is at least as good at no higher cost, and better or "
    f"cheaper. A failed question counts as the worst value; less than {NOTICED_S} seconds, {NOTICED_TOKENS} tokens and "
    f"{NOTICED_SHARE:.0%} is no difference in cost."
)
_MOST = 4  # variants that are named with their share


def topics(comparison: Comparison) -> dict[str, list[str]]:
    """Return the conclusions by topic, the most important first; topics of which nothing can be said are left out."""
    metric, tables = comparison.main_metric, comparison
    if not tables.is_unlabelled and (metric is None or tables.scores.empty):
        return {"Variants": verdict(tables)}
    states = tables.manifest.get("variants", {})
    played = {one.variant_id: states.get(one.variant_id, {}).get(FAILOVER_KEY, {}) for one in tables.variants}
    records = (record for traces in tables.traces.values() for trace in traces for record in trace.stages)
    wrote = {record.model for record in records if record.stage == "generate"}
    preferred = [one.sentence for one in tables.preferences]
    truncated = truncation_sentences(tables)
    models = failover_sentences({tables.called(variant): roles for variant, roles in played.items()})
    answers = sorted({small_model_note(model, "answers of this run") for model in wrote} - {""})
    judges = [note.sentence for note in tables.judges]
    if tables.is_unlabelled or metric is None:  # metrics that need no labels, as a judge's, are measured all the same
        is_scored = is_measured(tables)
        found = {
            "Labels": [no_labels(tables)],
            "Preferred": preferred,
            "What changed": changes_sentences(tables),
            "Measured": verdict(tables) if is_scored else [],
            "Not read": truncated,
            "Models": models,
            "Answers": answers,
            "Judge": judges if is_scored else [],
            "Next": next_steps(tables),
        }
    else:
        effects = [one for one in main_effects(tables, metric) if one.word in ("not worse", "not better")]
        found = {
            "Modules": [*map(margin_sentence, effects), *tables.effects.reliable_sentences(metric)],
            "Variants": verdict(tables),
            "Preferred": preferred,
            "Reach": gain_sentences(tables),
            "Cost": front_sentences_by_cost(tables),
            "Not read": truncated,
            "Labels": whole_files_sentences(list(tables.asked.values())),
            "Cut-offs": [*shallow_sentences(tables.shallow.values()), *tables.unequal_text],
            "Clusters": [_clusters_sentence(tables)],
            "Margin": [post_hoc_sentence(tables.run)],
            "Run once": same_pipeline_sentences(tables.run.same),
            "Models": models,
            "Routing": [study_conclusion(study) for study in tables.routing],
            "Answers": answers,
            "Judge": judges,
            "Noise": noise_sentences(tables)[:1],
        }
    told = {topic: [sentence for sentence in sentences if sentence] for topic, sentences in found.items()}
    return {topic: sentences for topic, sentences in told.items() if sentences}


def conclusions(comparison: Comparison) -> list[str]:
    """Return the sentences of all topics."""
    return [sentence for sentences in topics(comparison).values() for sentence in sentences]


def _clusters_sentence(tables: RunTables) -> str:
    """Say what is resampled together, or what could be; "" where nothing could."""
    if tables.clusters is None:
        return cluster_proposal(list(tables.asked.values()), tables.run.clusters)
    return clusters_sentence(list(tables.questions["question_id"]), tables.clusters, tables.run.clusters)


def noise_sentences(tables: RunTables) -> list[str]:
    """Return a sentence a metric, or one that the noise was not measured."""
    told = [noise_sentence(found, metric) for metric, found in tables.noise.items()]
    return told or [NOT_MEASURED]


def front_sentences(comparison: Comparison) -> list[str]:
    """Return a sentence a front, who has no place, and what is missing; none where nothing was measured."""
    found = comparison.front
    if comparison.main_metric is None:
        return []
    told = [_front_sentence(comparison, front) for front in found.fronts]
    reasons: dict[str, list[str]] = {}
    for variant, reason in found.left_out.items():
        reasons.setdefault(reason, []).append(comparison.codes[variant])
    out = [f"{some_of(codes)} ({reason})" for reason, codes in reasons.items()]
    return [*told, *([f"Without a place: {'; '.join(out)}."] if out else []), *([found.note] if found.note else [])]


def front_sentences_by_cost(comparison: Comparison) -> list[str]:
    """Return the sentences on one cost each."""
    return [_front_sentence(comparison, front) for front in comparison.front.fronts if len(front.costs) == 1]


def share_of_resamples(share: float) -> str:
    """Write a share of resamples; what is not always is never written as 100%, nor what happens as 0%."""
    if 0 < share < 0.01 or 0.99 < share < 1:
        return "< 1%" if share < 0.5 else "> 99%"
    return f"{100 * share:.0f}%"


def _front_sentence(comparison: Comparison, front: Front) -> str:
    costs = [COST_NAMES[cost] for cost in front.costs]
    members = some_of([comparison.codes[variant] for variant in front.members], 26)
    sentence = f"No variant beats {members} in {listing([comparison.directed(str(comparison.main_metric)), *costs])}."
    if not front.shares:
        units = counted(comparison.front.n_units, "question" if comparison.clusters is None else "cluster")
        return f"{sentence} {units} cannot tell how certain that is."
    moves = []
    for shares, verb in ((front.leaving, "is beaten"), (front.joining, "is not beaten")):
        in_order = sorted(shares, key=shares.__getitem__, reverse=True)
        codes = [(comparison.codes[one], share_of_resamples(shares[one])) for one in in_order]
        commonest = [f"{code} {verb} in {share} of resamples" for code, share in codes[:1]]
        others = [f"{code} in {share}" for code, share in codes[1:]]
        moves += [some_of([*commonest, *others], _MOST)] if commonest else []
    return f"{sentence} Not certain: {'; '.join(moves)}." if moves else sentence
