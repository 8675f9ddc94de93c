"""RAGAs' own values come through, with the calls and seconds that they cost."""

import asyncio
import inspect
import json
import os
import socket
from dataclasses import replace
from importlib.metadata import version

import pytest
from doubles import HashEmbedder, ScriptedJudge, good_reply
from factories import make_answer, make_evidence, make_passage, make_question, make_trace
from small_dataset import write_dataset

from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.judge_check import judge_banner, save_check
from rag_lab.evaluation.judge_trial import check_judge, judged_metrics
from rag_lab.evaluation.ragas_metrics import COLLECTIONS, RAGAS_NAME, SPECS
from rag_lab.evaluation.registry import find_info, problems
from rag_lab.records import Remembered, Turn
from rag_lab.testing import HashEmbedder as WordEmbedder

from .ragas_recorded import FILE, SAMPLES, own_value, reply_key, trace_of

JUDGED = [f"ragas.{name}" for name, spec in SPECS.items() if "judge" in spec.models]
RECORDED = json.loads(FILE.read_text(encoding="utf-8"))
CASES = [(metric, place, value) for metric, values in RECORDED["values"].items() for place, value in enumerate(values)]


def score(metric, judge=None, trace=None, language=""):
    (result,) = evaluate([trace or make_trace()], [metric], judge=judge, embedder=HashEmbedder(), language=language)
    return result


RESPONSE, REFERENCE = "It is 180 degrees.", "180 degrees"
PASSAGES = (make_passage(1), make_passage(2, page=2, text="The press is cold."))


def noisy_reply(request):
    """Judge an answer of two statements, of which the second is wrong and stands in the second passage alone."""
    given = given_to(request)
    if "answer" in given:
        return json.dumps({"statements": ["x"] if given["answer"] == REFERENCE else ["a", "d"]})
    wrong = given["context"] == PASSAGES[1].text
    verdicts = [{"statement": s, "reason": "r", "verdict": int((s == "d") == wrong)} for s in given["statements"]]
    return json.dumps({"statements": verdicts})


def test_noise_and_claims_by_hand():
    noisy = ScriptedJudge(noisy_reply)
    # of the statements a and d, d is wrong, and the passage that holds it holds nothing of the reference
    assert score("ragas.noise_sensitivity_irrelevant", noisy, make_trace(passages=PASSAGES)).value == 1 / 2
    assert score("ragas.noise_sensitivity", noisy, make_trace(passages=PASSAGES)).value == 0
    judge = ScriptedJudge(good_reply)
    assert score("ragas.factual_correctness_precision", judge).value == 3 / 4
    assert score("ragas.answer_accuracy", judge).value == 2 / 4
    assert score("ragas.response_groundedness", judge).value == 1 / 2
    assert score("ragas.context_entity_recall", judge).value == pytest.approx(1 / 2)


def test_places_of_a_file_without_pages_are_the_file():
    evidence = (make_evidence(page=None), make_evidence(page=7, source="other.pdf"))
    trace = make_trace(make_question(evidence=evidence), passages=(make_passage(1, page=1), make_passage(2, page=2)))
    assert score("ragas.id_based_context_recall", trace=trace).value == 1 / 2
    assert score("ragas.id_based_context_precision", trace=trace).value == 1


def test_faithfulness_and_correctness_by_hand():
    judge = ScriptedJudge(good_reply)
    assert score("ragas.faithfulness", judge).value == 3 / 4
    cosine = float((lambda v: v[0] @ v[1])(HashEmbedder().embed_documents([RESPONSE, REFERENCE])))
    assert score("ragas.answer_correctness", judge).value == pytest.approx(0.75 * 3 / 4 + 0.25 * cosine)


def given_to(request):
    """Return what one of RAGAs' prompts asks about, behind its examples."""
    prompt = request.messages[-1].content
    return json.loads(prompt[prompt.rindex("input: ") + 7 : prompt.rindex("\nOutput:")])


