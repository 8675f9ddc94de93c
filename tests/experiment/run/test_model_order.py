import pytest

from rag_lab.config import PipelineConfig
from rag_lab.experiment.design import Variant
from rag_lab.experiment.run import model_order
from rag_lab.experiment.run.model_order import are_small, in_model_order, local_models


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
    monkeypatch.setattr(model_order, "_SMALL_MB", 10)
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
