import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.experiment.design import ExperimentError, Wanted, expand

FACTORS = {
    "query.hyde": ["none", "always", "classified"],
    "retrieval.hyde_k": [10, 20],
    "query.hyde_max_tokens": [128, 64],
    "rerank.final_k": [5, 3],
}
allowed = st.fixed_dictionaries(
    {
        "retrieval.hyde_k": st.fixed_dictionaries(
            {"query.hyde": st.lists(st.sampled_from(FACTORS["query.hyde"]), min_size=1, unique=True)}
        ),
        "query.hyde_max_tokens": st.fixed_dictionaries(
            {"retrieval.hyde_k": st.lists(st.sampled_from([10, 20]), min_size=1, unique=True)}
        ),
    }
)


@given(allowed, st.sampled_from(["grid", "one_factor", "random"]))
@settings(max_examples=40, deadline=None)
def test_no_variant_of_any_design_breaks_a_rule(rules, design):
    wanted = Wanted(n=9 if design == "random" else None, only_if=rules)
    expansion = expand(PipelineConfig(), FACTORS, design, wanted)
    for variant in expansion.variants:
        flat = variant.config.flat()
        for key, others in rules.items():
            if any(flat[other] not in values for other, values in others.items()):
                assert flat[key] == FACTORS[key][0]
    assert len({v.config.identity for v in expansion.variants}) == len(expansion.variants)


def test_combinations_that_a_rule_makes_the_same_are_run_once_and_told():
    factors = {"query.hyde": ["none", "always"], "retrieval.hyde_k": [10, 20]}
    rules = {"retrieval.hyde_k": {"query.hyde": ["always"]}}
    expansion = expand(PipelineConfig(), factors, "grid", Wanted(only_if=rules))
    assert [v.variant_id for v in expansion.variants] == ["baseline", "hyde-always", "hyde-always__hyde_k-20"]
    assert expansion.notices == (
        "hyde = none, hyde_k = 20 is the same pipeline as baseline by construction and is run once: only_if lets "
        "retrieval.hyde_k vary only where query.hyde is always.",
    )
    assert expansion.same[0].changes == {"retrieval.hyde_k": 20}


def test_a_combination_that_cannot_be_is_not_made_where_a_rule_forbids_it():
    factors = {"corpus.chunk_size": [800, 100], "corpus.chunk_overlap": [50, 150]}
    with pytest.raises(ExperimentError, match="chunk_overlap must be smaller"):
        expand(PipelineConfig(), factors, "grid")
    rules = {"corpus.chunk_overlap": {"corpus.chunk_size": [800]}}
    assert len(expand(PipelineConfig(), factors, "grid", Wanted(only_if=rules)).variants) == 3


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"query.hide": {"query.hyde": ["always"]}}, "only_if: Unknown factor 'query.hide'"),
        ({"rerank.final_k": {"query.hide": ["always"]}}, "only_if.rerank.final_k: Unknown parameter 'query.hide'"),
        ({"rerank.final_k": {"query.hyde": ["never"]}}, "'never' is none of the values of query.hyde, which are none,"),
        ({"rerank.final_k": {"query.hyde": []}}, "query.hyde has no values beside which rerank.final_k varies"),
        ({"rerank.final_k": {"rerank.final_k": [5]}}, "a factor cannot wait for itself"),
        ({"rerank.final_k": {}}, "names no other key; say where it varies"),
        ({"rerank.final_k": {"answer.thinking": [True]}}, "would never vary; put answer.thinking under `factors`"),
        (
            {"rerank.final_k": {"query.hyde": ["none"]}, "query.hyde": {"rerank.final_k": [5]}},
            "the rules of query.hyde and rerank.final_k wait for each other",
        ),
    ],
)
def test_a_rule_that_cannot_hold_is_one_sentence(rules, said):
    with pytest.raises(ExperimentError, match=said):
        expand(PipelineConfig(), FACTORS, "grid", Wanted(only_if=rules))
