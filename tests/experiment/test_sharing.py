from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.experiment.design import expand
from rag_lab.experiment.sharing import STEPS, stage_uses


def uses(factors, design="one_factor", questions=10, answered=4, repeats=1):
    base = PipelineConfig().override({"query.rewrite": "none", "query.hyde": "none"})
    configs = [variant.config for variant in expand(base, factors, design).variants]
    return {use.stage: use for use in stage_uses(configs, questions, answered, repeats)}


def test_every_parameter_belongs_to_a_stage():
    assert {key for step in STEPS for key in step.keys} == set(dotted_keys())


def test_a_reranker_shares_all_that_comes_before_it():
    found = uses({"rerank.name": ["none", "query_likelihood"]})
    assert (found["index"].variants, found["index"].distinct) == (2, 1)
    assert found["retrieve"].distinct == 1
    assert (found["rerank"].variants, found["rerank"].distinct) == (1, 1)
    assert found["rerank"].calls == 10 * 20
    assert found["generate"].distinct == 2


def test_modules_that_are_off_are_not_counted():
    assert uses({})["understand"].variants == 0
    assert uses({})["hyde"].calls == 0
    assert uses({"answer.name": ["none"]})["generate"].calls == 0


def test_calls_grow_with_questions_answers_and_repeats():
    found = uses({"query.rewrite": ["none", "llm"]}, questions=10, answered=4, repeats=3)
    assert found["understand"].calls == 10 * 3
    assert found["generate"].calls == 2 * 4 * 3
