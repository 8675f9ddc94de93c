from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_dataset import write_dataset
from small_plans import write_machines_sweep

from rag_lab.experiment.config import ExperimentConfig, Limits, checkout_file
from rag_lab.experiment.design import ExperimentError
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.manifest import run_identities
from rag_lab.experiment.new_project import METRICS, Asked, usual_metrics
from rag_lab.experiment.plan import plan
from rag_lab.experiment.questions import choose_questions
from rag_lab.records import QUERY_CLASSES, Question
from rag_lab.runs.run_folder import RunFolder
from rag_lab.stores.config import STORES

SILENT = {"query": {"rewrite": "none", "hyde": "none"}}


@pytest.fixture
def experiment(tmp_path):
    factors = {"rerank.final_k": [5, 3], "query.hyde": ["none", "always"]}
    data = {"base": SILENT, "factors": factors, "metrics": ["retrieval.ndcg@10"]}
    return lambda **changes: write_machines_sweep(tmp_path, **data | changes)


def test_a_plan_has_the_variants_and_all_questions(experiment, tmp_path):
    checked = plan(experiment())
    assert [variant.variant_id for variant in checked.variants] == ["baseline", "final_k-3", "hyde-always"]
    assert checked.questions == checked.answered == ("q1", "q2", "q3", "q4")
    run = checked.run_folder(tmp_path / "run")
    run.write_plan()
    assert RunFolder.open(tmp_path / "run") == run
    assert run.baseline == "baseline"


def test_everything_that_is_wrong_is_named_before_anything_runs(experiment, tmp_path):
    path = experiment(
        dataset="nowhere",
        factors={"rerank.nmae": ["none"], "rerank.final_k": [5, 0], "models.generation": ["gemini:gemini-2.5-flash"]},
        metrics=["retrieval.ndcg", "ragas.faithfulness", "foo"],
        base={"models": {"embedding": "sentence_transformers:no/such/folder"}},
        repeats=0,
    )
    with pytest.raises(ExperimentError) as error:
        plan(path)
    text = "\n".join(error.value.problems)
    for word in ("nowhere", "rerank.nmae", "final_k", "cut-off", "needs a judge", "'foo'", "no/such/folder", "repeats"):
        assert word in text, word
    assert str(path) in str(error.value)
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_dir()] == ["small"]


def test_a_list_with_a_bad_name_is_not_said_to_be_empty_as_well(experiment):
    with pytest.raises(ExperimentError) as error:
        plan(experiment(design="list", factors={}, variants={"Not/a name": {}, "a": {"rerank.final_k": 2}}))
    assert len(error.value.problems) == 1
    assert "none given" not in str(error.value)


def test_models_of_every_variant_are_checked_but_not_those_that_no_variant_uses(experiment):
    factors = {"models.generation": ["llamacpp:smollm2", "gemini:gemini-2.5-flash", "nobody:x"]}
    with pytest.raises(ExperimentError) as error:
        plan(experiment(factors=factors, base={"models": {"cross_encoder": "nobody:y"}}))
    gemini, nobody = error.value.problems
    assert "GOOGLE_API_KEY" in gemini
    assert "'nobody'" in nobody


def test_a_store_that_is_not_installed_is_said_before_anything_runs(experiment, monkeypatch):
    monkeypatch.setitem(STORES, "faiss", replace(STORES["faiss"], needs="nobodys_faiss"))
    with pytest.raises(ExperimentError, match=r"store.name \(faiss\): .*pip install 'rag_lab\[stores\]'"):
        plan(experiment(factors={"store.name": ["chroma", "faiss"]}))


def test_chunks_of_more_tokens_than_the_model_reads_are_said_before_anything_runs(experiment):
    with pytest.raises(
        ExperimentError, match=r"chunk_tokens is 400, but sentence_transformers:minilm reads 256 tokens"
    ):
        plan(experiment(factors={"corpus.chunk_tokens": [None, 128, 400]}))
    with pytest.raises(ExperimentError, match=r"context is late, but vectors of \S+ are no means of its tokens'"):
        plan(experiment(factors={"corpus.context": ["none", "late"], "models.embedding": ["static:wordllama"]}))


def test_a_judge_is_checked_like_any_other_model(experiment):
    with pytest.raises(ExperimentError, match=r"judge \(gemini:x\): No key"):
        plan(experiment(metrics=["ragas.faithfulness"], judge="gemini:x"))


def test_a_language_that_a_metric_cannot_be_asked_in_is_refused(experiment):
    metrics = ["ragas.noise_sensitivity", "ragas.faithfulness"]
    with pytest.raises(ExperimentError, match=r"prompts of 'ragas\.noise_sensitivity' into german"):
        plan(experiment(metrics=metrics, judge="llamacpp:smollm2", judge_language="german"))


