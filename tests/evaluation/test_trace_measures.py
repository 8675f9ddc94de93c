from dataclasses import replace

import pytest
from factories import make_answer, make_evidence, make_failed_trace, make_passage, make_question, make_trace
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.corpus.folder import visible_in
from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.registry import describe
from rag_lab.evaluation.trace_measures import normalize, token_f1
from rag_lab.pipeline import Pipeline
from rag_lab.records import Answer, Citation, Evidence, Hit, MachineUse, Passage, Question, StageRecord, Trace


def value(metric, text="It is 180 degrees.", answers=("180 degrees",), answerable=True, abstained=False):
    question = make_question(answers=answers, answerable=answerable)
    return evaluate([make_trace(question, answer=make_answer(text, abstained=abstained))], [metric])[0].value


def test_squad_normalization():
    assert normalize("  The Oven's\ttimer, an  A-7! ") == "ovens timer a7"


def test_token_f1_is_the_harmonic_mean_of_precision_and_recall():
    # shared: 180, degrees; precision 2/4, recall 2/3
    assert token_f1("It is 180 degrees", "180 degrees Celsius") == pytest.approx(
        2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3)
    )


def test_repeated_words_count_as_often_as_both_have_them():
    assert token_f1("no no no", "no") == pytest.approx(2 * 1 / 4)


def test_the_best_of_several_references_counts():
    assert value("answer.exact_match", "180 degrees", ("200", "180  Degrees.")) == 1
    assert value("answer.token_f1", "180", ("200 degrees", "180")) == 1


@given(st.text(max_size=40), st.text(max_size=40))
def test_token_f1_is_symmetric_and_between_zero_and_one(a, b):
    assert 0 <= token_f1(a, b) <= 1
    assert token_f1(a, b) == token_f1(b, a)
    assert token_f1(a, a) == 1


@pytest.mark.parametrize(
    ("answerable", "abstained", "expected"), [(True, False, 1), (True, True, 0), (False, True, 1), (False, False, 0)]
)
def test_abstention(answerable, abstained, expected):
    assert value("answer.abstention", answerable=answerable, abstained=abstained) == expected


def test_words():
    assert value("answer.words", "It is\n180  degrees.") == 4
    assert value("answer.words", "") == 0


def values(trace):
    precision, recall, validity = evaluate([trace], ["citations.precision", "citations.recall", "citations.validity"])
    return precision.value, recall.value, validity.value


CONTEXT = (make_passage(1, 1), make_passage(2, 2), make_passage(3, 3))


def test_the_three_shares():
    question = make_question(evidence=(make_evidence(1), make_evidence(2)))
    answer = make_answer(cites=(1, 3), rejected_citations=("[9]", "handbook.pdf"))
    assert values(make_trace(question, passages=CONTEXT, answer=answer)) == (1 / 4, 1 / 2, 2 / 4)


def test_an_answer_without_citations_does_not_look_good_and_rejected_ones_are_worse():
    assert values(make_trace(answer=make_answer(cites=()))) == (None, 0, None)
    assert values(make_trace(answer=make_answer(cites=(), rejected_citations=("[7]",)))) == (0, 0, 0)


def test_citing_a_passage_twice_counts_once():
    answer = make_answer(cites=(1, 1, 1, 2), rejected_citations=("[9]", "[9]"))
    assert values(make_trace(passages=CONTEXT, answer=answer)) == (1 / 3, 1, 2 / 3)


def test_an_unanswerable_question_has_only_validity():
    question = make_question(answerable=False, evidence=(), answers=())
    assert values(make_trace(question)) == (None, None, 1)


def test_all_of_the_room_is_described():
    assert sum(info.name.startswith("citations.") for info in describe()) == 4


def test_quotes_must_stand_in_the_passage_they_cite():
    whole = make_passage(2, text="The oven", parent_text="The oven\n is  heated to 180 degrees.")
    quotes = (
        Citation(2, "s", 1, "oven is heated"),  # past the token budget's cut, across a line's end
        Citation(1, "s", 1, "The press is cold."),  # nowhere
        Citation(1, "s", 1, "  "),  # no quote
        Citation(7, "s", 1, "The oven"),  # no such passage
    )
    trace = make_trace(passages=(make_passage(1), whole), answer=Answer("Hot.", quotes))
    (score,) = evaluate([trace], ["citations.quotes_verified"])
    assert score.value == 1 / 3
    (score,) = evaluate([make_trace()], ["citations.quotes_verified"])
    assert (score.status, score.reason) == ("not_applicable", "no citation quotes anything")


def test_sums_over_stages_as_first_computed():
    scores = evaluate([make_trace()], ["cost.seconds", "cost.tokens", "cost.usd", "cost.seconds.generate"])
    assert [score.value for score in scores] == [2.0, 130, 0.25, 1.5]


def test_thinking_is_a_part_of_what_was_written():
    thought = (
        StageRecord("hyde", tokens_out=9, thinking_tokens=5),
        StageRecord("generate", tokens_out=8, thinking_tokens=7),
    )
    scores = evaluate([replace(make_trace(), stages=thought)], ["cost.tokens", "cost.thinking_tokens"])
    assert [score.value for score in scores] == [17, 12]


def test_a_stage_that_has_not_run_has_no_cost():
    (score,) = evaluate([make_trace()], ["cost.seconds.hyde"])
    assert (score.status, score.value, score.reason) == ("not_applicable", None, "stage hyde has not run")


