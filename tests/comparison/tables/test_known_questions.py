import numpy as np
import pytest

from rag_lab.errors import ConfigError
from rag_lab.report.compare_text import compare_text
from rag_lab.report.page.report_page import write_report
from rag_lab.report.shown_comparison import compare

F1 = "answer.token_f1"
MRR = "retrieval.mrr@5"
N = 40
PLANS = {"base": {}, "closed": {"answer.context": "none"}, "wider": {"rerank.final_k": 7}}
CLOSED = np.where(np.arange(N) < 10, 0.9, 0.1)


def run(synthetic, tmp_path, closed=CLOSED, plans=PLANS, main=MRR):
    random = np.random.default_rng(0)
    f1 = {name: random.uniform(0, 1, N) for name in plans} | ({"closed": closed} if "closed" in plans else {})
    mrr = {name: random.uniform(0, 1, N) for name in plans}
    metrics = {MRR: mrr, F1: f1} if main == MRR else {MRR: mrr}
    return synthetic.write_run(tmp_path / "run", plans, metrics).path


def test_what_a_closed_book_answers_is_left_out_everywhere_and_said(synthetic, tmp_path):
    path = run(synthetic, tmp_path)
    found = compare(path, without_known=0.8)
    kept = [f"q{index}" for index in range(10, N)]
    assert list(found.run.questions) == kept
    assert set(found.scores["question_id"]) == set(kept)
    assert [trace.question.question_id for trace in found.traces["base"]] == kept
    assert found.run.left_out == {f"which a closed book answers ({F1} at least 0.800)": 10}
    assert "30 of 40 questions are asked. Left out: 10 which a closed book answers" in compare_text(
        path, without_known=0.8
    )
    means = compare(path).scores
    ours = means[(means["variant_id"] == "base") & (means["metric"] == MRR) & means["question_id"].isin(kept)]
    assert found.cell("base", MRR)["mean"] == pytest.approx(ours["value"].astype(float).mean())


def test_the_page_says_it_and_shows_no_card_of_what_was_left_out(synthetic, tmp_path):
    page = write_report(run(synthetic, tmp_path), without_known=0.8, one_file=True).read_text()
    assert "which a closed book answers" in page
    assert "Question 3?" not in page
    assert "Question 30?" in page


def test_without_the_request_and_where_nothing_is_known_all_stay(synthetic, tmp_path):
    path = run(synthetic, tmp_path)
    assert len(compare(path).run.questions) == len(compare(path, without_known=0.95).run.questions) == N


def test_a_failed_reply_of_a_closed_book_is_no_knowledge(synthetic, tmp_path):
    closed = CLOSED.copy()
    closed[:4] = np.nan
    found = compare(run(synthetic, tmp_path, closed), without_known=0.8)
    assert len(found.run.questions) == N - 6


@pytest.mark.parametrize(
    ("changes", "score", "reason"),
    [
        ({"plans": {"base": {}, "wider": {"rerank.final_k": 7}}}, 0.8, "no variant of this run closes the book"),
        ({"main": F1}, 0.8, "no metric of this run reads answers"),
        ({}, 1.5, f"{F1} is never 1.5; give a score from 0 to 1"),
        ({}, -0.5, f"{F1} is never -0.5; give a score from 0 to 1"),
        ({}, 0.05, "All 40 questions are answered without any context"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(synthetic, tmp_path, changes, score, reason):
    path = run(synthetic, tmp_path, **changes)
    with pytest.raises(ConfigError, match=reason):
        compare(path, without_known=score)


def test_two_runs_have_no_closed_book_in_common(synthetic, tmp_path):
    path = run(synthetic, tmp_path)
    with pytest.raises(ConfigError, match="of one run, and two are given"):
        compare_text(path, path, without_known=0.8)