def test_a_server_of_ones_own_needs_no_key(experiment):
    server = "openai:llama3.2:3b?base_url=http://127.0.0.1:9/v1"
    assert plan(experiment(metrics=["ragas.faithfulness"], judge=server)).experiment.judge == server


def test_a_rule_for_clusters_that_matches_nothing_stands_among_the_problems(experiment):
    with pytest.raises(ExperimentError) as error:
        plan(experiment(clusters="tag:zzz", metrics=["foo"]))
    assert any("'tag:zzz' puts none of 4 questions into a cluster" in problem for problem in error.value.problems)
    assert len(error.value.problems) == 2


def test_a_dry_run_counts_the_asked_questions_in_clusters_and_in_none(experiment):
    text = describe(plan(experiment(clusters="document")))
    assert "3 of 4 questions are in 3 clusters (document)" in text
    assert "1 other stands alone" in text
    assert "cluster" not in describe(plan(experiment()))


questions = st.lists(
    st.builds(Question, st.uuids().map(str), st.just("?"), query_class=st.sampled_from(QUERY_CLASSES)), max_size=30
)


@given(questions, st.integers(1, 40) | st.none(), st.integers(0, 40) | st.none(), st.integers(0, 5))
@settings(deadline=None)
def test_questions_are_chosen_within_the_limits_in_order_and_always_the_same(questions, asked, answered, seed):
    experiment = ExperimentConfig(
        name="n", question="q", dataset="d", seed=seed, limits={"questions": asked, "answers": answered}
    )
    chosen, with_answer = choose_questions(questions, experiment)
    ids = [question.question_id for question in questions]
    assert list(chosen) == [i for i in ids if i in chosen]
    assert len(chosen) == (len(ids) if asked is None else min(asked, len(ids)))
    assert list(with_answer) == [i for i in chosen if i in with_answer]
    assert answered is None or len(with_answer) == min(answered, len(chosen))
    assert choose_questions(questions, experiment) == (chosen, with_answer)


def test_a_question_without_an_answer_is_asked_only_where_it_is_answered():
    known = [Question(f"k{i}", "?") for i in range(4)]
    unknown = [Question(f"u{i}", "?", answerable=False) for i in range(4)]
    limited = ExperimentConfig(name="n", question="q", dataset="d", limits={"answers": 2})
    asked, answered = choose_questions([*known, *unknown], limited)
    assert set(asked) == {question.question_id for question in known} | set(answered)
    unlimited = ExperimentConfig(name="n", question="q", dataset="d")
    assert len(choose_questions([*known, *unknown], unlimited)[0]) == 8


def test_a_limit_is_filled_with_questions_that_can_be_measured():
    known = [Question(f"k{i}", "?") for i in range(4)]
    unknown = [Question(f"u{i}", "?", answerable=False) for i in range(4)]
    limited = ExperimentConfig(name="n", question="q", dataset="d", limits={"questions": 4})
    assert choose_questions([*known, *unknown], limited, answers=False) == (("k0", "k1", "k2", "k3"), ())
    one_answer = limited.model_copy(update={"limits": Limits(questions=4, answers=1)})
    asked, answered = choose_questions([*known, *unknown], one_answer)
    assert len(asked) == 4
    assert set(answered) <= set(asked)


def test_what_is_declared_stands_in_the_plan_before_anything_runs(experiment, tmp_path):
    checked = plan(experiment(margin={"retrieval.ndcg@10": 0.05}, strict=True))
    checked.run_folder(tmp_path / "run").write_plan()
    run = RunFolder.open(tmp_path / "run")
    assert (run.margins, run.strict, run.design) == ({"retrieval.ndcg@10": 0.05}, True, "one_factor")
    assert run.pairs == (("final_k-3", "baseline"), ("hyde-always", "baseline"))
    assert run.post_hoc_margins == ()


@pytest.mark.parametrize(
    ("margin", "said"),
    [
        ({"retrieval.ndcg@10": -0.1}, r"ndcg@10 = -0.1 is no loss"),
        ({"retrieval.ndcg@10": 1.5}, r"wider than the metric's range, 0 to 1"),
        ({"retrieval.mrr@10": 0.1}, r"Unknown metric 'retrieval.mrr@10'"),
        ({"retrieval.ndcg@10": "much"}, r"margin.retrieval.ndcg@10: must be a valid number"),
        ({"retrieval.ndcg@10": True}, r"margin.retrieval.ndcg@10: must be a valid number"),
        ([0.05], r"margin: must name the metric of each, as in \{retrieval.ndcg@5: 0.05\}"),
    ],
)
def test_a_margin_that_cannot_be_is_one_sentence(experiment, margin, said):
    with pytest.raises(ExperimentError, match=said) as error:
        plan(experiment(margin=margin))
    assert len(error.value.problems) == 1


