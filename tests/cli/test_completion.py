"""What Tab offers, asked as bash asks it: in a process of its own, with the words that stand on the line."""

import os
import shutil
import subprocess
import sys

import pexpect
import pytest
from small_dataset import write_dataset

from rag_lab.cli import completion
from rag_lab.cli.completion import whole_words
from rag_lab.cli.shared_options import parse_settings
from rag_lab.config import PipelineConfig

SCRIPT = "import sys; sys.argv[0] = 'rag-lab'; from rag_lab.cli import main; main()"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_dataset(tmp_path / "datasets", "presses")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "experiments/ablation.yaml").write_text(
        "name: a\nquestion: q\ndataset: presses\nfactors: {rerank.final_k: [5, 3]}\n"
    )
    (tmp_path / "results/monday").mkdir(parents=True)
    (tmp_path / "results/monday/plan.json").touch()
    (tmp_path / "results/thesis").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(*words):
    told = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), "_RAG_LAB_COMPLETE": "complete_bash"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=os.environ | told)
    assert "Traceback" not in done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["sw"], ["sweep"]),
        (["ing"], ["ingest"]),
        (["index", "pre"], ["presses"]),
        (["ask", "why?", "--dataset", "pr"], ["presses"]),
        (["datasets", "check", "p"], ["presses"]),
        (["sweep", "m"], ["mine.yaml"]),
        (["sweep", "exp"], ["experiments/ablation.yaml"]),
        (["report", "res"], ["results/monday"]),
        (["ask", "why?", "--set", "rerank.name", "=", "n"], ["none"]),
        (["ask", "why?", "--set", "rerank.name", "=", "c"], ["cross_encoder"]),
        (
            ["ask", "why?", "--set", "rerank.na"],
            ["rerank.name=none", "rerank.name=cross_encoder", "rerank.name=query_likelihood", "rerank.name=maxsim"],
        ),
        (["vary", "rerank.name", "=", "none,q"], ["none,query_likelihood"]),
        (["vary", "query.hyde", "="], ["none", "always", "classified", "suggested"]),
        (["vary", "query.hyde", "=", "none,"], ["none,always", "none,classified", "none,suggested"]),
        (["run", "--base", "lap"], ["laptop"]),
        (["run", "--metrics", "retrieval.ndcg", "@"], ["10"]),
        (["run", "--dataset", "pre"], ["presses"]),
        (["vary", "--design", "g"], ["grid"]),
        (["open", "res"], ["results/monday"]),
        (["compare", "results/monday", "--table", "eff"], ["effects"]),
        (["sweep", "experiments/ablation.yaml", "--only", "final"], ["final_k-3"]),
        (["sweep", "nowhere.yaml", "--only", "final"], []),
        (["modules", "rer"], ["reranker"]),
        (["index", "nothing_has_this_name"], []),
    ],
)
def test_what_fits_is_offered(folder, words, found):
    assert [word for word in offered("rag-lab", *words) if word != "plant_docs"] == found


needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")


@needs_bash
@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("rag-lab sw", "rag-lab sweep "),
        ("rag-lab ask why --set rerank.name=cr", "rag-lab ask why --set rerank.name=cross_encoder "),
        ("rag-lab vary rerank.name=none,q", "rag-lab vary rerank.name=none,query_likelihood "),
        ("rag-lab ask why --set models.generation=llam", "rag-lab ask why --set models.generation=llamacpp:smollm2 "),
        ("rag-lab open res", "rag-lab open results/monday"),
    ],
)
def test_bash_itself_completes_a_line(folder, tmp_path, line, completed):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/rag-lab"
    program.write_text(f"#!{sys.executable}\n{SCRIPT}\n")
    program.chmod(0o755)
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}", "PS1": "READY>", "TERM": "dumb"}
    options = {"env": os.environ | path, "encoding": "utf-8", "dimensions": (40, 200), "timeout": 120}
    bash = pexpect.spawn("bash", ["--norc", "--noprofile", "-i"], cwd=folder, **options)
    bash.expect_exact("READY>")
    bash.sendline('bind "set enable-bracketed-paste off"; eval "$(_RAG_LAB_COMPLETE=source_bash rag-lab)"')
    bash.expect_exact("READY>")
    bash.send(f"{line}\t")
    bash.expect_exact(completed)
    bash.close()


def test_what_bash_cuts_is_put_together_again():
    cut = ["rag-lab", "ask", "--set", "models.hyde", "=", "openai", ":", "a", "@", "b", ""]
    assert whole_words(cut, 10) == (["rag-lab", "ask", "--set", "models.hyde=openai:a@b", ""], 4)
    assert whole_words(cut[:5], 4) == (["rag-lab", "ask", "--set", "models.hyde="], 3)
    assert whole_words(["rag-lab", "run"], 2) == (["rag-lab", "run"], 2)


def test_completing_imports_no_model_and_no_table(folder):
    code = "import sys; from rag_lab.cli import completion as c; c.settings(); c.factors('rerank.name=none,'); "
    code += "c.metrics('ret'); c.runs(); c.presets(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "transformers", "pandas", "chromadb", "ragas", "matplotlib"} & set(done.stdout.split())


@needs_bash
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
    offers = [setting for setting, _ in completion.settings()]
    assert {"rerank.name=none", "answer.thinking=true", "rerank.final_k=5"} <= set(offers)
    for offer in offers:
        key = offer.partition("=")[0]
        if not key.startswith("store."):  # whose name and url belong together
            PipelineConfig().override(parse_settings([offer]))
