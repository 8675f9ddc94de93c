import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.errors import ConfigError
from rag_lab.experiment.run.variant_work import NAMES, from_parameters, parameters_in, to_parameters
from rag_lab.records import QUERY_CLASSES

pytestmark = pytest.mark.slow

configs = st.builds(
    lambda **changes: PipelineConfig().override({key.replace("__", "."): value for key, value in changes.items()}),
    query__hyde=st.sampled_from(["none", "always", "classified"]),
    query__class_to_hyde=st.fixed_dictionaries({name: st.booleans() for name in QUERY_CLASSES}),
    rerank__final_k=st.integers(1, 100),
    answer__thinking=st.booleans(),
    models__generation=st.sampled_from(["llamacpp:smollm2", "openai:llama3.2:3b?concurrency=2"]),
    answer__temperature=st.floats(0, 2),
)


@given(configs)
@settings(deadline=None)
def test_parameters_and_the_rest_give_the_configuration_back(config):
    assert from_parameters(config, to_parameters(config)) == config


@given(configs, configs)
@settings(deadline=None)
def test_parameters_win_over_what_they_are_put_into(base, config):
    merged = from_parameters(base, to_parameters(config)).flat()
    named = set(NAMES.values())
    assert merged == {key: (config if key in named else base).flat()[key] for key in dotted_keys()}


def test_all_values_are_scalars_that_papermill_can_inject():
    assert all(isinstance(value, str | int | float | bool) for value in to_parameters(PipelineConfig()).values())


def test_classes_are_separated_by_commas_and_none_is_a_choice():
    config = from_parameters(PipelineConfig(), {"CLASS2HYDE": " fuzzy ,creative,"})
    assert [name for name, gets_it in config.query.class_to_hyde.items() if gets_it] == ["fuzzy", "creative"]
    assert not any(from_parameters(PipelineConfig(), {"CLASS2HYDE": ""}).query.class_to_hyde.values())


def test_every_mistake_is_named_at_once():
    with pytest.raises(ConfigError) as error:
        from_parameters(PipelineConfig(), {"FINALK": 3, "CLASS2HYDE": "fuzy", "USE_HYDE": "never", "FINAL_K": 0})
    for word in ("'FINALK'", "'FINAL_K'?", "'fuzy'", "query.hyde", "rerank.final_k"):
        assert word in str(error.value)


def test_only_the_known_names_are_read_from_a_notebook():
    assert parameters_in({"FINAL_K": 3, "DATASET": "x", "_": 1}) == {"FINAL_K": 3}
