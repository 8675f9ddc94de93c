"""RAGAs' prompts in another language: translated once by the judge, remembered, told apart from the English ones."""

import json

import pytest
from factories import make_answer, make_trace
from scripted import HashEmbedder, ScriptedJudge, good_reply
from small_dataset import write_dataset

from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.judge_trial.check import check_judge, judge_banner, judged_metrics, save_check
from rag_lab.evaluation.ragas.table import SPECS
from rag_lab.evaluation.registry import problems


def translating(request):
    """Judge as `good_reply` does, and put a mark before each string that is to be translated."""
    prompt = request.messages[-1].content
    if "TRANSLATOR" not in prompt:
        return good_reply(request)
    strings = json.loads(prompt.partition("Statements to translate:\n")[2])
    return json.dumps({"statements": [f"auf Deutsch: {string}" for string in strings]})


TRANSLATABLE = [f"ragas.{n}" for n, spec in SPECS.items() if "judge" in spec.models and spec.translatable]


def score(metric, judge, language=""):
    (result,) = evaluate([make_trace()], [metric], judge=judge, embedder=HashEmbedder(), language=language)
    return result


@pytest.mark.parametrize("metric", TRANSLATABLE)
def test_the_examples_of_prompts_are_put_into_another_language(metric):
    judge = ScriptedJudge(translating)
    result = score(metric, judge, "german")
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
    result = score("ragas.faithfulness", ScriptedJudge(good_reply), "german")
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
    assert score("ragas.context_recall", judge, "german").value == 0.75
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
    assert judge_banner("scripted:judge-a", tmp_path, "german").endswith(")")
    assert "was not checked: run `rag-lab judge check scripted:judge-a`" in judge_banner(judge.identity(), tmp_path)
    assert "ragas.noise_sensitivity" in judged_metrics(False)
    assert "ragas.noise_sensitivity" not in judged_metrics(False, "german")
