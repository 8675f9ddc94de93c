"""A variant that searches by words loads no model, embeds nothing, and assembles no context that nobody reads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.errors import ConfigError
from rag_lab.experiment.run.variant_work import NAMES, from_parameters, to_parameters
from rag_lab.records import QUERY_CLASSES
from rag_lab.runs.variant_files import read_traces

OFF = {"query.rewrite": "none", "query.hyde": "none", "answer.name": "none", "rerank.name": "none"}
HEAVY = ("torch", "sentence_transformers", "transformers", "llama_cpp", "xllamacpp", "ragas", "chromadb", "tokenizers")
RUN = """
import json, sys
from pathlib import Path
from rag_lab.config import PipelineConfig
from rag_lab.experiment.run.variant_work import VariantWork
from rag_lab.pipeline import Pipeline

home, config, out = map(Path, sys.argv[1:4])
pipeline = Pipeline("plant_docs", PipelineConfig.load(config), home=home, progress=False)
asked = tuple(question.question_id for question in pipeline.dataset.questions[:20])
metrics = ("retrieval.ndcg@10", "cost.seconds")
work = VariantWork(pipeline, asked, (), metrics, metric_embedding="sentence_transformers:minilm", out=out)
work.run()
work.score()
work.save()
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize("mode", ["bm25", "tfidf"])
def test_a_sweep_by_words_loads_no_model_and_writes_no_vectors(tmp_path, mode):
    config = tmp_path / "config.yaml"
    config.write_text(PipelineConfig().override({**OFF, "retrieval.mode": mode}).to_yaml())
    home, out = tmp_path / "home", tmp_path / "out"
    command = [sys.executable, "-c", RUN, str(home), str(config), str(out)]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert set(HEAVY) & set(json.loads(ran.stdout)) == set()
    assert not list(home.rglob("vectors*"))
    traces = read_traces(out / "traces.jsonl")
    assert len(traces) == 20 and all(trace.ranked and not trace.passages for trace in traces)
    assert "context" not in {record.stage for trace in traces for record in trace.stages}
    searched = {record.stage for trace in traces for record in trace.stages if record.seconds}
    assert f"search_{mode}" in searched and searched <= {f"search_{mode}", "rewrite", "retrieve", "merge"}


TESTS = Path(__file__).parents[2]


def test_a_replayed_variant_imports_nothing_heavy(tmp_path):
    def run():
        paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
        environment = os.environ | {"RAG_LAB_HOME": str(tmp_path / "home"), "PYTHONPATH": paths}
        script = [sys.executable, str(TESTS / "replayed_variant.py"), str(tmp_path)]
        ended = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
        return ended.stdout.splitlines()[-1].split(",")

    assert {"ragas", "rouge_score"} <= set(run())
    scores = (tmp_path / "out/scores.parquet").read_bytes()
    assert run() == [""]
    assert scores and (tmp_path / "out/scores.parquet").stat().st_size > 0


configs = st.builds(
    lambda **changes: PipelineConfig().override({key.replace("__", "."): value for key, value in changes.items()}),
    query__hyde=st.sampled_from(["none", "always", "classified"]),
    query__class_to_hyde=st.fixed_dictionaries({name: st.booleans() for name in QUERY_CLASSES}),
    rerank__final_k=st.integers(1, 100),
    answer__thinking=st.booleans(),
    models__generation=st.sampled_from(["llamacpp:smollm2", "openai:llama3.2:3b?concurrency=2"]),
    answer__temperature=st.floats(0, 2),
)


@pytest.mark.slow
@given(configs)
@settings(deadline=None)
def test_parameters_and_the_rest_give_the_configuration_back(config):
    assert from_parameters(config, to_parameters(config)) == config


@pytest.mark.slow
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
