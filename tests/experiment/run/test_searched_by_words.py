"""A variant that searches by words loads no model, embeds nothing, and assembles no context that nobody reads."""

import json
import subprocess
import sys

import pytest

from rag_lab.config import PipelineConfig
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
