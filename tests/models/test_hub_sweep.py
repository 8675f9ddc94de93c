"""A sweep of models that nobody has downloaded yet, and the same sweep again: nothing is computed twice."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml

from tests.loopback_hub import loopback_hub
from tests.small_dataset import write_dataset
from tests.tiny_models import make_tiny_thinker

pytestmark = pytest.mark.slow

SWEEP = """
import json, sys
from pathlib import Path
import pytest
from rag_lab.experiment.run.sweep import sweep
from tests.small_plans import run_jobs_here

with pytest.MonkeyPatch.context() as patch:
    run_jobs_here(patch)
    run = sweep(Path(sys.argv[1]), Path(sys.argv[2]), progress=False)
records = [
    (variant.variant_id, record)
    for variant in run.variants for trace in run.traces(variant.variant_id) for record in trace.stages
]
print(json.dumps([[name, r.stage, r.remembered] for name, r in records if r.reason != "off"]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_cross_encoder):
    folder = tmp_path_factory.mktemp("hub_sweep")
    write_dataset(folder)
    _embedder(tiny_cross_encoder, folder / "embedder")
    make_tiny_thinker(folder / "thinker", context=16_384)  # a byte a token: prompts are long
    experiment = {
        "name": "small",
        "question": "Does it help?",
        "dataset": str(folder / "small"),
        "base": {
            "models": {
                "embedding": "sentence_transformers:lab/embedder",
                "cross_encoder": "sentence_transformers:lab/reranker",
                "generation": "transformers:lab/thinker?device=cpu",
                "understanding": "transformers:lab/thinker?device=cpu",
                "hyde": "transformers:lab/thinker?device=cpu",
            },
            "answer": {"max_tokens": 16, "context_tokens": 64},
            "query": {"rewrite": "llm", "hyde": "none"},
        },
        "factors": {"rerank.name": ["none", "cross_encoder"]},
        "metrics": ["retrieval.mrr@10", "cost.tokens"],
        "limits": {"answers": 2},
    }
    (folder / "experiment.yaml").write_text(yaml.safe_dump(experiment))
    return folder


def _embedder(bert, folder):
    """Write an embedding model around a BERT to `folder`."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    inner = Transformer(str(bert), max_seq_length=64)
    SentenceTransformer(modules=[inner, Pooling(inner.get_embedding_dimension())], device="cpu").save(str(folder))


@pytest.fixture(scope="module")
def sweeps(folder, tiny_cross_encoder):
    """What each stage of each question did: before the download, after it without a hub, and once it was deleted."""
    models = {
        "lab/embedder": folder / "embedder",
        "lab/reranker": tiny_cross_encoder,
        "lab/thinker": folder / "thinker",
    }
    done = []
    for name in ("before", "after", "deleted"):
        if name == "deleted":
            shutil.rmtree(folder / "hf")
        with loopback_hub(models) as url:
            done.append(_sweep(folder, name, url if name != "after" else "http://127.0.0.1:9"))
    return done


def _sweep(folder, name, url):
    settings = {
        "HF_ENDPOINT": url,
        "HF_HOME": str(folder / "hf"),
        "RAG_LAB_HOME": str(folder / "home"),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", SWEEP, str(folder / "experiment.yaml"), str(folder / name)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


COSTLY = {"understand", "rerank", "generate"}


def test_the_first_sweep_computes_with_every_model(sweeps):
    computed = {stage for _, stage, remembered in sweeps[0] if not remembered}
    assert computed >= COSTLY


@pytest.mark.parametrize("again", [1, 2])
def test_the_same_sweep_after_the_download_computes_nothing_twice(sweeps, again):
    twice = [record for record in sweeps[again] if record[1] in COSTLY and not record[2]]
    assert twice == []
    assert len(sweeps[again]) == len(sweeps[0])