def test_a_margin_may_be_of_a_metric_that_the_labels_chose(experiment):
    assert plan(experiment(metrics=[], margin={"retrieval.ndcg@10": 0.05})).margins == {"retrieval.ndcg@10": 0.05}


def test_what_is_declared_does_not_change_what_a_variant_scores(experiment):
    notebook = checkout_file("notebooks/02_run_variant.ipynb")
    before = run_identities(plan(experiment()), notebook)
    assert run_identities(plan(experiment(margin={"retrieval.ndcg@10": 0.05}, strict=True)), notebook) == before


def test_a_list_declares_every_pair_or_those_that_it_names_each_by_what_is_run_for_it(experiment):
    listed = {"factors": {}, "design": "list", "variants": {n: {"rerank.final_k": k} for k, n in enumerate("abc", 1)}}
    listed["variants"]["d"] = listed["variants"]["b"]

    def declared(pairs, **only):
        return plan(experiment(**listed, pairs=pairs), **only).pairs

    assert declared(None) == declared("all") == (("b", "a"), ("c", "a"), ("c", "b"))
    assert declared("baseline") == (("b", "a"), ("c", "a"))
    assert declared([["c", "b"]]) == (("c", "b"),)
    assert declared([["d", "c"], ["b", "c"], ["d", "b"]]) == (("b", "c"),)
    assert declared([["c", "b"]], only=["b"]) == (("b", "a"),)
    assert declared("all", only=["a"]) == ()


def test_a_dry_run_says_why_nothing_is_answered_and_proposes_clusters(experiment, tmp_path):
    silent = SILENT | {"answer": {"name": "none"}}
    text = describe(plan(experiment(base=silent)))
    assert "0 of them are answered (no variant answers: answer.name is none)" in text
    assert "declared as clusters" not in text
    more = [
        {"id": f"m{n}", "question": f"At how many bar, {n}?", "evidence": [{"source": "press.md"}]} for n in range(8)
    ]
    text = describe(plan(experiment(base=silent, dataset=str(write_dataset(tmp_path, "many", more)))))
    assert "11 questions stand on 3 documents, and none are declared as clusters" in text


@pytest.fixture
def listed(tmp_path):
    factors = {"rerank.final_k": [5, 3], "retrieval.mode": ["bm25", "tfidf", "dense"]}
    base = SILENT | {"answer": {"name": "none"}}
    return {"name": "e", "question": "q", "dataset": str(write_dataset(tmp_path)), "base": base, "factors": factors}


def ids(found):
    return [variant.variant_id for variant in found.variants]


def test_a_setting_holds_for_all_variants_and_the_run_has_a_folder_of_its_own(listed):
    found = plan(listed, settings={"rerank.input_limit": 7})
    assert {variant.config.rerank.input_limit for variant in found.variants} == {7}
    assert found.experiment.name == "e__input_limit-7"
    assert plan(listed).experiment.name == "e"


def test_only_some_variants_run_and_the_baseline_always_with_them(listed):
    found = plan(listed, only=["mode-tfidf"])
    assert ids(found) == ["baseline", "mode-tfidf"]
    assert found.experiment.name == "e__only_mode-tfidf"
    (notice,) = found.expansion.notices
    assert notice.startswith("2 of 4 variants are run, without final_k-3 and mode-dense. baseline runs, too")
    assert ids(plan(listed, only=["mode = dense", "baseline"])) == ["baseline", "mode-dense"]


def test_what_was_run_can_be_run_again_from_what_is_kept_of_it(listed, tmp_path):
    found = plan(listed, settings={"rerank.input_limit": 7}, only=["mode-tfidf"])
    (tmp_path / "kept.yaml").write_text(found.experiment.to_yaml())
    again = plan(tmp_path / "kept.yaml")
    assert ids(again) == ids(found)
    assert [v.config.identity for v in again.variants] == [v.config.identity for v in found.variants]


def test_variants_of_a_list_are_set_and_chosen_alike(listed):
    del listed["factors"]
    pipelines = {"words": {"retrieval.mode": "bm25"}, "both": {"retrieval.mode": "rrf"}, "few": {"rerank.final_k": 2}}
    listed |= {"design": "list", "variants": pipelines}
    found = plan(listed, settings={"rerank.input_limit": 7}, only=["few"])
    assert ids(found) == ["words", "few"]
    assert {variant.config.rerank.input_limit for variant in found.variants} == {7}
    with pytest.raises(ExperimentError, match=r"retrieval\.mode: the variants differ in it"):
        plan(listed, settings={"retrieval.mode": "bm25"})


