"""The follow-up questions of plant_docs: they stand on its documents, and only the turns before make them plain."""

import json
from collections import Counter
from pathlib import Path
from statistics import mean

import pymupdf
import pytest
from scipy.stats import ttest_1samp

from rag_lab.config import PipelineConfig
from rag_lab.data.check import check
from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.pipeline import Pipeline

ROOT = Path(__file__).parents[2] / "datasets" / "plant_docs"
ASKED = Dataset.load(ROOT / "follow_up.jsonl")
ALONE = Dataset.load(ROOT / "follow_up_alone.jsonl")
KINDS = {"pronoun", "ellipsis", "comparison", "topic_switch", "far_back"}
TURNS_OF_A_WINDOW = 6


def kind(question):
    """The one kind of follow-up that a question is tagged with."""
    (found,) = KINDS & set(question.tags)
    return found


def test_they_are_many_and_of_every_kind():
    kinds = Counter(map(kind, ASKED.questions))
    assert kinds.keys() == KINDS and min(kinds.values()) >= 6 and kinds.total() >= 50
    assert sum(not question.answerable for question in ASKED.questions) >= 2


def test_every_one_has_turns_that_alternate_and_end_with_an_answer():
    for question in ASKED.questions:
        assert [turn.role for turn in question.history] == ["user", "assistant"] * (len(question.history) // 2)
        assert len(question.history) >= 2, question.question_id
        assert (len(question.history) > TURNS_OF_A_WINDOW) == (kind(question) == "far_back"), question.question_id


def test_each_has_a_wording_that_stands_alone_with_the_same_labels():
    for asked, alone in zip(ASKED.questions, ALONE.questions, strict=True):
        assert asked.question_id == alone.question_id and not alone.history
        assert (asked.answers, asked.evidence, asked.tags) == (alone.answers, alone.evidence, alone.tags)
        assert asked.text != alone.text


@pytest.mark.parametrize("dataset", [ASKED, ALONE], ids=lambda one: one.questions_file)
def test_the_workbench_finds_all_of_their_evidence(dataset):
    counted = check(dataset)
    assert counted.problems == () and counted.n_found == counted.n_evidence >= 50


def test_a_pdf_s_page_holds_the_quote():
    for line in (ROOT / "follow_up.jsonl").read_text(encoding="utf-8").splitlines():
        for item in json.loads(line)["evidence"]:
            assert 20 <= len(item["quote"]) <= 200
            if "page" in item:
                with pymupdf.open(ROOT / "corpus" / item["source"]) as pdf:
                    assert item["quote"] in " ".join(pdf[item["page"] - 1].get_text().split()), item["quote"]


def test_the_questions_of_the_demo_are_not_touched_by_them():
    demo = Dataset.load(ROOT)
    assert len(demo.questions) == 133 and not any(question.history for question in demo.questions)
    assert not {one.text for one in demo.questions} & {one.text for one in ASKED.questions}
    assert len({demo.digest, ASKED.digest, ALONE.digest}) == 3


@pytest.mark.parametrize("mode", ["bm25", pytest.param("dense", marks=pytest.mark.slow)])
def test_the_bare_wording_finds_measurably_less_than_the_one_that_stands_alone(mode):
    config = PipelineConfig().override(
        {"query.rewrite": "none", "query.hyde": "none", "answer.name": "none", "retrieval.mode": mode}
        | {"store.name": "exact"}
    )

    def values(dataset):
        traces = Pipeline(dataset, config, progress=False).run(answer=(), read=lambda _: ())
        scores = evaluate(traces, ["retrieval.ndcg@5"])
        return {score.question_id: score.value for score in scores if score.value is not None}

    bare, alone = values(ASKED), values(ALONE)
    kinds = {one.question_id: kind(one) for one in ASKED.questions}
    lost = {name: alone[name] - bare[name] for name in bare}
    needing = [value for name, value in lost.items() if kinds[name] != "topic_switch"]
    assert ttest_1samp(needing, 0).confidence_interval().low > 0.2
    switched = [value for name, value in lost.items() if kinds[name] == "topic_switch"]
    assert abs(mean(switched)) < 0.2  # these need no history
