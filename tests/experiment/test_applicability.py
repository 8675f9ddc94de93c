import json

from small_plans import write_machines_sweep

from rag_lab.experiment.forecast.caveats import cut_off_sentences, not_applicable_sentences
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.plan import plan
from rag_lab.runs.omissions import asked_sentence
from rag_lab.runs.run_folder import RunFolder


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
    assert told.endswith("so that ragas.non_llm_context_recall cannot be measured.")


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
