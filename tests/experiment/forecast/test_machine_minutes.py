"""What this machine does beside the calls is foretold by what it took before, and by what is assumed until then."""

import pytest
from whole_plan import write_plan

from rag_lab.experiment.forecast.foreseen_work import Work
from rag_lab.experiment.forecast.machine_minutes import machine_minutes, machine_rates
from rag_lab.experiment.manifest import VariantState

INDEX = Work("index", "sentence_transformers:minilm", "chunk", 2000, embedded_chars=1_000_000)
MADE = {"embedded": {"model": INDEX.model, "chars": 500_000, "seconds": 90.0}}


def rates_of(plan, states, report_s=8.0, called=False):
    return {(rate.purpose, rate.model): rate for rate in machine_rates(plan, states, report_s, called=called)}


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path)


def states_of(plan, seconds, **changes):
    first, *others = (VariantState(variant.variant_id, "ok", seconds=seconds, **changes) for variant in plan.variants)
    return [VariantState(first.variant_id, "ok", seconds=seconds + 90.0, record=MADE, **changes), *others]


def test_what_a_sweep_took_is_foretold_of_the_same_sweep_and_scaled_to_more_text(plan):
    assumed = machine_minutes(plan, [INDEX], {})
    assert assumed.embedding > 0 and assumed.assumed == ("embedding", "notebooks", "report")
    found = machine_minutes(plan, [INDEX], rates_of(plan, states_of(plan, 30.0)))
    assert found.embedding == pytest.approx(3.0)  # 90 s for half of the text
    assert found.notebooks == pytest.approx(0.5 * len(plan.variants), rel=0.01)
    assert found.report == pytest.approx(8 / 60, rel=0.01)
    assert found.total == pytest.approx(found.embedding + found.notebooks + found.report) and not found.assumed


def test_only_a_sweep_that_did_all_of_it_by_itself_measures_notebooks(plan):
    assert set(rates_of(plan, states_of(plan, 30.0), called=True)) == {("embedding", INDEX.model)}
    assert rates_of(plan, states_of(plan, 30.0, resumed=True)) == {}


def test_where_nothing_is_embedded_nothing_is_assumed_of_it(plan):
    found = machine_minutes(plan, [], {})
    assert found.embedding == 0 and found.assumed == ("notebooks", "report")
