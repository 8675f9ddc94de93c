"""How many variants run side by side where that is left to the machine, and in which order."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab._kit import machine
from rag_lab._kit.machine import usable_cores
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.experiment.design import Variant
from rag_lab.experiment.run import run_options
from rag_lab.experiment.run.run_options import GUESSED_MB, are_small, as_jobs, decide, in_model_order, local_models
from rag_lab.runs.run_folder import RECORD_FILE


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
    monkeypatch.setattr(run_options, "free_mb", lambda: 1024.0)
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


def test_where_all_models_are_small_those_that_ask_most_follow_the_baseline():
    plain = {"query.rewrite": "none", "query.hyde": "none", "answer.name": "extract"}
    changes = {
        "a": {},
        "b": {"retrieval.mode": "bm25"},
        "c": {"query.hyde": "always"},
        "d": {"query.rewrite": "llm", "query.hyde": "always"},
        "e": {"rerank.final_k": 2},
    }
    made = [Variant(v, v, {}, PipelineConfig().override({**plain, **more})) for v, more in changes.items()]
    found = in_model_order(made, [], lambda one: {"llamacpp:smollm2"})
    assert "".join(one.variant_id for one in found) == "adcbe"
    found = in_model_order(made, [], lambda one: {"transformers:Qwen/Qwen3-8B"})
    assert "".join(one.variant_id for one in found) == "abcde"


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


def test_local_models_are_those_whose_weights_are_loaded_here():
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
    assert local_models(variant, []) == {"transformers:smollm2", "sentence_transformers:minilm"}
    mine = Variant("m", "m", {}, PipelineConfig().override({**changes, "models.generation": "my_module:Model"}))
    assert local_models(mine, []) == {"sentence_transformers:minilm"}
