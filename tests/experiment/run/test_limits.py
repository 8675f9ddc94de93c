"""Limits: what the brake decides, and one sweep with real kernels that is stopped and goes on."""

import pytest
from loopback_chat import loopback_chat
from small_plans import write_machines_sweep

from rag_lab._kit.home import home
from rag_lab.experiment.config import Limits
from rag_lab.experiment.design import ExperimentError
from rag_lab.experiment.executors.local import Done, Job
from rag_lab.experiment.forecast.cost_estimate import estimate, read_rates, spent_and_estimated
from rag_lab.experiment.plan import plan
from rag_lab.experiment.run.outputs import failures
from rag_lab.experiment.run.run_options import BudgetGuard
from rag_lab.experiment.run.sweep import sweep
from rag_lab.memory.ledger import Caller, Ledger
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import RunFolder


def write_experiment(folder, chat, **changes):
    base = {"models": {"generation": chat}, "answer": {"name": "llm"}}
    metrics = ["retrieval.mrr@10", "citations.precision"]
    return write_machines_sweep(folder, base=base, factors={"rerank.final_k": [2, 1]}, metrics=metrics, **changes)


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path, "n", "q", "d", "baseline", (), 1, ())


def job(name, run):
    return Job(name, run.path, run.path, {}, run.path)


def test_a_refused_variant_ends_others_may_finish_and_no_more_start(run):
    brake = BudgetGuard(run, Limits(calls=1))
    ledger = Ledger(run.path / "ledger.sqlite")
    ledger.ask(Caller("a", "generate", "m"), [0.0])
    assert brake.veto(job("a", run), True) == brake.veto(job("b", run), False) == ""
    ledger.ask(Caller("a", "generate", "m"), [0.0])
    brake = BudgetGuard(run, Limits(calls=1))  # a new start has the same ledger, and tries again
    assert brake.veto(job("b", run), False) == ""
    ledger.ask(Caller("a", "generate", "m"), [0.0])
    assert brake.stopped(Done(job("b", run), "", 1.0)) is None
    assert "limits.calls" in brake.veto(job("a", run), True)
    assert "limits.calls" in brake.veto(job("b", run), False)
    assert brake.veto(job("b", run), True) == ""


def test_what_a_refused_variant_wrote_is_not_its_result(run):
    brake = BudgetGuard(run, Limits(calls=1))
    folder = run.variant_dir("a")
    folder.mkdir(parents=True)
    (folder / "traces.jsonl").write_text("{}")
    Ledger(run.path / "ledger.sqlite").ask(Caller("a", "generate", "m"), [0.0])
    Ledger(run.path / "ledger.sqlite").ask(Caller("a", "generate", "m"), [0.0])
    state = brake.stopped(Done(job("a", run), "", 1.0))  # its kernel came to its end all the same
    assert state.status == "stopped"
    assert list(folder.iterdir()) == []


def test_a_limit_on_money_needs_a_price_for_every_model_that_costs(tmp_path, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "x")
    with pytest.raises(ExperimentError, match=r"gemini:gemini-99.*prices\.toml"):
        plan(write_experiment(tmp_path, "gemini:gemini-99", limits={"cost_usd": 1}))
    plan(write_experiment(tmp_path, "gemini:gemini-99", limits={"calls": 1}))
    plan(write_experiment(tmp_path, "openai:x?base_url=http://127.0.0.1:9/v1", limits={"cost_usd": 1}))


@pytest.mark.slow
def test_a_sweep_stops_at_its_limit_says_so_and_goes_on_when_it_is_raised(tmp_path):
    with loopback_chat() as chat:
        path = write_experiment(tmp_path, chat.spec(), limits={"calls": 5})
        run = sweep(path, tmp_path / "run", jobs=1, progress=False)
        assert len(chat.prompts) == 5
        states = {name: state["status"] for name, state in run.manifest()["variants"].items()}
        assert states == {"baseline": "ok", "final_k-1": "stopped"}
        assert run.manifest()["limits"]["calls"] == {"limit": 5, "used": 5}
        [told] = failures(run)
        assert "final_k-1" in told
        assert "limits.calls = 5" in told
        assert list(compare(run.path).failed) == ["final_k-1"]
        assert run.traces("final_k-1") == []

        path = write_experiment(tmp_path, chat.spec(), limits={"calls": 8})
        run = sweep(path, tmp_path / "run", jobs=1, progress=False)
    states = run.manifest()["variants"]
    assert states["baseline"]["resumed"]
    assert states["final_k-1"]["status"] == "ok"
    assert failures(run) == []
    assert len(chat.prompts) == 8
    asked = [str(prompt) for prompt in chat.prompts]
    assert len(asked) == len(set(asked))  # what was paid for before the stop was remembered
    check_bill(run, path, chat.n_tokens)


def check_bill(run, path, n_tokens):
    """What was estimated before the first start is what both starts spent, and what they measured is known now."""
    generate = spent_and_estimated(run).set_index("purpose").loc["generate"]
    assert generate.calls_estimated == generate.calls_spent == 8
    assert generate.tokens_spent == n_tokens
    assert generate.minutes_spent > 0
    assert "generate" in {row["purpose"] for row in run.manifest()["spent"]}
    rows = {row.purpose: row for row in estimate(plan(path)).rows}
    assert (rows["generate"].calls, rows["generate"].remembered) == (0, 8)
    rates = read_rates(home())
    assert rates["generate", plan(path).variants[0].config.models.generation].n == 8
