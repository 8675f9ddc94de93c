from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rag_lab._kit.home import home
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.comparison.findings.recommendation import recommendation
from rag_lab.comparison.tables.reliability import replications
from rag_lab.config import PipelineConfig
from rag_lab.evaluation.cutoff_caveats import not_compared
from rag_lab.evaluation.judge_check import Agreement, Discrimination, JudgeCheck, Objects, save_check
from rag_lab.records import Evidence, Hit, Question, Trace
from rag_lab.report.page.report_page import to_html
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.variant_files import write_traces

JUDGE = "llamacpp:smollm2"


@pytest.fixture
def judged(synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comparison:
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    values = {name: np.linspace(0, 1, 10) for name in ("none", "always")}
    plans = {name: {synthetic.HYDE: name} for name in values}
    metrics = {"ragas.faithfulness": values, "retrieval.ndcg@5": values}
    return compare(synthetic.write_run(tmp_path / "run", plans, metrics, judge=JUDGE).path)


def check(auc: float) -> JudgeCheck:
    return JudgeCheck(
        judge=JUDGE,
        identity={"provider": "llamacpp", "name": "smollm2"},
        dataset="plant_docs",
        dataset_digest="",
        n_questions=20,
        checked_at="2026-11-22T00:00:00+00:00",
        objects=(Objects("ragas.faithfulness", 10, 10),),
        telling=(Discrimination("ragas.faithfulness", "all", auc, auc - 0.05, auc + 0.05, 20, 40),),
        agreement=Agreement("ragas.faithfulness", 10, 1.0, 0.0),
        calls=100,
        seconds=1.0,
    )


def test_a_judge_that_was_not_checked_is_told_with_the_command_that_checks_it(judged: Comparison) -> None:
    (note,) = judged.judges
    assert note.metrics == ("ragas.faithfulness",) and note.passes is None
    assert f"rag-lab judge check {JUDGE}" in note.sentence
    page = to_html(judged)
    assert f"<code>rag-lab judge check {JUDGE}</code>" in page and "notice bad" in page
    assert note.sentence in conclusions(judged)
    assert "was not checked" in judged.to_markdown() and "was not checked" in judged._repr_html_()


@pytest.mark.parametrize(("auc", "said"), [(0.5, "is no better than chance"), (0.9, "tells right answers from wrong")])
def test_the_trial_stands_beside_what_was_judged(judged: Comparison, auc: float, said: str) -> None:
    assert home().name == "home"
    save_check(check(auc))
    (note,) = judged.judges
    assert note.passes is (auc > 0.6)
    page = to_html(judged)
    assert said in page
    assert ("notice bad" in page) is (auc < 0.6)


def test_embeddings_are_no_judge(comparison: Comparison) -> None:
    assert comparison.judges == ()


DEEP, FLAT = ({"rerank.final_k": 10}, {"rerank.final_k": 3})


def test_rankings_of_unequal_depth_are_not_compared_below_the_shorter() -> None:
    configs = {"deep": PipelineConfig().override(DEEP), "flat": PipelineConfig().override(FLAT)}
    assert not_compared("retrieval.recall@5", configs, configs) == ""
    assert not_compared("retrieval.recall@10", configs, configs) == (
        "not compared: retrieval.recall@10 sees 6 ranks of one and 10 of the other"
    )
    assert not_compared("citations.precision", configs, configs) == ""
    assert not_compared("retrieval.recall@10", configs, ["deep", "of which nothing was written"]) == ""


def test_the_table_says_so_and_the_pair_counts_in_no_family(synthetic: ModuleType, tmp_path: Path) -> None:
    base = np.linspace(0.3, 0.6, 30)
    values = {"a": base, "b": base - 0.1, "c": base - np.where(np.arange(30) < 20, 0.3, 0.0)}
    plans = {"a": DEEP, "b": FLAT, "c": {"retrieval.base_k": 30}}
    run = synthetic.write_run(
        tmp_path / "run", plans, {"retrieval.recall@10": values}, base=PipelineConfig().override(DEEP)
    )
    found = read_comparison(run.path)
    withheld = found.difference("b", "retrieval.recall@10")
    assert withheld is not None and (withheld["n"], withheld["difference"], withheld["p_corrected"]) == (0, None, None)
    assert withheld["verdict"].startswith("not compared: retrieval.recall@10 sees 6 ranks")
    told = found.difference("c", "retrieval.recall@10")
    assert told is not None and (told["verdict"], told["family"]) == ("worse", "primary")
    assert {answer.family.n_tests for answer in found.answers.values()} == {1}


def test_files_that_only_the_longer_ranking_can_hold_are_no_gain(synthetic: ModuleType, tmp_path: Path) -> None:
    metrics = {f"retrieval.recall@{k}": {"a": np.zeros(30), "b": np.ones(30)} for k in (10, 2)}
    run = synthetic.write_run(tmp_path / "run", {"a": {}, "b": {"retrieval.level": "document"}, "c": {}}, metrics)
    orders = {"a": ["x", "x", "y"], "b": ["x", "y", "z"]}  # the same order, and "b" has room for a third file
    for name, order in orders.items():
        hits = tuple(Hit(f"{place}", f"{place}", source, place, 0, 9, 1.0) for place, source in enumerate(order, 1))
        questions = [Question(f"q{number}", "Which file?", evidence=(Evidence("z"),)) for number in range(30)]
        traces = [Trace(question, ranked=hits) for question in questions]
        write_traces(run.variant_dir(name) / "traces.jsonl", traces)
    found = read_comparison(run.path)
    row = found.difference("b", "retrieval.recall@10")
    assert row is not None and "finds evidence of 30 questions behind the end of the shorter" in row["verdict"]
    assert row["verdict"].endswith("a cut-off of 2 or a larger rerank.final_k compares them")
    told = found.difference("b", "retrieval.recall@2")
    assert told is not None and told["n"] == 30
    assert recommendation(found).headline.startswith("Undecided: no difference in retrieval.recall@10 can be told: not")


@pytest.mark.parametrize(
    ("judge", "design", "told"),
    [
        ("transformers:HuggingFaceTB/SmolLM2-1.7B", "", "is of the family of a writer, SmolLM"),
        ("gemini:gemini-2.5-flash", "racing", "The search chooses by this judge alone"),
        ("gemini:gemini-2.5-flash", "grid", ""),
    ],
)
def test_a_judge_of_the_writer_s_family_and_a_search_by_a_judge_alone_are_named(  # type: ignore[no-untyped-def]
    synthetic, tmp_path, judge, design, told
):
    base = PipelineConfig().override({"answer.name": "llm", "models.generation": "llamacpp:smollm2"})
    plans = {"base": {}, "always": {"query.hyde": "always"}}
    metrics = {"ragas.faithfulness": {one: np.full(12, 0.5) for one in plans}}
    run = synthetic.write_run(tmp_path / "run", plans, metrics, judge=judge, base=base, design=design)
    (note,) = compare(run.path).judges
    assert (told in note.sentence) and note.sentence.startswith(f"Judged by {judge}: ragas.faithfulness.")
    assert ("family" in note.sentence) == ("family" in told) and ("search" in note.sentence) == ("search" in told)


def test_a_judged_difference_is_replicated_where_a_second_judge_finds_it(  # type: ignore[no-untyped-def]
    synthetic, tmp_path
):
    plans = {"base": {}, "always": {"query.hyde": "always"}, "none": {"rerank.final_k": 3}}
    worse, better, random = np.full(30, 0.4), np.full(30, 0.9), np.random.default_rng(0).random(30)
    first = {"base": worse, "always": better, "none": better}
    second = {"base": random, "always": random + 0.3, "none": random}
    metrics = {"ragas.faithfulness": first, "ragas.faithfulness by b:two": second}
    run = synthetic.write_run(tmp_path / "run", plans, metrics, judge="a:one")
    told = replications(read_comparison(run.path))
    assert len(told) == 2
    assert "B (always) is better than A (base) in ragas.faithfulness: replicated by b:two" in told[0]
    assert "C (none) is better than A (base) in ragas.faithfulness: not replicated by b:two" in told[1]
    assert told[0] in conclusions(read_comparison(run.path))
