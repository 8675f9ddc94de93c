"""What Tab offers, asked as bash asks it: in a process of its own, with the words that stand on the line."""

import os
import shutil
import subprocess
import sys

import pytest
from small_dataset import write_dataset

from rag_lab.cli import completion
from rag_lab.cli.set_option import parse_settings
from rag_lab.config import PipelineConfig

SCRIPT = "import sys; sys.argv[0] = 'rag-lab'; from rag_lab.cli import main; main()"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_dataset(tmp_path / "datasets", "presses")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "experiments/ablation.yaml").touch()
    (tmp_path / "results/monday").mkdir(parents=True)
    (tmp_path / "results/monday/plan.json").touch()
    (tmp_path / "results/thesis").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(*words):
    told = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_RAG_LAB_COMPLETE": "complete_bash"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=os.environ | told)
    assert "Traceback" not in done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["sw"], ["sweep"]),
        (["index", "pre"], ["presses"]),
        (["ask", "why?", "--dataset", "pr"], ["presses"]),
        (["datasets", "check", "p"], ["presses"]),
        (["sweep", "m"], ["mine.yaml"]),
        (["sweep", "exp"], ["experiments/ablation.yaml"]),
        (["report", "res"], ["results/monday"]),
        (["ask", "why?", "--set", "rerank.name=n"], ["rerank.name=none"]),
        (["ask", "why?", "--set", "rerank.name=c"], ["rerank.name=cross_encoder"]),
        (["modules", "rer"], ["reranker"]),
        (["index", "nothing_has_this_name"], []),
    ],
)
def test_what_fits_is_offered(folder, words, found):
    assert [word for word in offered("rag-lab", *words) if word != "plant_docs"] == found


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_the_script_for_bash_is_one_that_bash_reads():
    script = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=os.environ | {"_RAG_LAB_COMPLETE": "source_bash"},
    ).stdout
    done = subprocess.run(["bash", "-c", f"{script}\ncomplete -p rag-lab"], capture_output=True, text=True)  # noqa: S603, S607
    assert "_rag_lab_completion" in done.stdout
    assert done.stderr == ""


def test_whatever_setting_is_offered_is_one_that_is_taken():
    offers = [setting for setting, _ in completion.settings("")]
    assert {"rerank.name=none", "answer.thinking=true", "rerank.final_k=5"} <= set(offers)
    for offer in offers:
        key = offer.partition("=")[0]
        if not key.startswith("store."):  # whose name and url belong together
            PipelineConfig().override(parse_settings([offer]))
