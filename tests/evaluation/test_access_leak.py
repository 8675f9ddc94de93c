"""What an asker was shown and may not see: the measure fails where something leaks, by rules that it reads itself."""

from dataclasses import replace

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.corpus.folder import visible_in
from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.pipeline import Pipeline
from rag_lab.records import Answer, Citation, Evidence, Hit, Passage, Question, StageRecord, Trace

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
    rules = visible_in(dataset.corpus_dir)

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
