import multiprocessing
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_lab.errors import DamagedFile
from rag_lab.memory.ledger import Caller, Ledger, Made

CALLER = Caller("baseline", "generate", "openai:x")


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


def test_calls_are_permitted_until_the_limit_and_then_refused_with_its_name(ledger):
    ledger.start(None, 3, None)
    assert len(ledger.ask(CALLER, [0.0] * 2).numbers) == 2
    assert len(ledger.ask(CALLER, [0.0] * 2).numbers) == 1
    assert ledger.refused() == {}
    permit = ledger.ask(CALLER, [0.0])
    assert (permit.numbers, permit.wait) == ((), False)
    assert "limits.calls = 3" in ledger.refused()["baseline"] == permit.reason


def test_a_new_start_keeps_what_was_used_and_forgets_what_was_refused(ledger):
    ledger.start(None, 1, None)
    ledger.ask(CALLER, [0.0])
    ledger.ask(CALLER, [0.0])
    ledger.start(None, 2, None)
    assert ledger.refused() == {}
    assert ledger.used().calls == 1
    assert len(ledger.ask(CALLER, [0.0, 0.0]).numbers) == 1


def test_money_is_entered_at_the_most_it_can_be_and_corrected(ledger):
    ledger.start(1.0, None, None)
    first = ledger.ask(CALLER, [0.6, 0.6])
    assert len(first.numbers) == 1
    assert ledger.ask(CALLER, [0.6]).wait  # a call under way may turn out cheaper
    ledger.correct(first.numbers, [Made(10, 5, 0.1, 2.0)])
    assert len(ledger.ask(CALLER, [0.6]).numbers) == 1
    assert ledger.used().cost_usd == pytest.approx(0.7)


def test_a_call_whose_end_is_not_known_stays_at_its_most_and_one_not_made_is_struck(ledger):
    ledger.start(1.0, None, None)
    ledger.close(ledger.ask(CALLER, [0.6]).numbers)
    assert not ledger.ask(CALLER, [0.6]).wait
    assert "limits.cost_usd = 1" in ledger.refused()["baseline"]
    ledger.strike(ledger.ask(CALLER, [0.3]).numbers)
    assert (ledger.used().cost_usd, ledger.used().calls) == (0.6, 1)


def test_the_calls_of_a_dead_process_are_not_waited_for(ledger):
    ledger.start(1.0, None, None)
    process = multiprocessing.get_context("spawn").Process(target=ledger.ask, args=(CALLER, [0.6]))
    process.start()
    process.join()
    assert ledger.used().cost_usd == 0.6
    permit = ledger.ask(CALLER, [0.6])
    assert (permit.numbers, permit.wait) == ((), False)


def test_the_calls_of_earlier_starts_are_not_waited_for_wherever_they_ran(ledger):
    ledger.start(1.0, None, None)
    ledger.ask(CALLER, [0.6])
    with sqlite3.connect(ledger.path) as database:
        database.execute("UPDATE calls SET host = '4f0c2a1b77de', pid = 57")
    ledger.start(1.0, None, None)
    permit = ledger.ask(CALLER, [0.6])
    assert (permit.numbers, permit.wait) == ((), False)
    assert ledger.used().cost_usd == 0.6


def test_the_calls_of_a_process_whose_number_is_in_use_again_are_not_waited_for(ledger):
    ledger.start(1.0, None, None)
    ledger.ask(CALLER, [0.6])
    with sqlite3.connect(ledger.path) as database:
        database.execute("UPDATE calls SET began = '1'")
    assert not ledger.ask(CALLER, [0.6]).wait


def test_time_counts_while_the_sweep_runs_and_not_between_its_starts(ledger):
    ledger.start(None, None, 10.0)
    shift(ledger, began=-1000, seen=-700)  # ran for five minutes
    ledger.start(None, None, 10.0)
    assert ledger.used().minutes == pytest.approx(5, abs=0.1)
    assert ledger.out_of_time() == ""
    shift(ledger, began=-301, seen=0)
    assert "limits.minutes = 10" in ledger.out_of_time()
    assert "limits.minutes" in ledger.ask(CALLER, [0.0]).reason


def shift(ledger, began, seen):
    with sqlite3.connect(ledger.path) as database:
        database.execute(
            "UPDATE starts SET began = began + ?, seen = seen + ? WHERE id = (SELECT max(id) FROM starts)",
            (began, seen),
        )


def test_totals_by_variant_stage_and_model(ledger):
    numbers = ledger.ask(CALLER, [0.0, 0.0]).numbers
    ledger.correct(numbers, [Made(10, 5, 0.1, 2.0), Made(20, 7, 0.2, 3.0)])
    [(caller, calls, made)] = ledger.calls()
    assert (caller, calls) == (CALLER, 2)
    assert (made.tokens_in, made.tokens_out, made.seconds) == (30, 12, 5.0)
    assert made.cost_usd == pytest.approx(0.3)


def test_a_file_that_holds_something_else_is_one_sentence(ledger):
    ledger.path.write_text("hello")
    with pytest.raises(DamagedFile, match=r"ledger\.sqlite is damaged .*; delete it .* limits count from zero again"):
        ledger.calls()


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.floats(0.1, 5), wanted=st.lists(st.lists(st.floats(0, 1), max_size=4), max_size=6))
def test_entered_calls_never_pass_the_limit(tmp_path_factory, limit, wanted):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "l.sqlite")
    ledger.start(limit, 10, None)
    for costs in wanted:
        ledger.close(ledger.ask(CALLER, costs).numbers)
    assert ledger.used().cost_usd <= limit + 1e-6
    assert ledger.used().calls <= 10
