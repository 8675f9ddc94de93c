import pytest

from rag_lab.config import PipelineConfig
from rag_lab.experiment.design import Variant
from rag_lab.experiment.run.model_order import in_model_order, local_models


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


def test_local_models_are_those_whose_weights_are_loaded_here():
    changes = {
        "models.generation": "openai:gpt-4o-mini | transformers:smollm2",
        "models.embedding": "sentence_transformers:minilm",
        "models.cross_encoder": "tei:BAAI/bge-reranker-v2-m3?base_url=http://gpu:8080",
        "rerank.name": "cross_encoder",
        "query.hyde": "none",
        "query.rewrite": "none",
    }
    variant = Variant("v", "v", {}, PipelineConfig().override(changes))
    assert local_models(variant, []) == {"transformers:smollm2", "sentence_transformers:minilm"}
    mine = Variant("m", "m", {}, PipelineConfig().override({**changes, "models.generation": "my_module:Model"}))
    assert local_models(mine, []) == {"sentence_transformers:minilm"}
