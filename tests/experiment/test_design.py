import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.experiment.design import MAX_VARIANTS, expand, expand_list
from rag_lab.experiment.experiment_error import ExperimentError

FACTORS = {
    "query.hyde": st.sampled_from(["none", "always", "classified"]),
    "query.rewrite": st.sampled_from(["none", "llm"]),
    "rerank.name": st.sampled_from(["none", "cross_encoder", "query_likelihood"]),
    "rerank.final_k": st.integers(1, 100),
    "answer.temperature": st.floats(0, 2),
    "answer.thinking": st.booleans(),
    "models.hyde": st.from_regex(r"[a-z]{1,8}:[A-Za-z0-9/ .:-]{1,40}", fullmatch=True),
    "models.generation": st.from_regex(r"[a-z]{1,8}:[A-Za-z0-9/ .:-]{1,40}", fullmatch=True),
}
factors = st.lists(st.sampled_from(sorted(FACTORS)), max_size=3, unique=True).flatmap(
    lambda keys: st.fixed_dictionaries({key: st.lists(FACTORS[key], min_size=1, max_size=4) for key in keys})
)
designs = st.sampled_from(["grid", "one_factor"])


@given(factors, designs)
@settings(max_examples=60, deadline=None)
def test_variants_are_distinct_and_their_ids_are_safe_names_of_folders(factors, design):
    variants = expand(PipelineConfig(), factors, design).variants
    assert len({v.config.identity for v in variants}) == len(variants)
    assert len({v.variant_id.casefold() for v in variants}) == len(variants)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,110}", v.variant_id) for v in variants)


@given(factors, designs)
@settings(max_examples=60, deadline=None)
def test_the_first_values_are_the_baseline_and_changes_lead_from_it_to_each_variant(factors, design):
    expansion = expand(PipelineConfig(), factors, design)
    first = {key: values[0] for key, values in factors.items()}
    baseline = expansion.baseline
    assert baseline.variant_id == "baseline"
    assert baseline.changes == {}
    assert baseline.config == PipelineConfig().override(first)
    for variant in expansion.variants:
        assert baseline.config.override(variant.changes) == variant.config
        assert design == "grid" or len(variant.changes) <= 1


@pytest.mark.slow
@given(factors)
@settings(max_examples=60, deadline=None)
def test_a_grid_holds_every_combination_and_says_which_are_the_same(factors):
    expansion = expand(PipelineConfig(), factors, "grid")
    wanted = [
        PipelineConfig().override(dict(zip(factors, values, strict=True))) for values in product(*factors.values())
    ]
    assert {v.config.identity for v in expansion.variants} == {config.identity for config in wanted}
    assert len(expansion.variants) + len(expansion.notices) == len(wanted)


def test_ids_are_readable():
    expansion = expand(
        PipelineConfig(), {"query.hyde": ["none", "always"], "rerank.name": ["none", "cross_encoder"]}, "grid"
    )
    assert [v.variant_id for v in expansion.variants] == [
        "baseline",
        "rerank-cross_encoder",
        "hyde-always",
        "hyde-always__rerank-cross_encoder",
    ]
    assert expansion.variants[-1].label == "hyde = always, rerank = cross_encoder"


def test_keys_with_the_same_last_part_are_told_apart():
    expansion = expand(
        PipelineConfig(), {"query.hyde": ["none", "always"], "models.hyde": ["a:b", "c:d"]}, "one_factor"
    )
    assert [v.variant_id for v in expansion.variants] == ["baseline", "query-hyde-always", "models-hyde-c-d"]


def test_a_repeated_value_is_run_once_with_a_notice():
    expansion = expand(PipelineConfig(), {"rerank.final_k": [5, 5.0, 3]}, "one_factor")
    assert [v.variant_id for v in expansion.variants] == ["baseline", "final_k-3"]
    assert "same pipeline as baseline" in expansion.notices[0]


def test_every_unknown_key_and_impossible_value_is_named_once():
    with pytest.raises(ExperimentError) as error:
        expand(
            PipelineConfig(),
            {"rerank.nmae": ["none"], "rerank.final_k": [5, 0], "query.hyde": ["none", "never"]},
            "grid",
        )
    unknown, final_k, hyde = error.value.problems
    assert "rerank.nmae" in unknown and "did you mean 'rerank.name'" in unknown
    assert final_k.startswith("rerank.final_k") and "got 0" in final_k
    assert hyde.startswith("query.hyde") and "'never'" in hyde


def test_a_combination_can_be_impossible_where_its_values_are_not():
    factors = {"corpus.chunk_size": [800, 100], "corpus.chunk_overlap": [50, 150]}
    assert len(expand(PipelineConfig(), factors, "one_factor").variants) == 3
    with pytest.raises(ExperimentError, match="chunk_overlap must be smaller"):
        expand(PipelineConfig(), factors, "grid")


def test_a_value_may_depend_on_the_other_factors():
    factors = {"corpus.chunk_overlap": [50, 20], "corpus.chunk_size": [100, 200]}  # 100 alone does not go with 150
    assert len(expand(PipelineConfig(), factors, "grid").variants) == 4


def test_a_design_without_end_is_refused_quickly():
    with pytest.raises(ExperimentError, match=f"{MAX_VARIANTS:,}"):
        expand(PipelineConfig(), {"rerank.final_k": range(1, 90), "seed": range(10_000)}, "grid")


def test_a_list_runs_each_pipeline_under_its_name_the_first_as_baseline():
    plain = PipelineConfig().override({"query.rewrite": "none"})
    pipelines = {"plain": plain, "words": plain.override({"retrieval.mode": "bm25"}), "again": plain}
    expansion = expand_list(pipelines)
    assert [v.variant_id for v in expansion.variants] == ["plain", "words"]
    assert expansion.baseline.config == plain
    assert expansion.variants[1].changes == {"retrieval.mode": "bm25"}
    assert expansion.notices == ("again is the same pipeline as plain and is run once.",)


def test_an_empty_list_is_refused():
    with pytest.raises(ExperimentError, match="at least one"):
        expand_list({})
