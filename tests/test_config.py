import random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from small_dataset import write_dataset

from rag_lab._kit.config_file import read_mapping
from rag_lab._kit.digest import digest
from rag_lab.cli.shared_options import open_pipeline
from rag_lab.config import PIPELINE_FILE, PipelineConfig, choices_of, config_of, dotted_keys, nested
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError
from rag_lab.experiment.config import checkout_file
from rag_lab.experiment.new_project import Asked
from rag_lab.notebook.bench.bench import Bench
from rag_lab.pipeline import Pipeline


def test_every_key_can_be_read_back_and_overridden_with_its_own_value():
    config = PipelineConfig()
    flat = config.flat()
    assert list(flat) == dotted_keys()
    assert config.override(flat) == config


def test_yaml_round_trip(tmp_path):
    config = PipelineConfig().override({"rerank.name": "query_likelihood", "query.class_to_hyde": ALL_ON})
    path = tmp_path / "c.yaml"
    path.write_text(config.to_yaml())
    assert PipelineConfig.load(path) == config


ALL_ON = dict.fromkeys(["specific", "fuzzy", "comparative", "procedural", "creative"], True)
OTHERS = {
    "answer.temperature": 0.5,
    "corpus.chunk_tokens": 64,
    "corpus.readers": {".log": "text"},
    "query.class_to_hyde": ALL_ON,
    "query.temperature": 0.5,
    "retrieval.analyzer": "english",
    "store.url": "http://localhost:8000",
}


def another(key, value):
    """Return a value that a key may have in place of `value`; any name of a module or model has a colon."""
    if key in OTHERS or key.startswith("prompts."):
        return OTHERS.get(key, "mine.j2")
    if choices := choices_of(key, value):
        return choices[0]
    if isinstance(value, str):
        return "openai:another"
    if value is None:
        return 1
    return value / 2 if isinstance(value, float) else value + 1


@pytest.mark.parametrize("key", dotted_keys())
def test_identity_changes_with_every_key(key):
    base = PipelineConfig().override({"store.name": "qdrant"})  # which has a server, and vectors of other kinds
    assert base.override({key: another(key, base.flat()[key])}).identity != base.identity


@given(st.randoms())
def test_identity_does_not_depend_on_key_order(shuffler: random.Random):
    data = PipelineConfig().model_dump()
    keys = list(data)
    shuffler.shuffle(keys)
    assert PipelineConfig.parse({key: data[key] for key in keys}).identity == PipelineConfig().identity
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_class_order_does_not_matter():
    backwards = dict(reversed(list(PipelineConfig().query.class_to_hyde.items())))
    assert PipelineConfig().override({"query.class_to_hyde": backwards}) == PipelineConfig()


def test_every_problem_is_named_at_once():
    with pytest.raises(ConfigError) as error:
        PipelineConfig().override({"rerank.nam": "x", "retrieval.base_kk": 3})
    assert "did you mean 'rerank.name'" in str(error.value)
    assert "did you mean 'retrieval.base_k'" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"rerank.name": "magic"},
            "must be none, cross_encoder, query_likelihood, maxsim or one of your own as module:Class, got 'magic'",
        ),
        ({"corpus.chunk_overlap": 800}, "chunk_overlap must be smaller than chunk_size (800)"),
        ({"corpus.overlap_words": 100}, "overlap_words must be smaller than chunk_words (100)"),
        ({"prompts.hyde": "short.txt"}, "prompts.hyde: must be builtin, a .j2 file beside the experiment"),
        ({"prompts.answer": "../other/mine.j2"}, "prompts.answer: must be builtin, a .j2 file"),
        (
            {"retrieval.diversity": "mmr", "retrieval.fetch_k": 9},
            "fetch_k must be at least base_k (20), among which mmr chooses",
        ),
        ({"retrieval.base_k": 0}, "retrieval.base_k: must be greater than or equal to 1, got 0"),
        ({"retrieval.dense_weight": float("inf")}, "retrieval.dense_weight: must be a finite number, got inf"),
        ({"rerank.blend": 1e308}, "must be less than or equal to 1000000"),
        ({"models.generation": "gpt"}, "a model is named provider:name, got 'gpt'"),
        ({"query.class_to_hyde": {"fuzzy": True}}, "missing: specific, comparative, procedural, creative"),
    ],
)
def test_impossible_values_are_one_sentence(changes, sentence):
    with pytest.raises(ConfigError) as error:
        PipelineConfig().override(changes)
    assert sentence in str(error.value)


