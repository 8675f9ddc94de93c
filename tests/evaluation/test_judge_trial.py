"""A judge that reads passes, one that does not is found out, and one that cannot write JSON is said so."""

import json
import re
from dataclasses import replace

import pytest
from doubles import HashEmbedder, ScriptedJudge, good_reply
from small_dataset import write_dataset

from rag_lab.data.dataset import Dataset
from rag_lab.data.synthetic import PERTURBATIONS
from rag_lab.errors import DatasetError
from rag_lab.evaluation.judge_check import Objects, judge_banner, load_check, save_check
from rag_lab.evaluation.judge_trial import check_judge, judged_metrics, trial_items, try_metric
from rag_lab.redaction import NO_FORMULAS

METRICS = ["ragas.faithfulness", "ragas.context_recall"]
MORE = [
    ("q5", "When is the oil changed?", "The oil is changed every 2,000 hours.", "press.md", "changed every 2,000"),
    ("q6", "How hot is the oven?", "The curing oven runs at 180 degrees Celsius.", "oven.txt", "180 degrees"),
    ("q7", "When does the canteen open?", "The canteen opens at 11:30.", "canteen.txt", "opens at 11:30"),
    ("q8", "What did the oven do?", "The oven tripped twice.", "notes/shift.txt", "tripped twice"),
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    lines = [
        {"id": i, "question": q, "answers": [a], "evidence": [{"source": s, "quote": t}]} for i, q, a, s, t in MORE
    ]
    return Dataset.load(write_dataset(tmp_path_factory.mktemp("data"), extra_questions=lines))


def words(text):
    return set(re.findall(r"\w+", text.lower()))


def reader(request):
    """Judge as a careful reader would: a statement holds where all its words stand in what it is held against."""
    prompt = request.messages[-1].content
    given = json.loads(prompt[prompt.rindex("input: ") + 7 : prompt.rindex("\nOutput:")])
    if "context" in given and "statements" in given:
        held = [(s, words(s) <= words(given["context"])) for s in given["statements"]]
        return json.dumps({"statements": [{"statement": s, "reason": "r", "verdict": int(ok)} for s, ok in held]})
    if "ground_truth" in given:
        said, wanted = ([{"statement": s, "reason": "r"} for s in given[key]] for key in ("answer", "ground_truth"))
        right = [s for s in said if s in wanted]
        return json.dumps(
            {"TP": right, "FP": [s for s in said if s not in right], "FN": [s for s in wanted if s not in right]}
        )
    if set(given) == {"question", "answer"}:
        return json.dumps({"statements": [given["answer"]]})
    return good_reply(request)


def check(judge, dataset, **options):
    return check_judge(judge, dataset, n_questions=7, metrics=METRICS, embedder=HashEmbedder(), **options)


def test_the_trial_holds_right_answers_and_what_was_made_of_them(dataset):
    items = trial_items(dataset, 7)
    by_question = {}
    for item in items:
        by_question.setdefault(item.trace.question.question_id, {})[item.perturbation] = item.trace
    assert set(by_question) == {"q1", "q2", "q3", "q5", "q6", "q7", "q8"}  # q4 has no answer
    oil = by_question["q5"]
    assert oil[None].answer.text == "The oil is changed every 2,000 hours."
    assert oil["changed_number"].answer.text == "The oil is changed every 2,667 hours."
    assert oil["negation"].answer.text == "The oil is not changed every 2,000 hours."
    assert oil["moved_citation"].answer == oil[None].answer
    assert oil["moved_citation"].passages[0].text != oil[None].passages[0].text
    assert "290 bar" in oil[None].passages[0].text
    assert "changed_number" not in by_question["q8"]
    assert trial_items(dataset, 7) == items


def test_a_judge_that_reads_passes(dataset):
    found = check(ScriptedJudge(reader), dataset)
    by_name = {(each.metric, each.perturbation): each for each in found.telling}
    assert by_name["ragas.faithfulness", "all"].auc > 0.9
    assert by_name["ragas.faithfulness", "all"].beats_chance
    assert by_name["ragas.faithfulness", "moved_citation"].auc == 1
    assert ("ragas.answer_correctness without cosine", "moved_citation") not in by_name
    assert [each.n_scored for each in found.objects] == [7, 7]
    assert (found.agreement.exact_share, found.agreement.mean_absolute_difference) == (1, 0)
    assert "tells right answers from wrong ones by ragas.faithfulness (AUC" in found.verdict
    assert not found.passes  # on so few questions nobody does
    few = "it was tried on too few to pass: 7 questions, at least 20: do not build on its scores before"
    assert few in found.verdict
    more = replace(found, n_questions=20, telling=tuple(replace(each, n_questions=20) for each in found.telling))
    assert more.passes and more.verdict.endswith(", 20 questions): its scores can be used.")


def test_a_judge_that_agrees_with_everything_is_no_better_than_chance(dataset):
    found = check(ScriptedJudge(good_reply), dataset)
    assert {each.auc for each in found.telling if each.auc is not None} == {0.5}
    assert not found.passes
    assert "could not be told from chance by ragas.faithfulness (AUC 0.50 [0.24, 0.76], 7 questions)" in found.verdict
    assert found.verdict.endswith("do not build on its scores.")
    more = replace(found, n_questions=20, telling=tuple(replace(each, n_questions=20) for each in found.telling))
    assert "is no better than chance by ragas.faithfulness" in more.verdict


def test_a_judge_that_writes_no_json_fails_its_objects(dataset):
    found = check(ScriptedJudge(lambda request: f"Lovely: '{len(request.messages[0].content)}'"), dataset)
    assert [(each.n_scored, each.n_asked) for each in found.objects] == [(0, 7), (0, 7)]
    assert found.objects[0].reasons == (("the judge's reply holds no JSON object", 7),)
    assert found.agreement.n_pairs == 0
    assert "could not be seen to tell right from wrong" in found.verdict
    assert "only 0 of 7 answers, mostly because the judge's reply holds no JSON object" in found.verdict


def test_a_judge_that_changes_its_mind(dataset):
    def moody(request):
        return good_reply(request) if request.seed < 1000 else reader(request)

    found = check(ScriptedJudge(moody), dataset).agreement
    assert found.exact_share == 0
    assert 0.2 <= found.mean_absolute_difference <= 0.8
    assert found.n_pairs > 20


def test_the_record_is_kept_and_the_banner_says_it(dataset, tmp_path):
    judge = ScriptedJudge(good_reply)
    assert judge_banner("") == ""
    assert "scripted:judge-a was not checked: run `rag-lab judge check" in judge_banner(judge.identity(), tmp_path)
    found = check(judge, dataset)
    path = save_check(found, tmp_path)
    assert path.is_file() and load_check(judge.identity(), tmp_path) == found
    for name in (judge.identity(), "scripted:judge-a"):
        assert load_check(name, tmp_path) == found
        assert "could not be told from chance" in judge_banner(name, tmp_path)
        assert "too few to pass: 7 questions, at least 20" in judge_banner(name, tmp_path)
        assert "7 questions of small" in judge_banner(name, tmp_path)
    path.write_text("{}")
    assert load_check("scripted:judge-a", tmp_path) is None


def test_the_record_shows_itself(dataset):
    found = check(ScriptedJudge(lambda _: "<b>no</b>"), dataset)
    assert found.verdict in str(found)
    assert "moved_citation" in str(found)
    assert "<table>" in found._repr_html_() and found._repr_html_().startswith(f'<div class="{NO_FORMULAS}">')
    assert "<b>no</b>" not in found._repr_html_()


def test_an_interrupted_trial_goes_on(dataset, tmp_path):
    memory = tmp_path / "scores.sqlite"
    first = ScriptedJudge(reader)
    again = ScriptedJudge(reader)
    found = check(first, dataset, memory=memory)
    assert check(again, dataset, memory=memory).telling == found.telling
    assert (len(first.requests) > 0, len(again.requests)) == (True, 0)


def test_replies_that_cannot_be_used_are_not_taken_for_too_few_questions(dataset):
    found = check(ScriptedJudge(lambda request: reader(request) if "oven" in str(request) else "Lovely."), dataset)
    told = {each.metric: each.n_questions for each in found.telling if each.perturbation == "all"}
    assert 0 < told["ragas.faithfulness"] < 5
    fewest = min(told.values())
    more = replace(found, n_questions=20)
    assert f"a wrong answer to too few to pass: {fewest} of 20 questions, at least 20" in more.verdict


def test_a_dataset_without_references_cannot_try_a_judge(tmp_path):
    path = write_dataset(tmp_path)
    (path / "questions.jsonl").write_text('{"id": "a", "question": "What?"}\n')
    with pytest.raises(DatasetError, match="cannot try a judge"):
        trial_items(Dataset.load(path), 5)


def test_metrics_that_need_an_embedder_wait_for_one_and_nearly_all_objects_suffice():
    waiting = set(judged_metrics(True)) - set(judged_metrics(False))
    assert waiting == {"ragas.answer_relevancy", "ragas.answer_correctness"}
    assert Objects("m", 9, 10).suffices
    assert not Objects("m", 8, 10).suffices


def supported_numbers(trace):
    """Share of the numbers of the answer that stand in its passages."""
    read = {number for passage in trace.passages for number in re.findall(r"\d+", passage.text)}
    said = re.findall(r"\d+", trace.answer.text)
    return sum(number in read for number in said) / len(said) if said else None


def test_a_metric_that_reads_numbers_finds_changed_ones_and_no_negation(dataset):
    found = {telling.perturbation: telling for telling in try_metric(supported_numbers, dataset, n_questions=4)}
    assert list(found) == [*PERTURBATIONS, "all"]
    assert found["changed_number"].auc == 1.0 and found["changed_number"].n_wrong > 0
    assert found["negation"].auc == 0.5
    assert {telling.metric for telling in found.values()} == {"supported_numbers"}
    assert found["all"].n_wrong == sum(telling.n_wrong for name, telling in found.items() if name != "all")


def test_a_metric_that_knows_nothing_is_no_better_than_chance(dataset):
    def always(trace):
        return 1.0

    assert {told.auc for told in try_metric(always, dataset, n_questions=4) if told.auc is not None} == {0.5}
