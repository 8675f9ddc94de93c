"""Before a sweep starts: what is primary, what no metric can measure, what models will not read."""

import json
from dataclasses import replace

import pytest
from small_dataset import write_dataset
from small_plans import EMBEDDER, SCORER, write_machines_sweep

from rag_lab.cli.execute import run_with_status
from rag_lab.errors import RagLabError
from rag_lab.experiment.forecast.caveats import (
    cut_off_sentences,
    declared_sentences,
    not_applicable_sentences,
    refusals,
    truncation_sentences,
    truncations_of,
)
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.plan import plan
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import run_plan
from rag_lab.models import shared
from rag_lab.models.providers import EMBEDDERS, QUERY_LIKELIHOODS
from rag_lab.runs.omissions import asked_sentence
from rag_lab.runs.run_folder import RunFolder
from rag_lab.testing import HashEmbedder, OverlapScorer

LONG = "The plan of the plant is kept by the shift. " * 12


class ReadsWords(HashEmbedder):
    most_tokens = 20

    def text_tokens(self, texts, kind):
        return [len(text.split()) for text in texts]


class ScoresWords(OverlapScorer):
    most_tokens = 60

    def pair_tokens(self, pairs):
        return [len(passage.split()) for _, passage in pairs]


@pytest.fixture
def models(monkeypatch):
    monkeypatch.setattr(shared, "_NAMED", {})
    for kind, name, model in ((EMBEDDERS, EMBEDDER, ReadsWords()), (QUERY_LIKELIHOODS, SCORER, ScoresWords())):
        monkeypatch.setitem(shared._NAMED, (kind.name, name, ""), model)


@pytest.fixture
def planned(tmp_path, models):
    path = write_dataset(tmp_path)
    (path / "corpus" / "long.txt").write_text(LONG)

    def make(factors, **base):
        settings = {"query.hyde": "none", "query.rewrite": "none", "answer.name": "none", "corpus.chunk_overlap": 0}
        given = {"name": "e", "question": "q", "dataset": str(path), "metrics": ["retrieval.mrr@5"]}
        return plan({**given, "factors": factors}, settings=settings | base, folder=tmp_path)

    return make


def test_the_setting_whose_chunks_are_cut_is_named_and_what_its_comparison_measures(planned):
    checked = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "dense"})
    cut, measures = truncation_sentences(truncations_of(checked), checked)
    assert cut == (
        "20% of the chunks of corpus.chunk_size 600 are longer than minilm reads (20 tokens, here about 90 "
        "characters); 53% of the text is not searched by meaning."
    )
    assert measures.startswith("What minilm cuts is not alike in the variants")
    assert cut in describe(checked).replace("\n", " ")


def test_who_embeds_nothing_or_cuts_nothing_is_told_nothing(planned):
    by_words = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "bm25"})
    assert truncations_of(by_words) == []
    short = planned({"corpus.chunk_size": [80, 60]}, **{"retrieval.mode": "dense"})
    assert truncation_sentences(truncations_of(short), short) == []


def test_less_than_two_percent_of_the_text_is_not_worth_a_sentence(planned):
    checked = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "dense"})
    (found,) = [one for one in truncations_of(checked) if one.total.n_longer]
    few = replace(found, total=replace(found.total, unread_tokens=1, tokens=51))
    assert truncation_sentences([few], checked) == []


def test_of_a_model_that_does_not_say_how_much_it_reads_that_is_told(planned, monkeypatch):
    monkeypatch.setitem(shared._NAMED, (EMBEDDERS.name, EMBEDDER, ""), HashEmbedder())
    checked = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "dense"})
    (told,) = truncation_sentences(truncations_of(checked), checked)
    assert told.startswith("How much minilm reads of a chunk is not known here")


def test_all_variants_need_no_name_and_those_of_other_settings_their_own(planned):
    checked = planned({"retrieval.base_k": [5, 3], "retrieval.mode": ["dense", "bm25"]}, **{"corpus.chunk_size": 600})
    (cut,) = truncation_sentences(truncations_of(checked), checked)
    assert "20% of the chunks of baseline and base_k-3 are longer" in cut
    same = planned({"retrieval.base_k": [5, 3]}, **{"corpus.chunk_size": 600, "retrieval.mode": "dense"})
    (cut,) = truncation_sentences(truncations_of(same), same)
    assert cut.startswith("20% of the chunks are longer than minilm reads")


def test_what_a_reranker_will_not_read_is_told_once_for_the_variants_that_share_it(planned):
    reranked = {"rerank.name": "query_likelihood", "rerank.passage": "parent", "retrieval.mode": "bm25"}
    checked = planned({"corpus.chunk_size": [80, 600]}, **reranked)
    (cut,) = truncation_sentences(truncations_of(checked), checked)
    assert cut.startswith("About 20% of the parents are longer than smollm2 reads (60 tokens")
    assert cut.endswith("counts for nothing in the reranking.")


