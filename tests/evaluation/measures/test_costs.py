from factories import make_failed_trace, make_trace

from rag_lab.evaluation.evaluate import evaluate


def test_sums_over_stages_as_first_computed():
    scores = evaluate([make_trace()], ["cost.seconds", "cost.tokens", "cost.usd", "cost.seconds.generate"])
    assert [score.value for score in scores] == [2.0, 130, 0.25, 1.5]


def test_a_stage_that_has_not_run_has_no_cost():
    (score,) = evaluate([make_trace()], ["cost.seconds.hyde"])
    assert (score.status, score.value, score.reason) == ("not_applicable", None, "stage hyde has not run")


def test_a_stage_after_a_failure_has_failed():
    trace = make_failed_trace("retrieve", "index is gone")
    total, generate = evaluate([trace], ["cost.seconds", "cost.seconds.generate"])
    assert total.value == 0.1
    assert (generate.status, generate.reason) == ("failed", "retrieve failed: index is gone")