def test_all_mistakes_are_told_at_once_with_near_names(listed):
    with pytest.raises(ExperimentError) as error:
        plan(listed, settings={"rerank.final_k": 9}, only=["mode-tfdif", "mode-bm52"])
    assert len(error.value.problems) == 3
    assert "rerank.final_k: the variants differ in it" in str(error.value)
    assert "did you mean 'mode-tfidf'?" in str(error.value)
    with pytest.raises(ExperimentError, match=r"did you mean 'rerank\.name'"):
        plan(listed, settings={"rerank.nmae": "none"})


def test_a_name_that_gets_too_long_stays_a_name(listed):
    found = plan(listed, only=["mode-tfidf", "mode-dense", "final_k-3"], settings={"corpus.chunk_size": 400})
    assert len(found.experiment.name) <= 64
    assert ExperimentConfig.model_validate(found.experiment.model_dump()) == found.experiment


@pytest.fixture
def unlabelled(tmp_path):
    path = write_dataset(tmp_path, "unlabelled")
    (path / "questions.jsonl").write_text('{"id": "a", "question": "When?"}\n{"id": "b", "question": "Who?"}\n')
    return str(path)


def test_questions_without_labels_demand_no_metrics_and_have_their_answers_compared(experiment, unlabelled):
    checked = plan(experiment(dataset=unlabelled, metrics=[]))
    assert [metric.name for metric in checked.metrics] == ["cost.seconds", "cost.tokens"]
    assert checked.questions == checked.answered == ("a", "b")
    assert checked.experiment.metrics == ["cost.seconds", "cost.tokens"]
    one = plan(experiment(dataset=unlabelled, metrics=["retrieval.ndcg@10"]))  # which applies to none of them
    assert [metric.name for metric in one.metrics] == ["retrieval.ndcg@10"]


def test_labels_decide_what_is_measured(experiment, tmp_path):
    assert [one.name for one in plan(experiment(metrics=[])).metrics] == ["retrieval.ndcg@10"]
    (tmp_path / "small/questions.jsonl").write_text('{"id": "a", "question": "When?", "answers": ["at noon"]}\n')
    assert [one.name for one in plan(tmp_path / "experiment.yaml").metrics] == ["answer.token_f1"]


def test_a_sweep_without_a_file_and_without_labels_leaves_answers_on(unlabelled, tmp_path):
    assert usual_metrics(unlabelled) == ()
    asked = Asked(unlabelled, factors={"rerank.final_k": [5, 3]}, metrics=())
    assert not asked.leaves_out_answers and "metrics" not in asked.experiment()
    assert usual_metrics(str(write_dataset(tmp_path, "labelled"))) == METRICS
    assert usual_metrics(str(tmp_path / "nowhere")) == METRICS


def test_claims_are_by_the_names_of_tables_and_unknown_ones_are_named(experiment):
    claim = {"paper": "A, table 2", "metric": "retrieval.ndcg@10", "variant": "final_k-3", "value": 0.71}
    checked = plan(experiment(claims=[claim]))
    (found,) = checked.run_folder(checked.folder / "run").claims
    assert (found.variant, found.value, found.tolerance) == ("final_k-3", 0.71, 0.01)
    wrong = [claim | {"variant": "final_k-4"}, claim | {"metric": "retrieval.mrr@10"}, claim | {"vaule": 1}]
    with pytest.raises(ExperimentError, match="vaule"):
        plan(experiment(claims=wrong))
    with pytest.raises(ExperimentError, match="did you mean 'final_k-3'.*\n.*claims: .*retrieval.mrr@10"):
        plan(experiment(claims=wrong[:2]))


def test_the_dry_run_names_the_stages_in_which_variants_differ_and_keys_that_nothing_reads(experiment):
    variants = {
        "a": {"query.hyde": "none", "query.rewrite": "none", "retrieval.mode": "bm25"},
        "b": {"query.hyde": "none", "query.rewrite": "none", "retrieval.mode": "bm25", "rerank.final_k": 3},
        "c": {"query.hyde": "none", "query.rewrite": "none", "retrieval.mode": "tfidf", "retrieval.dense_weight": 0.9},
    }
    text = describe(plan(experiment(design="list", factors={}, variants=variants)))
    rows = {
        line.split()[0]: line.split("  ")[-1].strip() for line in text.splitlines() if line[:2] in ("a ", "b ", "c ")
    }
    assert rows == {"a": "-", "b": "rerank, context", "c": "search_bm25, search_tfidf, retrieve"}
    assert "- c: nothing reads retrieval.dense_weight here." in text