def test_a_sweep_that_refuses_does_not_start_and_nothing_is_embedded(planned, tmp_path, capsys):
    checked = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "dense", "on_truncation": "refuse"})
    (told,) = refusals(truncations_of(checked), checked)
    assert "which on_truncation of chunk_size-600 refuses: shorten the chunks" in told
    with pytest.raises(RagLabError, match="on_truncation of chunk_size-600 refuses"):
        run_plan(checked, tmp_path / "out")
    assert not (tmp_path / "out" / "plan.json").exists()
    assert shared.embedder(EMBEDDER).documents == []
    with pytest.raises(RagLabError, match="refuses"):
        run_with_status(checked, tmp_path / "out", RunOptions())
    assert "longer than minilm reads" not in "".join(capsys.readouterr())  # it is said once, by what ends it
    counted = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "dense"})
    assert refusals(truncations_of(counted), counted) == []


BASE = {"query": {"rewrite": "none", "hyde": "none"}, "answer": {"name": "none"}}
MORE = [
    {"id": f"m{n}", "question": f"At how many bar does valve {n} open?", "evidence": [{"source": "press.md"}]}
    for n in range(6)
]


@pytest.fixture
def told(tmp_path):
    def tell(more=MORE, **changes):
        data = {
            "name": "e",
            "question": "q",
            "dataset": str(write_dataset(tmp_path, extra_questions=more)),
            "base": BASE,
            "factors": {"rerank.final_k": [5, 3], "retrieval.mode": ["bm25", "tfidf", "dense"]},
            "metrics": ["retrieval.ndcg@5", "retrieval.mrr@5"],
        }
        return declared_sentences(plan(data | changes, folder=tmp_path))

    return tell


def test_each_variant_against_the_baseline_is_primary_in_the_first_metric(told):
    first, margin = told()
    assert first.startswith("Primary: retrieval.ndcg@5, 3 comparisons with the baseline; all else is secondary.")
    assert "its own 5%" in first
    assert "No margin is declared" in margin and "{retrieval.ndcg@5: 0.05}" in margin


def test_a_grid_and_a_list_declare_other_families(told):
    assert "the main effects and interactions of the grid" in told(design="grid")[0]
    listed = {"factors": {}, "design": "list", "variants": {n: {"rerank.final_k": k} for k, n in enumerate("abc", 3)}}
    assert "3 comparisons, every pair of variants;" in told(**listed)[0]
    assert "1 comparison: c against b;" in told(**listed, pairs=[["c", "b"]])[0]
    assert "2 comparisons with the baseline;" in told(**listed, pairs="baseline")[0]


def test_strictness_and_margins_are_told(told):
    first, margin = told(strict=True, margin={"retrieval.ndcg@5": 0.05, "retrieval.mrr@5": 0.1})
    assert "4% are for what is primary, 1% for the rest" in first
    assert margin.startswith("Margin: 0.05 in retrieval.ndcg@5 and 0.1 in retrieval.mrr@5;")


def test_too_few_questions_are_told_before_the_run(told):
    assert "measured on 1 question alone" in told(limits={"questions": 1})[-1]
    assert "measured on 5 questions alone" in told(limits={"questions": 5})[-1]
    assert len(told(limits={"questions": 6})) == 2
    assert "clusters and single questions alone" in told(clusters="document")[-1]


def test_a_metric_without_a_worst_value_is_told(told, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def hits(trace):\n    return len(trace.ranked)\n\n\nhits.higher_is_better = False\n"
    )
    found = told(metrics=["mine:hits"], margin={"mine:hits": 2})
    assert found[1].startswith("Margin: 2 in hits;")
    assert found[-1].startswith("hits has no worst value")


def test_where_no_metric_is_one_of_quality_nothing_is_primary(told):
    assert told(metrics=["cost.seconds"]) == [
        "Nothing is primary: no metric says which variant is better, so that none will be called better."
    ]
    assert told(factors={}) == ["Primary: retrieval.ndcg@5, of one variant; nothing is compared."]


def test_the_dry_run_says_it(tmp_path):
    data = {"name": "e", "question": "q", "dataset": str(write_dataset(tmp_path)), "base": BASE}
    text = describe(plan(data | {"factors": {"rerank.final_k": [5, 3]}, "metrics": ["retrieval.ndcg@5"]}))
    assert "Primary: retrieval.ndcg@5, 1 comparison with the baseline" in text


def test_a_variant_of_which_the_metric_sees_fewer_ranks_is_not_counted(told):
    first, *_ = told(factors={"rerank.final_k": [5, 2], "retrieval.mode": ["bm25", "dense"]})
    assert "1 comparison with the baseline;" in first
    assert "2 comparisons" in told(factors={"rerank.final_k": [5, 3], "retrieval.mode": ["bm25", "dense"]})[0]


