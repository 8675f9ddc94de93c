"""What a plan declares, and what it cannot measure or show: metrics without labels, cut-offs, what no model reads."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_lab._kit.home import usable_home
from rag_lab._kit.registry import modules_from
from rag_lab._kit.wording import counted, listing, some_of
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.data.labels import names_file_alone, whole_files_sentences
from rag_lab.data.sampling import clusters_of
from rag_lab.errors import ModelError
from rag_lab.evaluation import cutoff_caveats, registry
from rag_lab.evaluation.metric import question_gap
from rag_lab.evaluation.ragas_metrics import SPECS
from rag_lab.evaluation.retrieval import ASKED_ONCE, STABILITY
from rag_lab.experiment import design
from rag_lab.experiment.config import SAYS
from rag_lab.experiment.plan import Plan
from rag_lab.models import shared, truncation
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question
from rag_lab.stages.rerank import ROLES, PairRerank
from rag_lab.statistics.randomization import ALPHA, smallest_n

_FEWEST = smallest_n(ALPHA)
_PAIRS = 5  # that are written out
_SAMPLE = 500  # pairs that are counted for a reranker, evenly spread over the corpus
_NAMED = 4  # variants that are written out


@dataclass(frozen=True, slots=True)
class TruncationFound:
    """What one model never reads under some variants: of `whose` texts, of which a `sample` may have been counted."""

    variants: tuple[design.Variant, ...]
    model: str
    whose: str  # chunks, parents
    total: truncation.Truncation
    is_sample: bool = False


def truncations_of(plan: Plan, home: Path | None = None) -> list[TruncationFound]:
    """Return what models never read of the corpus: embedding models of chunks, rerankers of what they are given.

    Files are read and split where they were not, if no model is asked for it; no weights are loaded. What is not known
    before it runs is not among it.
    """
    folder, questions = home or usable_home(), asked_questions(plan)
    found: dict[tuple[str, ...], TruncationFound] = {}
    pipeline: Pipeline | None = None
    with modules_from(plan.folder):
        for variant in plan.variants:
            config = variant.config
            pipeline = Pipeline.planned(config, plan.dataset, home=folder, beside=pipeline)
            index = pipeline.index
            if not index.is_built:
                continue
            seen: dict[tuple[str, ...], TruncationFound | None] = {}
            if config.searches_vectors and index.truncation is not None:
                key: tuple[str, ...] = ("embedding", index.digest, config.models.embedding)
                seen[key] = TruncationFound((), config.models.embedding, "chunks", index.truncation.total)
            for stage in pipeline.stages:
                if isinstance(stage, PairRerank):
                    model = str(getattr(config.models, ROLES[stage.step]))
                    whose = "chunks" if "child" in (stage.passage, config.retrieval.level) else "parents"
                    key = (stage.step, index.digest, model, whose)
                    total = None if key in found else _of_pairs(stage, index, whose, questions)
                    seen[key] = TruncationFound((), model, whose, total, is_sample=True) if total else None
            for key, new in seen.items():
                if one := found.get(key, new):
                    found[key] = replace(one, variants=(*one.variants, variant))
    # What is the same under several variants is put together: parents, say, do not depend on the size of chunks.
    groups: dict[tuple[str, str, truncation.Truncation], TruncationFound] = {}
    for one in found.values():
        known = groups.setdefault((one.model, one.whose, one.total), replace(one, variants=()))
        groups[one.model, one.whose, one.total] = replace(known, variants=(*known.variants, *one.variants))
    return list(groups.values())


def truncation_sentences(found: Sequence[TruncationFound], plan: Plan) -> list[str]:
    """Return a sentence for each model that cuts what it is sent, and what a comparison would then measure."""
    sentences = [_sentence(one, plan) for one in found if one.total.share_truncated >= truncation.NOTICED]
    for model in dict.fromkeys(one.model for one in found if not one.is_sample):
        ours = [one.total for one in found if one.model == model and not one.is_sample]
        shares = [one.share_truncated for one in ours]
        if len(ours) > 1 and truncation.is_unlike(min(shares), max(shares)):
            name = truncation.short_name(model)
            sentences.append(SAYS["cut_unlike"].format(model=name, limit=ours[0].limit))
    asked = sorted({v.config.models.embedding for v in plan.variants if v.config.searches_vectors})
    with modules_from(plan.folder):
        unknown = [one for one in asked if truncation.most_tokens(shared.embedder(one)) is None]
    if unknown:
        names = listing([truncation.short_name(one) for one in unknown])
        sentences.append(SAYS["cut_unknown"].format(models=names))
    return sentences


def refusals(found: Sequence[TruncationFound], plan: Plan) -> list[str]:
    """Return a sentence for each model that cuts what variants refuse to have cut."""
    sentences = []
    for one in (one for one in found if one.total.n_longer > 0):
        if refused := [each.variant_id for each in one.variants if each.config.on_truncation == "refuse"]:
            of = {"cut": _sentence(one, plan)[:-1], "variants": listing(refused), "whose": one.whose}
            sentences.append(SAYS["cut_refused"].format(**of))
    return sentences


def _of_pairs(
    stage: PairRerank, index: CorpusIndex, whose: str, questions: Sequence[Question]
) -> truncation.Truncation | None:
    """Count a sample of what the reranker may be given, each passage with one of the questions."""
    scorer: Any = stage.scorer
    limit = truncation.most_tokens(scorer)
    if limit is None or not questions:
        return None
    passages = index.chunks.children() if whose == "chunks" else index.chunks.parents()
    if not passages:
        return None
    sample = passages[:: max(1, len(passages) // _SAMPLE)]
    pairs = [(questions[place % len(questions)].text, one.text) for place, one in enumerate(sample)]
    with suppress(ModelError):  # its tokenizer is not here: the sweep counts what it cuts
        characters = sum(len(passage) for _, passage in pairs)
        return truncation.Truncation.of(scorer.pair_tokens(pairs), characters, limit)
    return None


def _sentence(found: TruncationFound, plan: Plan) -> str:
    about, effect = "", "is not searched by meaning"
    if found.is_sample:
        about, effect = "About ", "counts for nothing in the reranking"
    of = ""  # whose texts they are, where they are not those of all variants: by the setting, or by the variants
    if len(found.variants) < len(plan.variants):
        keys = [key for key in plan.variants[0].config.flat() if key.startswith("corpus.")]
        flat, ours = ([one.config.flat() for one in some] for some in (plan.variants, found.variants))
        varied = [key for key in keys if len({str(one[key]) for one in flat}) > 1]
        shared_keys = [f"{key} {ours[0][key]}" for key in varied if len({str(one[key]) for one in ours}) == 1]
        names = [one.variant_id for one in found.variants]
        of = f" of {listing(shared_keys) if shared_keys else some_of(names, _NAMED)}"
    counts = found.total.text(f"the {found.whose}{of}", found.model)
    return f"{about}{counts}; {truncation.percent(found.total.share_truncated)} of the text {effect}."


def not_applicable_sentences(plan: Plan) -> list[str]:
    """Return one sentence for each metric and reason, with the variants where they are not all; labels come first."""
    questions = asked_questions(plan)
    variants_of: dict[registry.ExpectedGap, list[str]] = {}
    answered = {True: set(plan.answered), False: set[str]()}  # by whether a variant answers
    with modules_from(plan.folder):
        gaps = {on: registry.expected_gaps(plan.experiment.metrics, questions, ids) for on, ids in answered.items()}
    for variant in plan.variants:
        for gap in gaps[variant.config.answer.is_on]:
            variants_of.setdefault(gap, []).append(variant.variant_id)
    sentences = []
    if any(names_file_alone(item) for question in questions for item in question.evidence):
        with modules_from(plan.folder):
            pipeline = Pipeline.planned(plan.expansion.baseline.config, plan.dataset, home=usable_home())
            sentences = whole_files_sentences(pipeline.locate(questions)[0] if pipeline.index.is_built else questions)
        named = ((one, registry.parse_name(one).info.name.removeprefix("ragas.")) for one in plan.experiment.metrics)
        if blind := [one for one, name in named if name in SPECS and "reference_contexts" in SPECS[name].arguments]:
            sentences = [f"{one[:-1]}, so that {listing(blind)} cannot be measured." for one in sentences]
    for gap, names in variants_of.items():
        in_all = len(names) == len(plan.variants)
        sentences.append(str(gap) if in_all else f"{str(gap)[:-1]} (in {', '.join(names)}).")
    once, n = plan.experiment.repeats == 1, len(questions)
    alone = [one.name for one in plan.metrics if once and one.info.name == STABILITY]
    return [*sentences, *(str(registry.ExpectedGap(name, n, n, ASKED_ONCE.reason)) for name in alone)]


def asked_questions(plan: Plan) -> list[Question]:
    """Return the questions that are asked, in the order of the dataset."""
    asked = set(plan.questions)
    return [question for question in plan.dataset.questions if question.question_id in asked]


def cut_off_sentences(plan: Plan) -> list[str]:
    """Return what cut-offs cannot compare: deeper than a ranking can be, or over passages of different size."""
    configs, metrics = {one.variant_id: one.config for one in plan.variants}, plan.experiment.metrics
    unequal = cutoff_caveats.unequal_text(metrics, configs, questions=asked_questions(plan))
    return [*cutoff_caveats.shallow_sentences(cutoff_caveats.shallow(metrics, configs).values()), *unequal]


def not_compared_sentence(plan: Plan) -> str:
    """Say that half of the variants, or more, cannot be compared with the baseline in the primary metric; else ""."""
    if all(metric.info.is_cost for metric in plan.metrics):
        return ""
    name, configs = plan.deciding_metric.name, {variant.variant_id: variant.config for variant in plan.variants}
    baseline, *others = configs
    why = [cutoff_caveats.not_compared(name, configs, (one, baseline)) for one in others]
    return cutoff_caveats.not_comparable_sentence(why)


def declared_sentences(plan: Plan) -> list[str]:
    """Return what is primary, at which level, the margins, and one sentence for each thing that cannot be concluded."""
    if all(metric.info.is_cost for metric in plan.metrics):
        return ["Nothing is primary: no metric says which variant is better, so that none will be called better."]
    primary = plan.deciding_metric
    if len(plan.variants) == 1:
        return [f"Primary: {primary.name}, of one variant; nothing is compared."]
    level = SAYS["level_strict" if plan.experiment.strict else "level"]
    sentences = [f"Primary: {primary.name}, {_family(plan, primary.name)}; all else is secondary. {level}"]
    if plan.margins:
        named = listing([f"{margin:g} in {metric}" for metric, margin in plan.margins.items()])
        sentences.append(f"Margin: {named}; what is not worse by more may be left out.")
    else:
        example = "0.05" if (primary.info.low, primary.info.high) == (0.0, 1.0) else "..."
        sentences.append(SAYS["no_margin"].format(metric=primary.name, example=example))
    if primary.info.scale.worst is None:
        sentences.append(SAYS["no_worst"].format(metric=primary.name))
    if (n := measured(plan, primary)[1]) < _FEWEST:
        what = counted(n, "question") if plan.experiment.clusters == "none" else f"{n} clusters and single questions"
        sentences.append(SAYS["few_measured"].format(metric=primary.name, what=what, fewest=_FEWEST))
    return sentences


def _family(plan: Plan, metric: str) -> str:
    ranks = {variant.variant_id: cutoff_caveats.ranks_seen(metric, variant.config) for variant in plan.variants}
    pairs = [(one, other) for one, other in plan.pairs if ranks[one] == ranks[other]]  # others are not compared in it
    given, n = plan.experiment, counted(len(pairs), "comparison")
    if plan.rounds and given.design == "racing":
        return "the winner of the race against the baseline, one comparison"
    if plan.rounds:
        return "what is chosen against the baseline, one comparison on questions that chose nothing"
    if given.design == "grid" and len(given.factors) > 1:
        return "the main effects and interactions of the grid"
    if given.design == "fractional" and len(given.factors) > 1:
        return "the effects that the fraction can tell"
    if given.design != "list" or given.pairs == "baseline":
        return f"{n} with the baseline"
    if isinstance(given.pairs, tuple):
        named = [f"{variant} against {against}" for variant, against in pairs]
        more = [f"{len(named) - _PAIRS} more"] if len(named) > _PAIRS else []
        return f"{n}: {listing([*named[:_PAIRS], *more])}"
    return f"{n}, every pair of variants"


def measured(plan: Plan, metric: registry.ParsedName) -> tuple[int, int]:
    """Return on how many questions a metric can be measured, and how many clusters and single questions they are."""
    asked = set(plan.answered if "answer" in metric.info.needs else plan.questions)
    clusters = clusters_of(plan.dataset.questions, plan.experiment.clusters) or {}
    found = [q for q in plan.dataset.questions if q.question_id in asked and not question_gap(q, metric.info.needs)]
    return len(found), len({(q.question_id in clusters, clusters.get(q.question_id, q.question_id)) for q in found})
