import pandas as pd
import pytest

from rag_lab.errors import DamagedFile
from rag_lab.experiment.config import Limits
from rag_lab.experiment.forecast.cost_estimate import (
    CostEstimate,
    kept_estimate,
    measured_rates,
    spending_rows,
    spent_text,
)
from rag_lab.experiment.forecast.describe import cost_notes, cost_table
from rag_lab.experiment.forecast.work import Work
from rag_lab.experiment.manifest import now
from rag_lab.memory.ledger import Caller, Ledger, Made
from rag_lab.runs.run_folder import BILL_FILE, RunFolder, VariantPlan, write_json
from rag_lab.runs.run_manifest import COLUMNS, minutes_text, total

CHAT = "gemini:gemini-2.5-flash"
CALLS = Work("generate", CHAT, "call", 8, True, 2, 4000, 800, cost_usd=0.0032, minutes=2.0)
PAIRS = Work("rerank", "transformers:smollm2", "pair", 4)
JUDGE = Work("ragas.faithfulness", CHAT, "call", 2, True, 0, 900, 100, cost_usd=0.001, minutes=None)


def bill(*rows):
    return CostEstimate(rows, now())


@pytest.fixture
def run(tmp_path):
    found = RunFolder(tmp_path, "n", "q", "d", "a", (), 1, (VariantPlan("a", "a"), VariantPlan("b", "b")))
    found.variant_dir("a").mkdir(parents=True)
    return found


def keep(run, plan, make):
    write_json(run.path / BILL_FILE, kept_estimate(run, plan, make))


def book(run, n, seconds=2.0, payer="a"):
    ledger = Ledger(run.path / "ledger.sqlite")
    numbers = ledger.ask(Caller(payer, "generate", CHAT), [0.001] * n).numbers
    ledger.correct(numbers, [Made(100, 10, 0.0005, seconds) for _ in numbers])


def spent_and_estimated(run):
    rows = spending_rows(run)
    return pd.DataFrame([*rows, total(rows)] if rows else [], columns=list(COLUMNS))


def line(table, purpose):
    return table.set_index("purpose").loc[purpose]


def test_spent_stands_beside_estimated(run):
    keep(run, "plan", lambda: bill(CALLS, PAIRS, JUDGE))
    book(run, 6)
    table = spent_and_estimated(run)
    assert tuple(table.columns) == COLUMNS
    assert list(table.purpose) == ["generate", "ragas.faithfulness", "total"]  # pairs are no calls
    generate, judge, total = (line(table, name) for name in table.purpose)
    assert (generate.calls_estimated, generate.calls_spent) == (8, 6)
    assert (generate.tokens_estimated, generate.tokens_spent) == (4800, 660)
    assert (generate.cost_usd_estimated, generate.cost_usd_spent) == pytest.approx((0.0032, 0.003))
    assert (generate.minutes_estimated, generate.minutes_spent) == pytest.approx((2.0, 0.2))
    assert (judge.calls_estimated, judge.calls_spent) == (2, 0)
    assert (total.calls_spent, total.minutes_spent) == (6, pytest.approx(0.2))
    missing = dict.fromkeys(COLUMNS, 0) | {"minutes_estimated": 2}  # the judge's, and so the total's
    assert table.isna().sum().to_dict() == missing
    assert minutes_text(spending_rows(run)).endswith("0.2 minutes, side by side or not (no estimate was possible)")


def test_what_nobody_foresaw_is_told_all_the_same(run):
    keep(run, "plan", lambda: bill(PAIRS))
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


def test_rates_are_of_the_calls_of_all_variants(run):
    book(run, 5)
    book(run, 2, seconds=4.0, payer="b")
    (calls,) = measured_rates(run)
    assert (calls.purpose, calls.model, calls.n, calls.seconds) == ("generate", CHAT, 7, 5 * 2.0 + 2 * 4.0)
    assert (calls.tokens_in, calls.tokens_out) == (700, 70)


def test_calls_whose_end_nobody_saw_are_spent_and_no_rate(run):
    ledger = Ledger(run.path / "ledger.sqlite")
    ledger.close(ledger.ask(Caller("a", "generate", CHAT), [0.25]).numbers)
    assert measured_rates(run) == []
    assert line(spent_and_estimated(run), "generate").cost_usd_spent == 0.25


def test_the_text_says_what_its_numbers_rest_on(monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "x")
    known = bill(CALLS, PAIRS, JUDGE)
    text = cost_table(known).with_notes(cost_notes(known, Limits(calls=5, cost_usd=1.0)))
    generate = next(row for row in text.splitlines() if row.startswith("generate"))
    assert generate.split() == f"generate {CHAT} 2 ≤ 8 calls ≤ 4,000 ≤ 800 0.0032".split()
    for said in (
        "at most",
        "How long model calls take is not known; the first sweep measures ragas.faithfulness.",
        f"{CHAT} by genai-prices",
        "limits.calls = 5 is less than the 10 calls",
    ):
        assert said in " ".join(text.split())
    assert "limits.cost_usd" not in text
    measured = Work("generate", CHAT, "call", 8, False, 0, 4000, 800, 0, True, 0.0032, 2.0)
    assert "≤" not in cost_table(bill(measured)).to_text()
    known = " ".join(cost_notes(bill(measured), Limits(minutes=1)))
    assert "Model calls take 2.0 minutes, one after the other. " in known
    assert "limits.minutes = 1 is less than the 2.0 minutes above" in known


def test_the_closing_lines_leave_out_what_took_nothing(run):
    idle = Work("hyde", CHAT, "call", 0, False, 4)
    keep(run, "plan", lambda: bill(CALLS, idle))
    book(run, 6)
    text = spent_text(run)
    assert "hyde" not in text
    assert text.endswith("- model calls took 0.2 minutes, side by side or not (2.0 were estimated)")
    assert next(row for row in text.splitlines() if row.startswith("generate")).split()[1:3] == ["8", "6"]