def literal_reply(request):
    """Take each sentence of the answer for a statement, supported where it stands in the contexts word for word."""
    given = given_to(request)
    if "answer" in given:
        return json.dumps({"statements": [f"{one.strip('.')}." for one in given["answer"].split(". ")]})
    verdicts = [
        {"statement": s, "reason": "r", "verdict": int(s.strip(".") in given["context"])} for s in given["statements"]
    ]
    return json.dumps({"statements": verdicts})


def test_an_answer_may_rest_on_the_conversation_as_far_as_the_reader_was_shown_it():
    plain, ours, judge = "ragas.faithfulness", "ragas.faithfulness_to_conversation", ScriptedJudge(literal_reply)
    turns = (Turn("user", "My line is L-3"), Turn("assistant", "The press is cold. It is old."))
    forgotten = make_question(history=(Turn("user", "The oven is heated to 900 degrees"), *turns))
    answer = make_answer("The oven is heated to 180 degrees. The press is cold. My line is L-3. It has a horn.")
    trace = make_trace(forgotten, answer=answer, remembered=Remembered(3, turns, "They talked. It has a horn."))
    assert score(plain, judge, trace).value == 1 / 4
    assert score(ours, judge, trace).value == 1
    assert score(ours, judge, replace(trace, remembered=Remembered(3, turns))).value == 3 / 4
    invented = replace(trace, answer=make_answer("The oven is heated to 900 degrees. The press is cold."))
    assert score(ours, judge, invented).value == 1 / 2
    asked = len(judge.requests)  # without turns it is the plain one, of whose replies nothing is asked again
    alone = replace(trace, remembered=Remembered())
    same = evaluate([alone], [plain, ours], judge=judge)
    assert [one.value for one in same] == [1 / 4, 1 / 4]
    assert len(judge.requests) == asked + 2
    reads = [find_info(name).reads for name in (plain, ours)]  # what a dry run waits for
    assert reads == [{"passages", "answer"}, {"passages", "answer", "remembered"}]


def test_metrics_without_a_model():
    good, bad = make_passage(1), make_passage(2, text="Nothing of the kind was ever written in this long document.")
    trace = make_trace(make_question(answers=("180 degrees",)), passages=(bad, good))
    assert score("ragas.non_llm_context_precision", trace=trace).value == pytest.approx(1 / 2)
    assert score("ragas.non_llm_context_recall", trace=trace).value == 1
    assert score("ragas.string_presence", trace=trace).value == 1
    # ROUGE-L: the common subsequence is "180 degre"; precision 2/4, recall 2/2
    assert score("ragas.rouge_score", trace=trace).value == pytest.approx(2 / 3)


def test_quotes_in_the_answer_are_looked_up_in_the_context():
    answer = make_answer('It says "the oven is heated" and "after ten long minutes".')
    assert score("ragas.quoted_spans_alignment", trace=make_trace(answer=answer)).value == 1 / 2


def test_two_evidence_items_of_one_parent_are_one_reference_context_and_one_without_text_is_not_applicable():
    evidence = (make_evidence(), make_evidence(start=1, end=5), make_evidence(context="Something else altogether."))
    trace = make_trace(make_question(evidence=evidence))
    assert score("ragas.non_llm_context_recall", trace=trace).value == 1 / 2
    trace = make_trace(make_question(evidence=(make_evidence(context=""),)))
    assert score("ragas.non_llm_context_recall", trace=trace).status == "not_applicable"


def test_calls_seconds_and_the_judge_are_on_the_score():
    result = score("ragas.faithfulness", ScriptedJudge(good_reply, name="judge-b"))
    assert (result.judge, result.calls, result.seconds) == ("scripted:judge-b", 2, pytest.approx(1.0, abs=0.2))