def test_unknown_keys_in_a_file_are_refused(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump({"rerank": {"nmae": "none"}, "retreival": {}}))
    with pytest.raises(ConfigError) as error:
        PipelineConfig.load(path)
    assert "rerank.nmae" in str(error.value)
    assert "retreival" in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- a\n- b\n", "not a list"),
        ("a: [", "line 1: expected the node content"),
        ("\xff", "utf-8"),
        ("[" * 5000, "nest them less"),
        ("seed: 2024-13-45", "month must be in 1..12"),
        ("a: 1\nb: 2\na: 3\n", "line 3: the key 'a' stands twice"),
        ("a:\n  5: x\n", "line 2: the key 5 is not text; quote it"),
        ('a: "\\ud800"', "surrogates"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
    ],
)
def test_a_file_that_is_no_mapping_is_one_sentence(tmp_path, text, reason):
    path = tmp_path / "c.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as error:
        read_mapping(path)
    assert str(path) in str(error.value) and reason in str(error.value)
    assert "\n" not in str(error.value)


@pytest.fixture
def chosen(tmp_path):
    """A data set with a pipeline of its own, as `rag-lab new` leaves one."""
    folder = write_dataset(tmp_path)
    (folder / PIPELINE_FILE).write_text("corpus: {chunk_size: 321}\nretrieval: {mode: bm25}\n")
    return folder


def test_the_pipeline_of_a_data_set_is_what_is_begun_with_by_every_way_in(chosen, tmp_path):
    first = {"corpus.chunk_size": 321, "retrieval.mode": "bm25"}
    assert config_of(chosen).differing() == config_of(f"{chosen}/follow_up.jsonl").differing() == first
    assert Pipeline(str(chosen)).config == Pipeline(Dataset.load(chosen)).config == config_of(chosen)
    assert Pipeline(chosen, PipelineConfig()).config == PipelineConfig()
    settings = {"rerank.final_k": 3}
    asked = [Asked(str(chosen)), Asked(str(chosen), settings=settings), Asked(str(chosen), base="laptop")]
    assert [one.experiment().get("base") for one in asked] == [
        {"corpus": {"chunk_size": 321}, "retrieval": {"mode": "bm25"}, "answer": {"name": "none"}},
        {"corpus": {"chunk_size": 321}, "retrieval": {"mode": "bm25"}, "rerank": {"final_k": 3},
         "answer": {"name": "none"}},
        nested(_laptop().override({"answer.name": "none"}).differing()),
    ]  # fmt: skip
    assert open_pipeline(str(chosen), ["rerank.final_k=3"]).config.differing() == first | settings
    bench = Bench(chosen, name="chosen", home=tmp_path / "home")
    assert bench.config == config_of(chosen) and "set(" not in bench.as_python()
    bench.set("retrieval.mode", "hybrid")
    assert "'retrieval.mode': 'hybrid'" in bench.as_python()  # the default, and not what the data set has


@pytest.mark.parametrize(
    "text",
    ["models: {generation: 'openai:x?base_url=http://a'}", "rerank: {name: 'os:system'}", "prompts: {answer: a.j2}",
     "store: {name: qdrant, url: 'http://a'}", "corpus: {readers: {.md: 'os:system'}}"],
)  # fmt: skip
def test_a_data_set_from_anybody_names_no_modules_models_or_servers(chosen, text):
    (chosen / PIPELINE_FILE).write_text(text)
    key = text.partition(":")[0]
    with pytest.raises(ConfigError, match=rf"pipeline.yaml sets {key}\..*Set these by --set"):
        config_of(chosen)


def test_documents_without_a_pipeline_of_their_own_take_the_defaults(tmp_path):
    (tmp_path / PIPELINE_FILE).write_text("seed: 3")  # of a folder that is no data set
    assert config_of(tmp_path) == config_of("there is none") == config_of([]) == PipelineConfig()


def _laptop():
    return PipelineConfig.load(checkout_file("experiments/presets/laptop.yaml"))
