import pytest

from rag_lab.errors import DamagedFile
from rag_lab.experiment.bill import COLUMNS, bill_of, keep_bill, spent_and_estimated
from rag_lab.experiment.bill_text import bill_text, spent_text
from rag_lab.experiment.config import Limits
from rag_lab.experiment.estimate import Bill, BillRow
from rag_lab.experiment.manifest import VariantState, now
from rag_lab.experiment.run_folder import DONE_FILE, RECORD_FILE, RunFolder, VariantPlan, write_json
from rag_lab.experiment.spent import booked_calls, measured_rates
from rag_lab.ledger import Caller, Ledger, Made

CHAT = "gemini:gemini-2.5-flash"
CALLS = BillRow("generate", CHAT, "call", 8, True, 2, 4000, 800, cost_usd=0.0032, minutes=2.0)
SEARCHES = BillRow("retrieve", "sentence_transformers:minilm", "question", 4, False, 0, minutes=None)


def bill(*rows):
    return Bill(rows, now())


@pytest.fixture
def run(tmp_path):
    found = RunFolder(tmp_path, "n", "q", "d", "a", (), 1, (VariantPlan("a", "a"), VariantPlan("b", "b")))
    found.variant_dir("a").mkdir(parents=True)
    return found


def keep(run, plan, make):
    keep_bill(run, bill_of(run, plan, make))


def book(run, n, seconds=2.0, payer="a"):
    ledger = Ledger(run.path / "ledger.sqlite")
    numbers = ledger.ask(Caller(payer, "generate", CHAT), [0.001] * n).numbers
    ledger.correct(numbers, [Made(100, 10, 0.0005, seconds) for _ in numbers])


def work(run, seconds):
    row = {"purpose": "retrieve", "model": "sentence_transformers:minilm", "n": 4, "seconds": seconds}
    write_json(run.variant_dir("a") / RECORD_FILE, {"work": [row | {"tokens_in": 0, "tokens_out": 0}]})
    return {"work": [row]}


def line(table, purpose):
    return table.set_index("purpose").loc[purpose]


def test_spent_stands_beside_estimated(run):
    keep(run, "plan", lambda: bill(CALLS, SEARCHES))
    book(run, 6)
    work(run, 30.0)
    write_json(run.variant_dir("a") / DONE_FILE, {"seconds": 60.0})
    table = spent_and_estimated(run)
    assert tuple(table.columns) == COLUMNS
    generate, retrieve, rest, total = (line(table, name) for name in ("generate", "retrieve", "notebook", "total"))
    assert (generate.calls_estimated, generate.calls_spent) == (8, 6)
    assert (generate.tokens_estimated, generate.tokens_spent) == (4800, 660)
    assert (generate.cost_usd_estimated, generate.cost_usd_spent) == pytest.approx((0.0032, 0.003))
    assert (generate.minutes_estimated, generate.minutes_spent) == pytest.approx((2.0, 0.2))
    assert retrieve.minutes_spent == 0.5
    assert rest.minutes_spent == pytest.approx((60 - 30 - 12) / 60)
    assert (total.calls_spent, total.minutes_spent) == (6, pytest.approx(1.0))
    assert table.isna().sum().to_dict() == dict.fromkeys(COLUMNS, 0) | {
        "minutes_estimated": 2
    }  # retrieve's, the total's


def test_what_nobody_foresaw_is_told_all_the_same(run):
    keep(run, "plan", lambda: bill(SEARCHES))
    book(run, 1)
    assert line(spent_and_estimated(run), "generate").calls_estimated == 0


def test_a_run_without_a_bill_or_a_call_has_an_empty_table(run):
    assert spent_and_estimated(run).empty
    book(run, 1)
    generate = line(spent_and_estimated(run), "generate")
    assert generate.calls_spent == 1
    assert generate.isna().sum() == 4


def test_the_estimate_of_the_first_start_stays_until_the_plan_changes(run):
    keep(run, "plan", lambda: bill(CALLS))
    book(run, 5)
    keep(run, "plan", lambda: pytest.fail("the sweep goes on"))
    assert line(spent_and_estimated(run), "generate").calls_estimated == 8
    keep(run, "another plan", lambda: bill(CALLS))
    assert line(spent_and_estimated(run), "generate").calls_estimated == 5 + 8


def test_a_bill_that_cannot_be_read_is_made_anew_and_said(run, caplog):
    (run.path / "bill.json").write_text("{")
    with pytest.raises(DamagedFile, match="it holds no bill"):
        spent_and_estimated(run)
    keep(run, "plan", lambda: bill(CALLS))
    assert line(spent_and_estimated(run), "generate").calls_estimated == 8
    assert "bill.json is damaged (it holds no bill): what is left to do is estimated anew" in caplog.text


def test_rates_are_of_this_start_and_of_the_variants_that_it_ran(run):
    book(run, 5)
    before = booked_calls(run)
    book(run, 2, seconds=4.0, payer="b")
    states = [
        VariantState("a", "ok", seconds=99.0, resumed=True, record=work(run, 30.0)),
        VariantState("b", "ok", seconds=40.0, record=work(run, 20.0)),
        VariantState("c", "failed", seconds=5.0),
    ]
    calls, searches, notebooks = measured_rates(run, states, before)
    assert (calls.purpose, calls.model, calls.n, calls.seconds, calls.tokens_in) == ("generate", CHAT, 2, 8.0, 200)
    assert (searches.purpose, searches.n, searches.seconds) == ("retrieve", 4, 20.0)
    assert (notebooks.purpose, notebooks.n, notebooks.seconds) == ("notebook", 1, 40.0 - 20.0 - 8.0)


def test_calls_whose_end_nobody_saw_are_spent_and_no_rate(run):
    ledger = Ledger(run.path / "ledger.sqlite")
    ledger.close(ledger.ask(Caller("a", "generate", CHAT), [0.25]).numbers)
    assert booked_calls(run) == {}
    assert line(spent_and_estimated(run), "generate").cost_usd_spent == 0.25


def test_the_text_says_what_its_numbers_rest_on(monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "x")
    text = bill_text(bill(CALLS, SEARCHES), Limits(calls=5, cost_usd=1.0))
    generate = next(row for row in text.splitlines() if row.startswith("generate"))
    assert generate.split() == f"generate {CHAT} 2 ≤ 8 calls ≤ 4,000 ≤ 800 0.0032 2.0".split()
    for said in (
        "at most",
        "No rate measured yet on this machine for retrieve",
        f"{CHAT} by genai-prices",
        "limits.calls = 5 is less than the 8 calls",
    ):
        assert said in " ".join(text.split())
    assert "limits.cost_usd" not in text
    measured = BillRow("generate", CHAT, "call", 8, False, 0, 4000, 800, True, 0.0032, 2.0)
    assert "≤" not in bill_text(bill(measured), Limits())


def test_the_closing_lines_leave_out_what_took_nothing(run):
    idle = BillRow("hyde", CHAT, "call", 0, False, 4)
    keep(run, "plan", lambda: bill(CALLS, idle))
    book(run, 6)
    text = spent_text(run)
    assert "hyde" not in text
    assert next(row for row in text.splitlines() if row.startswith("generate")).split()[1:3] == ["8", "6"]
