"""What fusion is for, on real questions: two searches that fail differently find more together than either alone."""

import os
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.corpus.corpus_index import locate_all, open_index
from rag_lab.data.formats import import_dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.models import shared
from rag_lab.models.remembered_vectors import RememberedEmbedder
from rag_lab.pipeline import Pipeline
from rag_lab.records import Trace
from rag_lab.stages.retrieval.retrieval_stages import searches
from rag_lab.stages.run_stage import run_stage

REAL = Path(os.environ.get("RAG_LAB_DATA") or Path(__file__).parents[4] / "shared" / "data") / "xquad"

pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason=f"XQuAD is not at {REAL}; set RAG_LAB_DATA")


def imported(language, folder):
    dataset, _ = import_dataset("squad", REAL / f"xquad.{language}.json", folder / language, language=language)
    return dataset


def reciprocal_rank(mode, dataset, embedder, home, analyzer="unicode", every=1):
    config = PipelineConfig().override({"retrieval.mode": mode, "retrieval.analyzer": analyzer, "store.name": "exact"})
    index = open_index(dataset.corpus_dir, config.corpus, embedder, home=home, store=config.store)
    questions, problems = locate_all(index, dataset.questions[::every])
    assert not problems
    traces = [Trace(question, search_query=question.text) for question in questions]
    for stage in searches(Pipeline.on(index, embedder, config).parts):
        traces = run_stage(stage, traces)
    ranked = [replace(trace, ranked=trace.candidates) for trace in traces]
    scores = evaluate(ranked, ["retrieval.mrr@10"])
    assert len(scores) == len(questions)
    return fmean(score.value for score in scores)


@pytest.mark.slow
def test_reciprocal_rank_fusion_beats_bm25_and_minilm(tmp_path):
    dataset = imported("en", tmp_path)
    embedder = RememberedEmbedder(shared.embedder("sentence_transformers:minilm"), tmp_path / "vectors.sqlite")
    found = {mode: reciprocal_rank(mode, dataset, embedder, tmp_path, every=2) for mode in ("dense", "bm25", "rrf")}
    assert found["rrf"] > max(found["dense"], found["bm25"]), found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "analyzer", "least"), [("de", "german", 0.9), ("ru", "russian", 0.9), ("zh", "unicode", 0.93)]
)
@pytest.mark.parametrize("method", ["bm25", "tfidf"])
def test_words_are_found_in_other_languages(tmp_path, language, analyzer, least, method):
    from rag_lab.stores.sparse import SPARSE

    dataset = imported(language, tmp_path)
    files = sorted(path for path in dataset.corpus_dir.rglob("*") if path.is_file())
    sources = [file.relative_to(dataset.corpus_dir).as_posix() for file in files]
    texts = [file.read_text(encoding="utf-8") for file in files]
    SPARSE[method].build(tmp_path / "index", sources, texts, analyzer)
    ids, _ = SPARSE[method](tmp_path / "index").search([question.text for question in dataset.questions], 10)
    wanted = [question.evidence[0].source for question in dataset.questions]
    ranks = [1 / (found.index(source) + 1) if source in found else 0 for found, source in zip(ids, wanted, strict=True)]
    assert fmean(ranks) > least - (0.05 if method == "tfidf" else 0)
