"""What models will never read of a corpus, told before a sweep starts: its variants may differ in that alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rag_lab._kit import home as home_folder
from rag_lab._kit.module_files import modules_from
from rag_lab._kit.wording import listing, some_of
from rag_lab.comparison.tables.reliability import is_unlike
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.errors import ModelError
from rag_lab.experiment.design import Variant
from rag_lab.experiment.plan import Plan
from rag_lab.models import shared
from rag_lab.models.truncation import NOTICED, ReadsPairs, Truncation, most_tokens, percent, short_name
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question
from rag_lab.stages.rerank import PairRerank

_SAMPLE = 500  # pairs that are counted for a reranker, evenly spread over the corpus
_NAMED = 4  # variants that are written out


@dataclass(frozen=True, slots=True)
class TruncationFound:
    """What one model never reads under some variants: of `whose` texts, of which a `sample` may have been counted."""

    variants: tuple[Variant, ...]
    model: str
    whose: str  # chunks, parents
    total: Truncation
    is_sample: bool = False

    @property
    def refused(self) -> list[str]:
        """The variants that are not to run so."""
        cut = self.total.n_longer > 0
        return [one.variant_id for one in self.variants if cut and one.config.on_truncation == "refuse"]


def truncations_of(plan: Plan, home: Path | None = None) -> list[TruncationFound]:
    """Return what models never read of the corpus: embedding models of chunks, rerankers of what they are given.

    Files are read and split where they were not, if no model is asked for it; no weights are loaded. What is not known
    before it runs is not among it.
    """
    folder = home or home_folder.usable_home()
    questions = [one for one in plan.dataset.questions if one.question_id in set(plan.questions)]
    found: dict[tuple[str, ...], TruncationFound] = {}
    pipeline: Pipeline | None = None
    with modules_from(plan.folder):
        for variant in plan.variants:
            pipeline = Pipeline.planned(variant.config, plan.dataset, home=folder, beside=pipeline)
            if not pipeline.index.is_built:
                continue
            for key, one in _of_variant(variant, pipeline, questions, found):
                found[key] = one
    return _alike(found.values())


def _alike(found: Iterable[TruncationFound]) -> list[TruncationFound]:
    """Put together what is the same under several variants: parents, say, do not depend on the size of chunks."""
    groups: dict[tuple[str, str, Truncation], TruncationFound] = {}
    for one in found:
        key = (one.model, one.whose, one.total)
        known = groups.get(key)
        groups[key] = one if known is None else replace(known, variants=(*known.variants, *one.variants))
    return list(groups.values())


def truncation_sentences(found: Sequence[TruncationFound], plan: Plan) -> list[str]:
    """Return a sentence for each model that cuts what it is sent, and what a comparison would then measure."""
    cut = [one for one in found if one.total.share_truncated >= NOTICED]
    return [*(_sentence(one, plan) for one in cut), *_measures_cutting(found), *_unknown(plan)]


def refusals(found: Sequence[TruncationFound], plan: Plan) -> list[str]:
    """Return a sentence for each model that cuts what variants refuse to have cut."""
    return [
        f"{_sentence(one, plan)[:-1]}, which on_truncation of {listing(one.refused)} refuses: shorten the "
        f"{one.whose}, choose a model that reads more, or set on_truncation to count."
        for one in found
        if one.refused
    ]


def _of_variant(
    variant: Variant, pipeline: Pipeline, questions: Sequence[Question], found: dict[tuple[str, ...], TruncationFound]
) -> Iterator[tuple[tuple[str, ...], TruncationFound]]:
    config, index = variant.config, pipeline.index
    if config.searches_vectors and index.truncation is not None:
        key: tuple[str, ...] = ("embedding", index.digest, config.models.embedding)
        yield (
            key,
            _with(variant, found.get(key))
            or TruncationFound((variant,), config.models.embedding, "chunks", index.truncation.total),
        )
    for stage in pipeline.stages:
        if isinstance(stage, PairRerank):
            model = config.models.cross_encoder if stage.step == "cross_encoder" else config.models.likelihood
            whose = "chunks" if stage.passage == "child" or config.retrieval.level == "child" else "parents"
            key = (stage.step, index.digest, model, whose)
            if known := _with(variant, found.get(key)):
                yield key, known
            elif total := _of_pairs(stage, index, whose, questions):
                yield key, TruncationFound((variant,), model, whose, total, is_sample=True)


def _with(variant: Variant, known: TruncationFound | None) -> TruncationFound | None:
    if known is None:
        return None
    return replace(known, variants=(*known.variants, variant))


def _of_pairs(stage: PairRerank, index: CorpusIndex, whose: str, questions: Sequence[Question]) -> Truncation | None:
    """Count a sample of what the reranker may be given, each passage with one of the questions."""
    scorer = stage.scorer
    if not isinstance(scorer, ReadsPairs) or scorer.most_tokens is None or not questions:
        return None
    passages = index.chunks.children() if whose == "chunks" else index.chunks.parents()
    if not passages:
        return None
    sample = passages[:: max(1, len(passages) // _SAMPLE)]
    pairs = [(questions[place % len(questions)].text, one.text) for place, one in enumerate(sample)]
    with suppress(ModelError):  # its tokenizer is not here: the sweep counts what it cuts
        characters = sum(len(passage) for _, passage in pairs)
        return Truncation.of(scorer.pair_tokens(pairs), characters, scorer.most_tokens)
    return None


def _sentence(found: TruncationFound, plan: Plan) -> str:
    about = "About " if found.is_sample else ""
    told = found.total.text(f"the {found.whose}{_named(found, plan)}", found.model)
    lost = percent(found.total.share_truncated)
    effect = "is not searched by meaning" if not found.is_sample else "counts for nothing in the reranking"
    return f"{about}{told}; {lost} of the text {effect}."


def _named(found: TruncationFound, plan: Plan) -> str:
    """Return whose texts they are, '' where they are those of all variants: by the setting, or by the variants."""
    if len(found.variants) == len(plan.variants):
        return ""
    keys = [key for key in plan.variants[0].config.flat() if key.startswith("corpus.")]
    flat = [one.config.flat() for one in plan.variants]
    varied = [key for key in keys if len({str(one[key]) for one in flat}) > 1]
    ours = [one.config.flat() for one in found.variants]
    shared = [f"{key} {ours[0][key]}" for key in varied if len({str(one[key]) for one in ours}) == 1]
    if shared:
        return f" of {listing(shared)}"
    return f" of {some_of([one.variant_id for one in found.variants], _NAMED)}"


def _unknown(plan: Plan) -> list[str]:
    """Name the embedding models of which nobody knows yet how much they read."""
    asked = {v.config.models.embedding for v in plan.variants if v.config.searches_vectors}
    with modules_from(plan.folder):
        unknown = [short_name(model) for model in sorted(asked) if most_tokens(shared.embedder(model)) is None]
    if not unknown:
        return []
    return [
        f"How much {listing(unknown)} reads of a chunk is not known here, before a first use or at all: what it cuts "
        "is counted when it runs, if it says so by then."
    ]


def _measures_cutting(found: Sequence[TruncationFound]) -> list[str]:
    """Say so where variants are embedded by one model and are not cut alike."""
    told = []
    for model in dict.fromkeys(one.model for one in found if not one.is_sample):
        ours = [one.total for one in found if one.model == model and not one.is_sample]
        shares = [one.share_truncated for one in ours]
        if len(ours) > 1 and is_unlike(min(shares), max(shares)):
            told.append(
                f"What {short_name(model)} cuts is not alike in the variants, so that their differences are of what "
                "was cut as well as of how texts were split: compare sizes of which hardly any chunk is longer than "
                f"{ours[0].limit:,} tokens, or take an embedding model that reads more."
            )
    return told
