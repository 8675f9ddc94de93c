"""How many variants run side by side where that is left to the machine, in which order, and within which limits."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback_chat import loopback_chat
from small_plans import write_machines_sweep

from rag_lab._kit import machine
from rag_lab._kit.home import home
from rag_lab._kit.machine import usable_cores
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.experiment.config import Limits
from rag_lab.experiment.design import ExperimentError, Variant
from rag_lab.experiment.executors.local import Done, Job
from rag_lab.experiment.forecast.cost_estimate import estimate, read_rates, spending_rows
from rag_lab.experiment.plan import plan
from rag_lab.experiment.run import run_options
from rag_lab.experiment.run.outputs import failures
from rag_lab.experiment.run.run_options import (
    GUESSED_MB,
    BudgetGuard,
    are_small,
    as_jobs,
    decide,
    in_model_order,
    models_of,
)
from rag_lab.experiment.run.sweep import sweep
from rag_lab.memory.ledger import Caller, Ledger
from rag_lab.models.hosted import HOST_VARIABLE
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import RECORD_FILE, RunFolder


@given(
    st.integers(1, 100), st.integers(1, 64), st.floats(0, 1e6) | st.none(), st.floats(1, 1e5) | st.none(), st.booleans()
)
def test_at_least_one_runs_and_never_more_than_there_are_or_memory_holds(n_variants, cores, free, peak_mb, waits):
    jobs, _ = decide(n_variants, cores, free, peak_mb, waits=waits)
    assert 1 <= jobs <= min(n_variants, 4 * cores)
    assert jobs == 1 or free is None or jobs * (peak_mb or GUESSED_MB) <= free
    assert waits or jobs <= cores


def test_it_says_why():
    assert decide(8, 2, 16 * 1024.0, 2 * 1024.0, waits=False) == (
        2, "2 variants side by side: 2 cores; 16.0 GB of memory free at 2.0 GB each.",
    )  # fmt: skip
    assert decide(8, 2, None, None, waits=True)[1] == (
        "8 variants side by side: 2 cores, 4 variants each as they wait for servers."
    )
    assert decide(8, 8, 5 * 1024.0, 2 * 1024.0, waits=False)[0] == 2
    assert decide(8, 2, None, None, waits=False, shares=True) == (
        3, "3 variants side by side: 2 cores, and one more as they wait for the models that they share.",
    )  # fmt: skip


@pytest.mark.parametrize(("held", "more"), [("", 1), ("off", 0)])
def test_one_more_runs_where_processes_hold_the_models(tmp_path, monkeypatch, held, more):
    monkeypatch.setenv(HOST_VARIABLE, held)
    monkeypatch.setattr(machine, "free_mb", lambda: None)
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)
    five = variants("abcde")
    assert run_options.side_by_side(five, ["retrieval.mrr@5"], SimpleNamespace(path=tmp_path))[0] == 2 + more


@pytest.mark.parametrize("given", ["0", "-1", "257", "many", "1.5", "", 0])
def test_what_is_no_number_of_jobs_is_a_sentence(given):
    with pytest.raises(ConfigError, match="jobs is 'auto' or a whole number from 1 to 256"):
        as_jobs(given)
    assert (as_jobs("auto"), as_jobs("3"), as_jobs(3)) == ("auto", 3, 3)


@pytest.mark.parametrize(("quota", "most"), [("150000 100000\n", 2), ("50000 100000\n", 1)])
def test_a_container_may_allow_fewer_cores(tmp_path, monkeypatch, quota, most):
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert usable_cores() <= most
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert usable_cores() >= 1


def test_what_variants_share_is_counted_for_none_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "free_mb", lambda: 1024.0)
    for name, record in {"a": {"peak_memory_mb": 900, "held_elsewhere_mb": 700}, "b": {"peak_memory_mb": 300}}.items():
        (tmp_path / "variants" / name).mkdir(parents=True)
        (tmp_path / "variants" / name / RECORD_FILE).write_text(json.dumps(record))
    _, why = run_options.side_by_side([], [], SimpleNamespace(path=tmp_path))
    assert "1.0 GB of memory free at 0.3 GB each" in why


def variants(needs):
    return [Variant(name, name, {}, PipelineConfig()) for name in needs]


@pytest.mark.parametrize(
    ("needs", "order"),
    [
        ({}, ""),
        ({"a": "s"}, "a"),
        ({"a": "", "b": "xy", "c": "", "d": "x"}, "acdb"),  # the baseline first, then what needs nothing new
        ({"a": "s", "b": "l", "c": "s", "d": "l", "e": "s"}, "acebd"),
        ({"a": "sx", "b": "ly", "c": "lx", "d": "sx"}, "adcb"),  # a swap of one model before a swap of two
        ({"a": "s", "b": "s", "c": "s"}, "abc"),  # else the order of the plan
    ],
)
def test_variants_that_need_the_same_models_follow_each_other(needs, order):
    found = in_model_order(variants(needs), [], lambda one: frozenset(needs[one.variant_id]))
    assert "".join(one.variant_id for one in found) == order


def test_where_all_models_are_small_those_that_ask_most_begin():
    plain = {"query.rewrite": "none", "query.hyde": "none", "answer.name": "extract"}
    changes = {
        "a": {},
        "b": {"retrieval.mode": "bm25"},
        "c": {"query.hyde": "always"},
        "d": {"query.rewrite": "llm", "query.hyde": "always"},
        "e": {"rerank.final_k": 2},
        "f": {"corpus.chunk_size": 2000},
        "g": {"rerank.name": "maxsim"},
    }
    made = [Variant(v, v, {}, PipelineConfig().override({**plain, **more})) for v, more in changes.items()]
    found = in_model_order(made, [], lambda one: {"llamacpp:smollm2"})
    assert "".join(one.variant_id for one in found) == "dcgfabe"
    found = in_model_order(made, [], lambda one: {"transformers:Qwen/Qwen3-8B"})
    assert "".join(one.variant_id for one in found) == "abcdefg"


@pytest.mark.parametrize(
    ("models", "small"),
    [
        (set(), True),
        ({"sentence_transformers:minilm", "llamacpp:smollm2?context=512"}, True),
        ({"sentence_transformers:minilm", "transformers:Qwen/Qwen3-8B"}, False),  # not here: nobody knows
        ({"llamacpp:nonsense"}, False),
    ],
)
def test_models_are_small_where_their_weights_are_here_and_are_few(models, small, monkeypatch):
    assert are_small(models) is small
    monkeypatch.setattr(run_options, "_SMALL_MB", 10)
    assert are_small(models) is (not models)


def test_models_here_are_those_whose_weights_are_loaded_and_others_are_asked_of_servers():
    changes = {
        "models.generation": "openai:gpt-4o-mini | transformers:smollm2",
        "models.embedding": "sentence_transformers:minilm",
        "models.cross_encoder": "tei:BAAI/bge-reranker-v2-m3?base_url=http://gpu:8080",
        "rerank.name": "cross_encoder",
        "query.hyde": "none",
        "query.rewrite": "none",
        "answer.name": "llm",
    }
    variant = Variant("v", "v", {}, PipelineConfig().override(changes))
    assert models_of(variant, [], served=False) == {"transformers:smollm2", "sentence_transformers:minilm"}
    assert models_of(variant, [], served=True) == {"openai:gpt-4o-mini", changes["models.cross_encoder"]}
    mine = Variant("m", "m", {}, PipelineConfig().override({**changes, "models.generation": "my_module:Model"}))
    assert models_of(mine, [], served=False) == {"sentence_transformers:minilm"}
    here = {**changes, "models.generation": "llamacpp:smollm2 | transformers:smollm2", "rerank.name": "none"}
    assert models_of(Variant("h", "h", {}, PipelineConfig().override(here)), [], served=True) == set()


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
    (generate,) = (row for row in spending_rows(run) if row["purpose"] == "generate")
    assert generate["calls_estimated"] == generate["calls_spent"] == 8
    assert generate["tokens_spent"] == n_tokens
    assert generate["minutes_spent"] > 0
    assert "generate" in {row["purpose"] for row in run.manifest()["spent"]}
    rows = {row.purpose: row for row in estimate(plan(path)).rows}
    assert (rows["generate"].calls, rows["generate"].remembered) == (0, 8)
    rates = read_rates(home())
    assert rates["generate", plan(path).variants[0].config.models.generation].n == 8