def test_the_same_prompt_is_resampled_and_not_repeated():
    judge = ScriptedJudge(good_reply)
    score("ragas.answer_relevancy", judge, make_trace(repeat=2))
    assert [(request.seed, request.temperature) for request in judge.requests] == [(2000, 0), (2001, 0.7), (2002, 0.7)]


def test_the_judge_gets_the_schema_and_concurrent_scores_share_its_batches():
    judge = ScriptedJudge(good_reply)
    traces = [make_trace(make_question(text=f"How hot is oven {n}?"), answer=make_answer(f"{n}")) for n in range(10)]
    traces = [replace(t, passages=(make_passage(text=f"Oven {n}"),)) for n, t in enumerate(traces)]
    evaluate(traces, ["ragas.faithfulness"], judge=judge)
    assert judge.batches == [8, 8, 2, 2]
    assert all(request.json_schema for request in judge.requests)


def test_texts_are_embedded_together():
    embedder = HashEmbedder()
    traces = [make_trace(answer=make_answer(f"answer {n}")) for n in range(5)]
    evaluate(traces, ["ragas.semantic_similarity"], embedder=embedder)
    assert [len(batch) for batch in embedder.batches] == [6]


def test_a_running_event_loop_is_no_obstacle():
    async def cell():
        return score("ragas.faithfulness", ScriptedJudge(good_reply))

    assert asyncio.run(cell()).value == 0.75


def test_ragas_does_not_report_its_use(monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert score("ragas.faithfulness", ScriptedJudge(good_reply)).value == 0.75
    assert os.environ["RAGAS_DO_NOT_TRACK"] == "true"


def test_every_ragas_class_exists_and_takes_these_arguments():
    from importlib import import_module

    for spec in SPECS.values():
        ragas_class = getattr(import_module(spec.module), spec.class_name)
        if spec.module == COLLECTIONS:
            taken = set(inspect.signature(ragas_class.ascore).parameters) - {"self"}
            assert taken == {RAGAS_NAME.get(name, name) for name in spec.arguments}


def test_the_judge_is_asked_for():
    assert len(problems(JUDGED, has_judge=False)) == len(JUDGED) == 16


def test_replies_are_json_of_the_schema_that_was_sent():
    judge = ScriptedJudge(good_reply)
    score("ragas.answer_correctness", judge)
    assert [set(json.loads(good_reply(request))) for request in judge.requests] == [
        {"statements"},
        {"statements"},
        {"TP", "FP", "FN"},
    ]


def recorded_reply(prompt, nth, _=None):
    return RECORDED["replies"][reply_key(prompt, nth)]


def replaying(request):
    return recorded_reply(request.messages[-1].content, request.seed)


def test_every_metric_of_the_table_was_recorded_with_this_version():
    assert {metric for metric, _, _ in CASES} == set(SPECS)
    assert RECORDED["ragas"] == version("ragas")


@pytest.mark.parametrize(("metric", "place", "value"), CASES)
def test_the_adapter_gives_ragas_own_value(metric, place, value):
    if metric in ("bleu_score", "chrf_score"):
        pytest.importorskip("sacrebleu")
    judge = ScriptedJudge(replaying)
    (score,) = evaluate([trace_of(SAMPLES[place])], [f"ragas.{metric}"], judge=judge, embedder=WordEmbedder())
    assert (score.status, bool(score.reason)) == ("scored", "judge" in SPECS[metric].models), score.reason
    assert score.value == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("metric", "place", "value"), CASES)
def test_ragas_itself_still_gives_the_recorded_value(metric, place, value):
    if metric in ("bleu_score", "chrf_score"):
        pytest.importorskip("sacrebleu")
    assert own_value(metric, SAMPLES[place], recorded_reply) == pytest.approx(value, abs=1e-6)


def translating(request):
    """Judge as `good_reply` does, and put a mark before each string that is to be translated."""
    prompt = request.messages[-1].content
    if "TRANSLATOR" not in prompt:
        return good_reply(request)
    strings = json.loads(prompt.partition("Statements to translate:\n")[2])
    return json.dumps({"statements": [f"auf Deutsch: {string}" for string in strings]})


