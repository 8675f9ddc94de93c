"""A model of the hub is the same before its first download, after it, and when the hub has moved on."""

import json
import os
import subprocess
import sys

import pytest

from tests.loopback_hub import FIRST, loopback_hub

pytestmark = pytest.mark.slow

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


@pytest.fixture(scope="module")
def seen(tiny_cross_encoder, tmp_path_factory):
    home = tmp_path_factory.mktemp("hub")
    with loopback_hub({"lab/tiny": tiny_cross_encoder}) as url:
        settings = {"HF_ENDPOINT": url, "HF_HOME": str(home / "hf"), "RAG_LAB_HOME": str(home), "HF_HUB_OFFLINE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", IDENTITIES, url],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


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
