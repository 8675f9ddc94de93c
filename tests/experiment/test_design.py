import re
from itertools import product

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from small_dataset import write_dataset

from rag_lab._kit.registry import modules_from
from rag_lab.config import PipelineConfig
from rag_lab.experiment.built_in_designs import grid, one_factor
from rag_lab.experiment.design import MAX_VARIANTS, ExperimentError, Wanted, expand, expand_list
from rag_lab.experiment.plan import plan
from rag_lab.testing import DesignContract

FACTORS = {
    "query.hyde": st.sampled_from(["none", "always", "classified"]),
    "query.rewrite": st.sampled_from(["none", "llm"]),
    "rerank.name": st.sampled_from(["none", "cross_encoder", "query_likelihood"]),
    "rerank.final_k": st.integers(1, 100),
    "answer.temperature": st.floats(0, 2),
    "answer.thinking": st.booleans(),
    "models.hyde": st.from_regex(r"[a-z]{1,8}:[A-Za-z0-9/.:-]([A-Za-z0-9/ .:-]{0,38}[A-Za-z0-9/.:-])?", fullmatch=True),
    "models.generation": st.from_regex(
        r"[a-z]{1,8}:[A-Za-z0-9/.:-]([A-Za-z0-9/ .:-]{0,38}[A-Za-z0-9/.:-])?", fullmatch=True
    ),
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


class TestGrid(DesignContract):
    def make(self):
        return grid


class TestOneFactor(DesignContract):
    def make(self):
        return one_factor


MINE = """
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

CALLS = count()

@dataclass(frozen=True)
class Corners:
    middle: bool = False
    version: ClassVar[int] = 1

    def __call__(self, base, factors):
        first = {key: values[0] for key, values in factors.items()}
        last = {key: values[-1] for key, values in factors.items()}
        between = [{key: values[1] for key, values in factors.items()}] if self.middle else []
        return [first, *between, last]

def around_the_base(base, factors):
    return [{}, {"rerank.final_k": base["rerank.final_k"] + 1}, {}, base | {"query.hyde": "always"}]

def number(base, factors): return 7
def texts(base, factors): return [{}, "rerank.final_k"]
def empty(base, factors): return []
def unknown(base, factors): return [{}, {"rerank.nmae": "none", 3: 4}]
def impossible(base, factors): return [{}, {"rerank.final_k": 0}, {"rerank.final_k": 0, "query.hyde": "always"}]
def many(base, factors): return [{"seed": n} for n in range(1001)]
def raises(base, factors): return factors["query.hyde"][9]
def never_the_same(base, factors): return [{"seed": next(CALLS)}]
"""
VARIED = {"query.hyde": ["none", "always"], "rerank.final_k": [5, 3, 8]}


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    with modules_from(tmp_path):
        yield tmp_path


def test_a_design_of_ones_own_says_which_variants_there_are(mine):
    corners = expand(PipelineConfig(), VARIED, "mine:Corners")
    assert [v.variant_id for v in corners.variants] == ["baseline", "hyde-always__final_k-8"]
    assert (
        len(expand(PipelineConfig(), VARIED | {"query.hyde": ["none"] * 2}, "mine:Corners?middle=true").variants) == 3
    )
    around = expand(PipelineConfig(), {}, "mine:around_the_base")
    assert [v.variant_id for v in around.variants] == ["baseline", "final_k-6", "hyde-always"]
    assert around.notices == ("{} is the same pipeline as baseline and is run once.",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("number", "the design 'mine:number' returned int where a list of changes is due"),
        ("texts", "returned 'rerank.final_k' as variant 2, where dotted keys with values are due"),
        ("empty", "returned no variants; the first is the baseline"),
        ("unknown", "Unknown parameter 'rerank.nmae'.*did you mean 'rerank.name'.*\n.*Unknown parameter '3'"),
        ("impossible", "^factors: rerank.final_k.* got 0"),
        ("many", "has 1,001 variants, and at most 1,000 are allowed"),
        ("raises", "the design 'mine:raises' raised IndexError: list index out of range"),
        ("never_the_same", r"mine\.py\) says that it is deterministic, and its second run differs"),
        ("gone", "The design 'mine:gone' is not there"),
    ],
)
def test_what_a_design_does_wrong_is_one_sentence(mine, name, said):
    with pytest.raises(ExperimentError, match=said):
        expand(PipelineConfig(), VARIED, f"mine:{name}")


def test_a_design_is_found_beside_its_experiment_and_its_faults_are_told_with_all_others(mine):
    write_dataset(mine)
    asked = {"name": "e", "question": "q", "dataset": "./small", "factors": VARIED, "design": "mine:Corners"}
    path = mine / "e.yaml"
    path.write_text(yaml.safe_dump(asked | {"dataset": str(mine / "small")}))
    planned = plan(path)
    assert [v.variant_id for v in planned.variants] == ["baseline", "hyde-always__final_k-8"]
    path.write_text(yaml.safe_dump(asked | {"design": "mine:empty", "metrics": ["foo"]}))
    with pytest.raises(ExperimentError) as error:
        plan(path)
    assert any(problem.startswith("design: the design 'mine:empty'") for problem in error.value.problems)
    assert any("foo" in problem for problem in error.value.problems)
    path.write_text(yaml.safe_dump(asked | {"design": "gird"}))
    with pytest.raises(
        ExperimentError, match=r"design: must be grid, one_factor, fractional, .*list or one of your own.*mean grid"
    ):
        plan(path)


RULED = {
    "query.hyde": ["none", "always", "classified"],
    "retrieval.hyde_k": [10, 20],
    "query.hyde_max_tokens": [128, 64],
    "rerank.final_k": [5, 3],
}
allowed = st.fixed_dictionaries(
    {
        "retrieval.hyde_k": st.fixed_dictionaries(
            {"query.hyde": st.lists(st.sampled_from(RULED["query.hyde"]), min_size=1, unique=True)}
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
    expansion = expand(PipelineConfig(), RULED, design, wanted)
    for variant in expansion.variants:
        flat = variant.config.flat()
        for key, others in rules.items():
            if any(flat[other] not in values for other, values in others.items()):
                assert flat[key] == RULED[key][0]
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
        expand(PipelineConfig(), RULED, "grid", Wanted(only_if=rules))
