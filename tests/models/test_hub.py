"""A model of the hub is the same before its first download, after it, and when the hub has moved on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.loopback_hub import FIRST, loopback_hub
from tests.small_dataset import write_dataset
from tests.tiny_models import make_tiny_thinker

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
IDENTITIES = """
import json, sys, time, urllib.request
from rag_lab.errors import ModelError
from rag_lab.models import weights
from rag_lab.models.local.sentence_transformers import CrossEncoderScorer

def look():
    weights._hub_revision.cache_clear()  # as in another process
    scorer = CrossEncoderScorer("lab/tiny")
    before = scorer.identity()["weights"]
    scores = scorer.score([("what pressure", "the press runs at 140 bar .")])
    weights._hub_revision.cache_clear()
    return [before, scorer.identity()["weights"], scores]

def refused(name):
    try:
        weights.find(name).digest()
    except ModelError as error:
        return str(error)

time.sleep = lambda seconds: None  # the library's waits between its attempts
first, none = look(), refused("lab/none")
urllib.request.urlopen(sys.argv[1] + "/move").read()
second = look()
urllib.request.urlopen(sys.argv[1] + "/stop").read()
print(json.dumps([first, second, look(), none, refused("lab/other")]))
"""


def printed(code, hub, home, *arguments):
    """What a process prints at its end that has its home there and knows this hub."""
    settings = {"HF_ENDPOINT": hub, "HF_HOME": str(home / "hf"), "RAG_LAB_HOME": str(home / "home"),
                "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}  # fmt: skip
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def seen(tiny_cross_encoder, tmp_path_factory):
    home = tmp_path_factory.mktemp("hub")
    with loopback_hub({"lab/tiny": tiny_cross_encoder}) as url:
        return printed(IDENTITIES, url, home, url)


def test_the_identity_before_the_download_is_the_one_after(seen):
    before, after, _ = seen[0]
    assert before == after == f"hub:lab/tiny@{FIRST}"


def test_what_was_downloaded_is_what_is_used_when_the_hub_has_moved_on_or_is_down(seen):
    assert seen[1] == seen[2] == seen[0]


def test_what_the_hub_cannot_say_is_one_sentence(seen):
    unknown, unreachable = seen[3:]
    assert "Cannot load 'lab/none' from the model hub" in unknown
    assert "there is none of this name, or HF_TOKEN may not read it" in unknown
    assert "Cannot load 'lab/other' from the model hub" in unreachable
    assert "it needs the network or an earlier download" in unreachable
    assert not any("\n" in sentence for sentence in seen[3:])


SWEEP = """
import json, sys
from pathlib import Path
import pytest
from rag_lab.experiment.run.sweep import sweep

sys.path.append(sys.argv[3])
from small_plans import run_jobs_here

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
            hub = url if name != "after" else "http://127.0.0.1:9"
            # Not by the name `tests`: installed packages bring a module of this name.
            done.append(printed(SWEEP, hub, folder, folder / "experiment.yaml", folder / name, TESTS))
    return done


COSTLY = {"understand", "rerank", "generate"}


def test_the_first_sweep_computes_with_every_model(sweeps):
    computed = {stage for _, stage, remembered in sweeps[0] if not remembered}
    assert computed >= COSTLY


@pytest.mark.parametrize("again", [1, 2])
def test_the_same_sweep_after_the_download_computes_nothing_twice(sweeps, again):
    twice = [record for record in sweeps[again] if record[1] in COSTLY and not record[2]]
    assert twice == []
    assert len(sweeps[again]) == len(sweeps[0])
