import numpy as np
import pytest

from rag_lab.comparison.findings.conclusions import topics
from rag_lab.comparison.findings.recommendation import recommendation
from rag_lab.comparison.findings.trace_findings import gain_sentences
from rag_lab.comparison.tables.bounds import bound_arms, bound_of
from rag_lab.errors import ConfigError
from rag_lab.report.compare_text import compare_text
from rag_lab.report.page.report_page import write_report
from rag_lab.report.shown_comparison import compare

F1 = "answer.token_f1"
CONTEXT, READER = "answer.context", "answer.name"
N = 60
PLANS = {
    "base": {},
    "closed": {CONTEXT: "none"},
    "gold": {CONTEXT: "gold"},
    "file": {CONTEXT: "document"},
    "wider": {"rerank.final_k": 7},
    "quotes": {READER: "llm"},
}


def values(seed=0):
    random = np.random.default_rng(seed)
    floor = random.uniform(0.0, 0.2, N)
    gain = random.uniform(0.4, 0.6, N)
    shares = {"base": 0.5, "closed": 0.0, "gold": 1.0, "file": 0.8, "wider": 0.75, "quotes": 0.4}
    return {name: floor + share * gain + random.normal(0, 0.01, N) for name, share in shares.items()}


@pytest.fixture(scope="module")
def found(synthetic, tmp_path_factory):
    metrics = {F1: values(), "retrieval.mrr@5": values(1)}
    return compare(synthetic.write_run(tmp_path_factory.mktemp("gain") / "run", PLANS, metrics).path)


def reach(found, variant):
    return next(one for one in found.gain if one.variant_id == variant)


def test_each_variant_reaches_its_share_of_what_its_reader_could(found):
    shares = {name: reach(found, name).found for name in ("base", "file", "wider")}
    assert {name: round(one.mean, 2) for name, one in shares.items()} == pytest.approx(
        {"base": 0.5, "file": 0.8, "wider": 0.75}, abs=0.02
    )
    assert all(one.low < one.mean < one.high and one.n == N for one in shares.values())


def test_bounds_and_metrics_that_read_no_answer_have_no_share(found):
    assert {one.variant_id for one in found.gain} == {"base", "file", "wider", "quotes"}
    assert {one.metric for one in found.gain} == {F1}


def test_another_reader_needs_bounds_of_its_own(found):
    one = reach(found, "quotes")
    assert (one.floor, one.ceiling, one.means, one.found.mean) == (None, None, None, None)
    assert one.found.reason == "no variant with its reader reads nothing or the labelled evidence"


def test_of_several_bounds_that_with_the_same_budget_counts(synthetic, tmp_path):
    tokens = "answer.context_tokens"
    plans = {"base": {}, "gold": {CONTEXT: "gold"}, "less": {tokens: 300}, "less_gold": {tokens: 300, CONTEXT: "gold"}}
    run = compare(synthetic.write_run(tmp_path / "run", plans, {F1: dict.fromkeys(plans, np.ones(N))}).path)
    assert [bound_of(run, name, "gold") for name in ("base", "less")] == ["gold", "less_gold"]
    assert bound_of(run, "base", "none") is None


def test_a_question_without_all_three_scores_is_left_out_and_counted(synthetic, tmp_path):
    scores = values()
    scores["closed"][:7] = np.nan
    run = compare(synthetic.write_run(tmp_path / "run", PLANS, {F1: scores}).path)
    assert reach(run, "base").found.n == N - 7


def test_a_closed_book_that_never_answers_is_no_floor_and_the_reason_is_told(synthetic, tmp_path):
    scores = values()
    scores["closed"][:] = np.nan
    told = gain_sentences(compare(synthetic.write_run(tmp_path / "run", PLANS, {F1: scores}).path))
    assert "No share of the gain is told of A (base), D (file) and E (wider): B (closed) has no score: " in told[1]


def test_no_bound_is_recommended_however_good(found):
    advice = recommendation(found)
    assert advice.variant_id == "wider"
    assert set(bound_arms(found)) == {"closed", "gold", "file"}
    assert not set(found.front.quality) & set(bound_arms(found))


@pytest.mark.parametrize("margin", [None, {F1: 0.05}])
def test_nor_by_a_margin(synthetic, tmp_path, margin):
    run = compare(synthetic.write_run(tmp_path / "run", PLANS, {F1: values()}).path, margin=margin)
    assert recommendation(run).variant_id == "wider"


def test_a_baseline_that_reads_labels_leaves_nothing_to_keep(synthetic, tmp_path):
    plans = {"gold": {CONTEXT: "gold"}, "base": {}}
    run = compare(synthetic.write_run(tmp_path / "run", plans, {F1: {name: values()[name] for name in plans}}).path)
    advice = recommendation(run)
    assert advice.variant_id is None
    assert "the baseline is a bound, which reads the labelled evidence" in advice.headline


def test_sentences_name_the_bounds_and_the_shares(found):
    told = topics(found)["Reach"]
    assert told == gain_sentences(found)
    assert told[0].startswith("Bounds, which are not recommended: B (closed) reads nothing;")
    assert told[-1].startswith("No share of the gain is told of F (quotes): no variant with its reader")
    assert told[1].startswith("A (base) reaches 50% [50% to 51%] of the gain in answer.token_f1: ")


def test_a_run_without_bounds_has_no_such_section(synthetic, tmp_path):
    run = compare(synthetic.write_run(tmp_path / "run", {"base": {}}, {F1: {"base": values()["base"]}}).path)
    assert run.gain == ()
    assert "Reach" not in topics(run)


MRR = "retrieval.mrr@5"
N_KNOWN = 40
WITH_CLOSED = {"base": {}, "closed": {"answer.context": "none"}, "wider": {"rerank.final_k": 7}}
CLOSED = np.where(np.arange(N_KNOWN) < 10, 0.9, 0.1)


def run(synthetic, tmp_path, closed=CLOSED, plans=WITH_CLOSED, main=MRR):
    random = np.random.default_rng(0)
    f1 = {name: random.uniform(0, 1, N_KNOWN) for name in plans} | ({"closed": closed} if "closed" in plans else {})
    mrr = {name: random.uniform(0, 1, N_KNOWN) for name in plans}
    metrics = {MRR: mrr, F1: f1} if main == MRR else {MRR: mrr}
    return synthetic.write_run(tmp_path / "run", plans, metrics).path


def test_what_a_closed_book_answers_is_left_out_everywhere_and_said(synthetic, tmp_path):
    path = run(synthetic, tmp_path)
    found = compare(path, without_known=0.8)
    kept = [f"q{index}" for index in range(10, N_KNOWN)]
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
    assert len(compare(path).run.questions) == len(compare(path, without_known=0.95).run.questions) == N_KNOWN


def test_a_failed_reply_of_a_closed_book_is_no_knowledge(synthetic, tmp_path):
    closed = CLOSED.copy()
    closed[:4] = np.nan
    found = compare(run(synthetic, tmp_path, closed), without_known=0.8)
    assert len(found.run.questions) == N_KNOWN - 6


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
