from dataclasses import replace

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.tables.costs import Price, prices


def test_differences_below_what_a_person_or_a_bill_would_notice_are_none() -> None:
    base = Price(1.0, 1000.0, 0.01)
    assert Price(1.04, 1015.0, 0.0101).minus(base).signed == "about the same"
    assert Price(1.6, 1030.0, 0.02).minus(base).signed == "+0.60 s, +30 tokens, +$10.00 per 1,000"


def test_many_times_as_long_is_not_about_as_long_however_short_both_are() -> None:
    assert Price(0.043).minus(Price(0.001)).sentence == "costs 0.042 s a question"
    assert Price(0.006).minus(Price(0.001)) == Price(0.043).minus(Price(0.02)) == Price(0.0)


def test_what_is_not_known_is_neither_a_price_nor_a_saving() -> None:
    unknown = Price().minus(Price(1.0, 10.0))
    assert (unknown.signed, unknown.is_saving, Price().text) == ("–", False, "–")
    assert unknown.sentence == "costs what no trace tells"


def test_a_saving_is_less_of_something_and_more_of_nothing() -> None:
    base = Price(2.0, 1000.0)
    assert Price(1.0, 1000.0).minus(base).is_saving
    assert not Price(1.0, 2000.0).minus(base).is_saving and not base.minus(base).is_saving
    assert Price(1.0, 2000.0).minus(base).sentence == "costs 1,000 tokens and saves 1.00 s a question"


def test_tokens_are_those_of_a_question_on_which_every_stage_runs(comparison: Comparison) -> None:
    stages = comparison.stages[comparison.stages["variant_id"] == comparison.run.baseline]
    found = prices(comparison)[comparison.run.baseline]
    assert found.tokens == (stages["tokens_in"] + stages["tokens_out"]).sum() > 0
    medians = comparison.latency.set_index("variant_id")["median_s"]
    assert found.seconds == medians[comparison.run.baseline]
    assert not {"rerank.name-cross_encoder"} & prices(comparison).keys()  # failed


def test_dollars_are_not_known_where_a_model_that_was_called_has_no_price(comparison: Comparison) -> None:
    rows = [{"calls_spent": 3, "cost_usd_estimated": None, "cost_usd_spent": 0.0}]
    unpriced = replace(comparison, manifest={**comparison.manifest, "spent": rows})
    assert prices(comparison)[comparison.run.baseline].usd == 0.0
    assert prices(unpriced)[comparison.run.baseline].usd is None
