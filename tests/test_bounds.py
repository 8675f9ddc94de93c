"""Whatever a configuration says, it costs no more than it can be meant to: numbers, YAML and plans have bounds."""

import tracemalloc
from dataclasses import replace

import pytest
import yaml
from small_dataset import write_dataset

from rag_lab._kit.config_file import MAX_BYTES, parse_yaml, read_mapping
from rag_lab.config import PipelineConfig
from rag_lab.corpus.folder import list_files
from rag_lab.corpus.rules import ATTRIBUTES_FILE
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError, DatasetError, ModelError
from rag_lab.experiment import plan as planning
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.design import ExperimentError, expand
from rag_lab.experiment.forecast.work import counted_tokens, stand_ins
from rag_lab.models.providers import MODEL_KINDS, parse_options, providers_of
from rag_lab.records import Question, Trace

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)


VALUES = [10**30, 10**9, 10**5000, -1, float("inf"), float("nan"), "1e30", [1] * 10**5]


def numbers(schema, where=()):
    """Yield the place and the bounds of every number that a schema allows."""
    if isinstance(schema, dict):
        if schema.get("type") in ("integer", "number"):
            yield ".".join(where), schema
        for key, value in schema.items():
            if key != "default":
                yield from numbers(value, (*where, key))
    elif isinstance(schema, list):
        for value in schema:
            yield from numbers(value, where)


@pytest.mark.parametrize("model", [PipelineConfig, ExperimentConfig])
def test_every_number_has_a_lowest_and_a_highest_value(model):
    found = dict(numbers(model.model_json_schema()))
    assert len(found) > 25
    for where, schema in found.items():
        assert schema.keys() & {"minimum", "exclusiveMinimum"}, where
        assert schema.keys() & {"maximum", "exclusiveMaximum"}, where


@pytest.mark.parametrize(
    "value", ['!!int ""', '!!float ""', '!!bool "x"', '!!timestamp "x"', f"{'1:' * 300}1.5", "!!map [a]"]
)
def test_a_yaml_value_that_is_not_what_it_promises_is_a_sentence(tmp_path, value):
    (tmp_path / "x.yaml").write_text(f"a: {value}\n")
    with pytest.raises(ConfigError, match="not of the type that its tag or its form promises"):
        read_mapping(tmp_path / "x.yaml")


@pytest.mark.parametrize(
    "provider", [each for kind in MODEL_KINDS for each in providers_of(kind).values()], ids=lambda p: p.example
)
def test_every_number_of_a_model_name_has_a_highest_value(provider):
    for name, option in provider.options.items():
        if option.kind in (int, float):
            for value in ("1e30", str(10**30), str(10**9), "9" * 5000):
                with pytest.raises(ModelError, match="and at most") as caught:
                    parse_options(f"{name}={value}", provider.options)
                assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", VALUES, ids=map(str, range(len(VALUES))))
@pytest.mark.parametrize("key", ["answer.context_tokens", "retrieval.dense_weight", "seed"])
def test_an_impossible_number_is_one_short_sentence(key, value):
    if (key, value) == ("seed", 10**9):
        return  # a seed may be so large
    with pytest.raises(ConfigError, match=f"^{key}: must be") as caught:
        PipelineConfig().override({key: value})
    assert len(str(caught.value)) < 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAUGHS, "more than 200,000 values, counting what aliases repeat"),
        ("a: &a {x: 1}\n" + "b: &b {<<: [*a, *a]}\n" + "c: [" + "*b, " * 90_000 + "]", "more than 200,000 values"),
        ("a: &a [*a]", "an alias names what it stands in"),
        ("[" * 60 + "]" * 60, "more than 50 deep"),
        ("[" * 5000 + "]" * 5000, "more than 50 deep"),
        ("[" * 200_000, "more than 50 deep"),  # C would end the process
        ("a: " + "x" * MAX_BYTES, f"more than {MAX_BYTES:,} bytes"),
        ("a: 0x" + "f" * 10_000, None),
    ],
    ids=["laughs", "merged", "itself", "deep", "deeper", "deepest", "long", "digits"],
)
def test_yaml_that_would_take_all_memory_is_refused(tmp_path, text, said):
    (tmp_path / "x.yaml").write_text(text)
    if said:
        with pytest.raises(ValueError, match=said):
            parse_yaml(text)
        with pytest.raises(ConfigError, match=said):
            read_mapping(tmp_path / "x.yaml")
    with pytest.raises(ConfigError):
        PipelineConfig.load(tmp_path / "x.yaml")


def test_aliases_that_repeat_little_are_welcome():
    assert parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]")["b"] == {"x": 1, "y": 2}


@pytest.mark.parametrize("name", ["dataset.yaml", ATTRIBUTES_FILE])
def test_a_datasets_own_files_have_the_same_bounds(tmp_path, name):
    folder = write_dataset(tmp_path)
    (folder / name).write_text(LAUGHS)
    with pytest.raises((DatasetError, ConfigError), match="counting what aliases repeat"):
        list_files(Dataset.load(folder).corpus_dir)


def test_a_grid_too_large_is_counted_and_not_made():
    factors = {f"models.{name}": [f"p:{n}" for n in range(1000)] for name in ("embedding", "hyde", "generation")}
    tracemalloc.start()
    with pytest.raises(ExperimentError, match=r"1,000,000,000 variants, and at most 1,000 are allowed; .*one_factor"):
        expand(PipelineConfig(), factors, "grid")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()
    with pytest.raises(ExperimentError, match="2,998 variants, and at most 1,000"):
        expand(PipelineConfig(), factors, "one_factor")


def test_a_plan_too_large_is_one_sentence(tmp_path, monkeypatch):
    write_dataset(tmp_path)
    path = tmp_path / "e.yaml"
    data = {"name": "n", "question": "q", "dataset": str(tmp_path / "small"), "repeats": 3}
    path.write_text(yaml.safe_dump(data | {"base": {"answer": {"name": "none"}}}))
    monkeypatch.setattr(planning, "MAX_ASKED", 8)
    with pytest.raises(ExperimentError, match="1 variants x 3 questions x 3 repeats = 9 times, and at most 8"):
        planning.plan(path)
    monkeypatch.setattr(planning, "MAX_ASKED", 9)
    assert planning.plan(path)


def test_stand_ins_take_no_memory_by_the_budget():
    config = PipelineConfig().override({"answer.context_tokens": 2_000_000, "rerank.final_k": 10})
    trace = Trace(Question("q", "why?"))
    found = replace(trace, **stand_ins(trace, ["passages", "hypothetical", "raw_text"], config))
    text = f"Passages: {' '.join(passage.text for passage in found.passages)}"
    assert len(text) < 1000
    assert counted_tokens(text) == counted_tokens("Passages:") + 2_000_000