TRANSLATABLE = [f"ragas.{n}" for n, spec in SPECS.items() if "judge" in spec.models and spec.translatable]


@pytest.mark.parametrize("metric", TRANSLATABLE)
def test_the_examples_of_prompts_are_put_into_another_language(metric):
    judge = ScriptedJudge(translating)
    result = score(metric, judge, language="german")
    assert result.value == score(metric, ScriptedJudge(good_reply)).value
    asked = [request.messages[-1].content for request in judge.requests]
    judged = [prompt for prompt in asked if "TRANSLATOR" not in prompt]
    assert judged
    assert all("auf Deutsch: " in prompt for prompt in judged)


def test_prompts_are_translated_once_and_the_language_is_part_of_what_is_remembered(tmp_path):
    judge, memory = ScriptedJudge(translating), tmp_path / "scores.sqlite"
    traces = [make_trace(answer=make_answer(f"{n}")) for n in range(3)]
    evaluate(traces, ["ragas.faithfulness"], judge=judge, memory=memory, language="german")
    assert sum("TRANSLATOR" in request.messages[-1].content for request in judge.requests) == 2  # it has two prompts
    again = ScriptedJudge(translating)
    evaluate(traces, ["ragas.faithfulness"], judge=again, memory=memory)
    assert len(again.requests) == 6 - 2  # three answers taken apart, and one verdict for equal statements


def test_a_translation_that_fails_fails_the_score():
    result = score("ragas.faithfulness", ScriptedJudge(good_reply), language="german")
    assert result.status == "failed"
    assert "could not be put into german" in result.reason


def test_what_cannot_be_translated_is_said_before_anything_is_asked():
    found = problems(["ragas.noise_sensitivity", "ragas.faithfulness"], has_judge=True, language="german")
    assert found == [
        "RAGAs cannot put the prompts of 'ragas.noise_sensitivity' into german: leave out the metric or the language."
    ]


def test_a_translation_of_another_number_of_strings_is_asked_for_once_more():
    def hasty(request):
        is_first = request.seed == 0 and "TRANSLATOR" in request.messages[-1].content
        return '{"statements": ["nur einer"]}' if is_first else translating(request)

    judge = ScriptedJudge(hasty)
    assert score("ragas.context_recall", judge, language="german").value == 0.75
    translations = [each for each in judge.requests if "TRANSLATOR" in each.messages[-1].content]
    assert [(each.seed, each.temperature) for each in translations] == [(0, 0), (1, 0.7)]


def test_repeats_share_the_translations_and_no_score_is_charged_with_them():
    judge = ScriptedJudge(translating)
    traces = [make_trace(repeat=repeat) for repeat in (0, 1)]
    scores = evaluate(traces, ["ragas.context_recall"], judge=judge, language="german")
    assert [each.calls for each in scores] == [1, 1]
    assert sum("TRANSLATOR" in each.messages[-1].content for each in judge.requests) == 1


def test_a_judge_is_tried_in_the_language_it_is_used_in(tmp_path):
    dataset = Dataset.load(write_dataset(tmp_path))
    judge = ScriptedJudge(translating)
    found = check_judge(judge, dataset, metrics=["ragas.context_recall"], language="german")
    save_check(found, tmp_path)
    assert "prompts in german" in str(found)
    assert "prompts in german" in judge_banner(judge.identity(), tmp_path, "german")
    assert "Asked again: the same score" in judge_banner("scripted:judge-a", tmp_path, "german")
    assert "was not checked: run `rag-lab judge check scripted:judge-a`" in judge_banner(judge.identity(), tmp_path)
    assert "ragas.noise_sensitivity" in judged_metrics(False)
    assert "ragas.noise_sensitivity" not in judged_metrics(False, "german")
