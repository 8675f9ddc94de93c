"""What models will never read of a corpus, told before a sweep starts: its variants may differ in that alone."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rag_lab._kit import home as home_folder
from rag_lab._kit.registry import modules_from
from rag_lab._kit.wording import listing, some_of
from rag_lab.comparison.tables.reliability import is_unlike
from rag_lab.corpus.corpus_index import CorpusIndex
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
                    model = config.models.cross_encoder if stage.step == "cross_encoder" else config.models.likelihood
                    whose = "chunks" if "child" in (stage.passage, config.retrieval.level) else "parents"
                    key = (stage.step, index.digest, model, whose)
                    total = None if key in found else _of_pairs(stage, index, whose, questions)
                    seen[key] = TruncationFound((), model, whose, total, is_sample=True) if total else None
            for key, new in seen.items():
                if one := found.get(key, new):
                    found[key] = replace(one, variants=(*one.variants, variant))
    # What is the same under several variants is put together: parents, say, do not depend on the size of chunks.
    groups: dict[tuple[str, str, Truncation], TruncationFound] = {}
    for one in found.values():
        same = (one.model, one.whose, one.total)
        known = groups.get(same)
        groups[same] = one if known is None else replace(known, variants=(*known.variants, *one.variants))
    return list(groups.values())


def truncation_sentences(found: Sequence[TruncationFound], plan: Plan) -> list[str]:
    """Return a sentence for each model that cuts what it is sent, and what a comparison would then measure."""
    sentences = [_sentence(one, plan) for one in found if one.total.share_truncated >= NOTICED]
    for model in dict.fromkeys(one.model for one in found if not one.is_sample):
        ours = [one.total for one in found if one.model == model and not one.is_sample]
        shares = [one.share_truncated for one in ours]
        if len(ours) > 1 and is_unlike(min(shares), max(shares)):
            sentences.append(
                f"What {short_name(model)} cuts is not alike in the variants, so that their differences are of what "
                "was cut as well as of how texts were split: compare sizes of which hardly any chunk is longer than "
                f"{ours[0].limit:,} tokens, or take an embedding model that reads more."
            )
    asked = {v.config.models.embedding for v in plan.variants if v.config.searches_vectors}
    with modules_from(plan.folder):
        unknown = [short_name(model) for model in sorted(asked) if most_tokens(shared.embedder(model)) is None]
    if unknown:
        sentences.append(
            f"How much {listing(unknown)} reads of a chunk is not known here, before a first use or at all: what it "
            "cuts is counted when it runs, if it says so by then."
        )
    return sentences


def refusals(found: Sequence[TruncationFound], plan: Plan) -> list[str]:
    """Return a sentence for each model that cuts what variants refuse to have cut."""
    return [
        f"{_sentence(one, plan)[:-1]}, which on_truncation of {listing(one.refused)} refuses: shorten the "
        f"{one.whose}, choose a model that reads more, or set on_truncation to count."
        for one in found
        if one.refused
    ]


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
    return f"{about}{counts}; {percent(found.total.share_truncated)} of the text {effect}."