def test_a_grid_of_which_half_cannot_be_compared_says_so_in_the_first_line(tmp_path):
    data = {
        "name": "e",
        "question": "q",
        "dataset": str(write_dataset(tmp_path)),
        "base": BASE,
        "factors": {"rerank.final_k": [5, 3], "retrieval.mode": ["bm25", "tfidf"]},
        "design": "grid",
        "metrics": ["retrieval.recall@10", "retrieval.recall@5"],
    }
    first = describe(plan(data, folder=tmp_path)).splitlines()[0]
    assert first == (
        "2 of 4 variants cannot be compared with the baseline: retrieval.recall@10 sees 6 ranks of one and 10 of the "
        "other."
    )
    data["metrics"] = data["metrics"][::-1]
    assert describe(plan(data, folder=tmp_path)).splitlines()[0] == "e: q"


def small_plan(folder, **changes):
    data = {"base": {"query": {"rewrite": "none", "hyde": "none"}}, "metrics": ["retrieval.mrr@10", "answer.words"]}
    return plan(write_machines_sweep(folder, **data | {"factors": {}} | changes))


NO_EVIDENCE = (
    "Metric retrieval.mrr@10 is not applicable to 1 of 4 questions: the question has no evidence: "
    "the documents do not hold the answer."
)


def test_what_no_variant_can_measure_is_said_once(tmp_path):
    checked = small_plan(tmp_path, factors={"rerank.final_k": [5, 3]})
    assert not_applicable_sentences(checked) == [NO_EVIDENCE]
    assert NO_EVIDENCE in describe(checked)


def test_a_comparison_of_repeats_of_which_there_is_one_is_foreseen(tmp_path):
    metrics = ["retrieval.mrr@10", "retrieval.stability@5"]
    assert not_applicable_sentences(small_plan(tmp_path, metrics=metrics)) == [
        NO_EVIDENCE,
        "Metric retrieval.stability@5 is not applicable to 4 of 4 questions: two repeats of a question are compared, "
        "and it has one; set repeats to 2.",
    ]
    assert not_applicable_sentences(small_plan(tmp_path, metrics=metrics, repeats=2)) == [NO_EVIDENCE]


def test_that_labels_name_files_alone_is_said_with_what_cannot_be_measured_by_them(tmp_path):
    metrics = ["retrieval.mrr@10", "ragas.non_llm_context_recall"]
    checked = small_plan(
        tmp_path, metrics=metrics, base={"corpus": {"parents": "none", "chunk_size": 60, "chunk_overlap": 0}}
    )
    labels = tmp_path / "small" / "questions.jsonl"
    assert not any("name files" in told for told in not_applicable_sentences(checked))
    lines = [json.loads(line) for line in labels.read_text().splitlines()]
    for line in lines:
        line["evidence"] = [{"source": item["source"]} for item in line.get("evidence", [])]
    labels.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = not_applicable_sentences(plan(tmp_path / "experiment.yaml"))[0]
    assert told.startswith("The labels of 3 of 3 questions name files of several passages")
    assert told.endswith("the answer is not known, so that ragas.non_llm_context_recall cannot be measured.")


def test_a_variant_without_answers_is_named(tmp_path):
    checked = small_plan(tmp_path, factors={"answer.name": ["llm", "none"]})
    assert not_applicable_sentences(checked) == [
        NO_EVIDENCE,
        "Metric answer.words is not applicable to 4 of 4 questions: no answer was asked for (in answer-none).",
    ]


def test_questions_beyond_the_limit_on_answers_are_counted(tmp_path):
    checked = small_plan(tmp_path, limits={"answers": 2})
    n = len(checked.questions)
    assert (
        f"answer.words is not applicable to {n - 2} of {n} questions: no answer was asked for."
        in (not_applicable_sentences(checked)[-1])
    )


def test_a_cut_off_deeper_than_the_ranking_is_said_before_the_run(tmp_path):
    factors = {"rerank.final_k": [5, 3]}
    checked = small_plan(tmp_path, factors=factors, metrics=["retrieval.recall@10", "retrieval.recall@6"])
    (sentence,) = cut_off_sentences(checked)
    assert sentence.startswith(
        "Metric retrieval.recall@10 looks at 10 ranks, but a ranking holds at most 6 (2 x rerank"
    )
    assert "in final_k-3" in sentence
    assert f"Note: {sentence}" in describe(checked)


def test_passages_of_different_size_are_said_before_the_run(tmp_path):
    checked = small_plan(tmp_path, factors={"corpus.parents": ["page", "none"]}, metrics=["retrieval.recall@6"])
    (sentence,) = cut_off_sentences(checked)
    assert "pages in baseline; children of 800 characters in parents-none" in sentence
    assert f"Note: {sentence}" in describe(checked)


def test_why_questions_are_left_out_is_said_before_the_run_and_kept_with_it(tmp_path):
    checked = small_plan(tmp_path, limits={"answers": 0})
    told = asked_sentence(3, checked.left_out)
    assert told.startswith("3 of 4 questions are asked. Left out: 1 to which the documents hold no answer")
    assert told in describe(checked)
    checked.run_folder(tmp_path / "run").write_plan()
    assert RunFolder.open(tmp_path / "run").left_out == checked.left_out
