"""Pipelines in memory are compared as a sweep's variants are, and leave what a sweep leaves."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from small_dataset import write_dataset
from small_plans import CHAT, EMBEDDER, SCORER, install_doubles

import rag_lab
from rag_lab.config import PipelineConfig
from rag_lab.errors import RagLabError
from rag_lab.experiment.forecast.cost_estimate import estimate
from rag_lab.experiment.plan import plan
from rag_lab.report.page.report_page import write_report
from rag_lab.runs.run_folder import RunFolder

CONFIG = PipelineConfig().override(
    {
        **{f"models.{role}": CHAT for role in ("generation", "understanding", "hyde")},
        "models.embedding": EMBEDDER,
        "models.likelihood": SCORER,
        "retrieval.mode": "dense",
        "answer.name": "llm",
    }
)
NDCG = "retrieval.ndcg@10"


def n_ranked(trace):
    """How many passages are ranked."""
    return len(trace.ranked) / 100


n_ranked.fields = frozenset({"ranked"})


@dataclass(frozen=True)
class Shortest:
    """The shortest passages first."""

    keep: int = 4
    version: ClassVar[int] = 1

    def __call__(self, question, passages):
        return [-len(passage) for passage in passages]


@pytest.fixture
def doubles(monkeypatch):
    return install_doubles(monkeypatch)


@pytest.fixture
def base(tmp_path, doubles):
    return rag_lab.Pipeline(write_dataset(tmp_path), CONFIG)


@pytest.fixture
def both(base):
    return {"base": base, "two": base.set("rerank.final_k", 2)}


def test_values_objects_and_metrics_of_ones_own_are_compared(base, doubles):
    likely, mine = base.set("rerank.name", "query_likelihood"), base.replace(rerank=Shortest(keep=2))
    found = rag_lab.compare({"base": base, "likely": likely, "mine": mine}, [NDCG, n_ranked])
    assert [plan.label for plan in found.run.variants] == [
        "base",
        "likely: rerank = query_likelihood",
        "mine: rerank = Shortest(keep=2)",
    ]
    assert found.quality_metrics == (NDCG, "n_ranked")
    assert set(found.differences["variant_id"]) == {"likely", "mine"}
    assert "likely" in found._repr_html_() and "Shortest" in found.to_markdown()
    assert doubles.chat.requests == []  # nothing reads answers, so none were generated


def test_a_sweep_afterwards_finds_it_made(base, doubles):
    silent = base.set("answer.name", "none")
    rag_lab.compare({"base": silent, "likely": silent.set("rerank.name", "query_likelihood")}, [NDCG])
    swept = plan(
        {
            "name": "afterwards",
            "question": "Is anything left to do?",
            "dataset": str(base.dataset.path),
            "base": silent.config.model_dump(),
            "metrics": [NDCG],
            "factors": {"rerank.name": ["none", "query_likelihood"]},
        }
    )
    rows = estimate(swept).rows
    assert any(row.remembered for row in rows)
    assert sum(row.n for row in rows) == 0


def test_what_it_computed_is_never_paid_for_again(base, doubles):
    pipelines = {"base": base, "likely": base.set("rerank.name", "query_likelihood")}
    first = rag_lab.compare(pipelines, [NDCG, "answer.words"])
    asked, scored = len(doubles.chat.requests), len(doubles.scorer.pairs)
    assert asked and scored
    again = rag_lab.compare(pipelines, [NDCG, "answer.words"])
    assert (len(doubles.chat.requests), len(doubles.scorer.pairs)) == (asked, scored)
    assert again.run.path == first.run.path
    assert again.differences.equals(first.differences)


def test_it_leaves_a_run_folder_that_reports_and_comparisons_read(both):
    found = rag_lab.compare(both, [NDCG])
    run = RunFolder.open(found.run.path)
    assert (run.baseline, run.metrics, len(run.questions)) == ("base", (NDCG,), 3)
    assert run.path.name == run.name and run.name.startswith("base_vs_two-")  # a name that can be said
    assert write_report(run.path)
    assert rag_lab.compare(run.path).summary.equals(found.summary)


def test_each_step_is_told_with_the_share_of_the_work_that_is_done(both):
    told = []
    rag_lab.compare(both, [NDCG], progress=lambda step, share: told.append((step, share)))
    shares = [share for _, share in told]
    assert told[0] == ("base: index", 0.0) and told[-1][0] == "two: score"
    assert shares == sorted(shares) and 0.5 < shares[-1] < 1.0
    assert any(step.startswith("base: merge 3/3") and 0.0 < share < 0.5 for step, share in told), told


def test_a_margin_is_declared_before_pipelines_run_and_post_hoc_of_what_was_run(base):
    both = {"all": base, "two": base.set("rerank.final_k", 7)}
    found = rag_lab.compare(both, [NDCG], margin={NDCG: 0.05}, progress=False)
    assert (found.run.margins, found.run.post_hoc_margins) == ({NDCG: 0.05}, ())
    assert RunFolder.open(found.run.path).margins == {NDCG: 0.05}
    again = rag_lab.compare(both, [NDCG], margin={NDCG: 0.1}, progress=False)  # after a look at the scores
    assert again.run.post_hoc_margins == (NDCG,)
    assert rag_lab.compare(found.run.path, margin={NDCG: 0.2}).run.post_hoc_margins == (NDCG,)
    with pytest.raises(RagLabError, match="margin: .* = 2 is wider than the metric's range"):
        rag_lab.compare(both, [NDCG], margin={NDCG: 2.0}, progress=False)


def test_questions_are_a_number_or_ids(both):
    assert len(rag_lab.compare(both, questions=2).run.questions) == 2
    assert rag_lab.compare(both, questions=["q3", "q1"]).run.questions == ("q1", "q3")


def test_the_same_pipeline_runs_once(base):
    found = rag_lab.compare({"base": base, "again": base.set("rerank.name", "none"), "two": base.set("seed", 7)})
    assert [plan.variant_id for plan in found.run.variants] == ["base", "two"]
    assert "again is the same pipeline as base and is run once." in found.manifest["notices"]


def test_questions_without_evidence_say_what_is_not_applicable(tmp_path, doubles):
    (tmp_path / "press.md").write_text("The relief valve opens at 290 bar.")
    base = rag_lab.Pipeline(tmp_path, CONFIG, questions=["When does it open?"])
    found = rag_lab.compare({"base": base, "two": base.set("rerank.final_k", 2)}, [NDCG, n_ranked])
    (reason,) = set(found.gaps.loc[found.gaps["metric"] == NDCG, "reason"])
    assert "evidence" in reason
    assert found.manifest["counts"] == {"scored": 2, "failed": 0, "not_applicable": 2}


def test_what_cannot_be_compared_is_one_sentence(base, tmp_path):
    other = rag_lab.Pipeline(base.dataset, CONFIG, questions=["Why?"])
    for runs, options, sentence in [
        ({}, {}, "Give a run folder or pipelines by name"),
        ({"base": CONFIG}, {}, "'base' is PipelineConfig"),
        ({"a": base, "A": base}, {}, "'A' cannot name a folder beside the others"),
        ({"a": base, "b": other}, {}, "a and b have not the same documents and questions"),
        ({"a": base}, {"questions": 0}, "how many"),
        (
            {"a": base},
            {"questions": ["q9"]},
            r"Unknown question 'q9'.*allowed are q1.*more than one word is a question",
        ),
        ({"a": base}, {"metrics": ["retrieval.ndgc@10"]}, "Unknown metric"),
        ({"a": base}, {"metrics": ["ragas.faithfulness"]}, "needs a judge"),
        (
            {"a": rag_lab.Pipeline(write_dataset(tmp_path, "bare") / "corpus", CONFIG)},
            {},
            "has no questions; give some",
        ),
        (tmp_path, {"questions": 3}, "was run already"),
    ]:
        with pytest.raises(RagLabError, match=sentence):
            rag_lab.compare(runs, **options)


def test_texts_are_asked_and_without_labels_no_pipeline_is_called_better(tmp_path, doubles):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "oil.md").write_text("# Oil\n\nThe oil is changed every 2,000 hours.")
    base = rag_lab.Pipeline(tmp_path / "docs", CONFIG)
    found = rag_lab.compare(
        {"base": base, "two": base.set("rerank.final_k", 2)}, questions=["When is the oil changed?", "Who founded it?"]
    )
    assert found.run.questions == found.run.answered == ("q1", "q2")
    assert found.quality_metrics == ()
    assert "has a label" in found.to_markdown() and "What changed against the baseline" in found._repr_html_()
    assert doubles.chat.requests  # answers are what changes can be seen in
    assert write_report(found.run.path)


def test_a_text_that_the_data_set_knows_has_its_labels(both):
    texts = [" what does ALARM A7 of the oven mean?", "Is there a second oven?"]
    found = rag_lab.compare(both, questions=texts)
    assert found.run.questions == ("q2", "asked-2")
    assert found.quality_metrics == (NDCG,)


def test_labels_that_were_written_since_are_seen(base, both):
    assert len(rag_lab.compare(both).run.questions) == 3
    with (base.dataset.path / "questions.jsonl").open("a") as file:
        file.write(
            '{"id": "q9", "question": "Fish?", "evidence": [{"source": "canteen.txt", "quote": "there is fish"}]}\n'
        )
    assert rag_lab.compare(both).run.questions == ("q1", "q2", "q3", "q9")