def test_a_stage_after_a_failure_has_failed():
    trace = make_failed_trace("retrieve", "index is gone")
    total, generate = evaluate([trace], ["cost.seconds", "cost.seconds.generate"])
    assert total.value == 0.1
    assert (generate.status, generate.reason) == ("failed", "retrieve failed: index is gone")


MACHINE = ["cost.tokens_per_second", "cost.load_seconds", "cost.memory_mb", "cost.joules"]


def asked(stage, model, machine, **what):
    return StageRecord(stage, model=model, machine=machine, **what)


def test_a_model_is_loaded_once_however_many_stages_ask_it():
    small, large = "llamacpp:smollm2", "transformers:smollm2"
    stages = (
        asked("understand", small, MachineUse(2.0, 300.0, 5.0), seconds=1.0, tokens_out=10),
        asked("hyde", small, MachineUse(2.0, 310.0, 6.0), seconds=2.0, tokens_out=20),
        asked("generate", large, MachineUse(4.0, 600.0, 9.0), seconds=3.0, tokens_out=30),
        StageRecord("parse", seconds=9.0),
    )
    scores = evaluate([replace(make_trace(), stages=stages)], MACHINE)
    assert [score.value for score in scores] == [10.0, 6.0, 910.0, 20.0]


def test_what_could_not_be_measured_is_missing_and_not_zero():
    unmetered = asked("generate", "llamacpp:smollm2", MachineUse(2.0, None, None), seconds=1.0, tokens_out=4)
    speed, load, memory, joules = evaluate([replace(make_trace(), stages=(unmetered,))], MACHINE)
    assert (speed.value, load.value) == (4.0, 2.0)
    assert (memory.status, memory.value) == ("not_applicable", None)
    assert joules.status == "not_applicable"
    assert "no energy meter" in joules.reason


def test_a_server_elsewhere_takes_nothing_of_this_machine():
    remote = asked("generate", "gemini:gemini-2.5-flash", None, seconds=2.0, tokens_out=4)
    speed, *rest = evaluate([replace(make_trace(), stages=(remote,))], MACHINE)
    assert speed.value == 2.0
    assert {score.status for score in rest} == {"not_applicable"}
    assert {score.reason for score in rest} == {
        "no chat model of this machine was asked, or what it took was not measured"
    }


LEAK = ["access.leak"]


def visible(question, source):
    return source.startswith("open") or "staff" in question.may_see


def hit(source):
    return Hit(f"{source}#1", f"{source}#1", source, None, 0, 4, 1.0)


def leaked(**fields):
    asked = Question("q", "?", may_see=(), evidence=fields.pop("evidence", ()))
    trace = Trace(asked, **{"ranked": (hit("open.md"),), "stages": (StageRecord("retrieve"),)} | fields)
    (score,) = evaluate([trace], LEAK, visible=visible)
    return score.value


@pytest.mark.parametrize(
    "fields",
    [
        {"hits": {"bm25": (hit("shut.md"),)}},
        {"base_hits": (hit("shut.md"),)},
        {"candidates": (hit("shut.md"),)},
        {"reranked": (hit("shut.md"),)},
        {"ranked": (hit("open.md"), hit("shut.md"))},
        {"passages": (Passage(1, "p", "shut.md", None, 0, 4, "text"),)},
        {"answer": Answer("x", (Citation(1, "shut.md", None),))},
        {"evidence": (Evidence("shut.md"),)},
        {"evidence": (Evidence("open.md", copies=("shut.md",)),)},
    ],
)
def test_one_closed_file_anywhere_on_a_trace_is_half_of_two(fields):
    assert leaked(**fields) == 0.5


def test_what_may_be_seen_is_no_leak():
    assert leaked(hits={"bm25": (hit("open.md"), hit("open_too.md"))}) == 0


def test_an_asker_who_may_see_everything_cannot_be_leaked_to():
    trace = Trace(Question("q", "?"), ranked=(hit("shut.md"),), stages=(StageRecord("retrieve"),))
    (score,) = evaluate([trace], LEAK, visible=visible)
    assert (score.status, score.reason) == ("not_applicable", "its asker may see everything")


def test_without_rules_the_score_has_failed_and_says_why():
    trace = Trace(Question("q", "?", may_see=()), ranked=(hit("open.md"),), stages=(StageRecord("retrieve"),))
    (score,) = evaluate([trace], LEAK)
    assert score.status == "failed" and "attributes.yaml" in score.reason


@pytest.mark.parametrize("mode", ["bm25", "tfidf"])
def test_the_roles_of_the_plant_are_shown_nothing_that_is_closed_and_would_be_without_the_filter(mode):
    dataset = Dataset.load("plant_docs/access.jsonl")
    config = PipelineConfig().override(
        {"query.rewrite": "none", "query.hyde": "none", "answer.name": "none", "retrieval.mode": mode}
    )
    rules = visible_in(dataset.corpus_dir, {})

    def leak(traces):
        return {score.question_id: score.value for score in evaluate(traces, LEAK, visible=rules)}

    pipeline = Pipeline(dataset, config, progress=False)
    held = leak(pipeline.run(answer=(), read=lambda _: ()))
    assert set(held.values()) == {0} and len(held) == len(dataset.questions) == 54
    everything = pipeline.run([replace(one, may_see=None) for one in dataset.questions], answer=(), read=lambda _: ())
    pairs = zip(everything, dataset.questions, strict=True)
    open_to_all = leak([replace(t, question=replace(t.question, may_see=q.may_see)) for t, q in pairs])
    forbidden = [open_to_all[one.question_id] for one in dataset.questions if "forbidden" in one.tags]
    assert len(forbidden) == 22 and all(value > 0 for value in forbidden)
