"""`run`, `vary` and `sweep --set --only`: from a command line to a run folder."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from small_dataset import write_dataset
from typer.testing import CliRunner

from rag_lab.cli import app, execute
from rag_lab.cli.sweep import parse_factors
from rag_lab.errors import ConfigError
from rag_lab.experiment.config import ExperimentConfig

QUICK = ["--set", "query.rewrite=none", "--set", "query.hyde=none", "--set", "retrieval.mode=bm25"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a small data set, the current one."""
    monkeypatch.chdir(tmp_path)
    write_dataset(tmp_path)
    return tmp_path


def test_factors_are_read_as_yaml_reads_them():
    assert parse_factors(["rerank.final_k=3,5", "query.hyde=none,always", 'select.cut="a,b",c']) == {
        "rerank.final_k": [3, 5],
        "query.hyde": ["none", "always"],
        "select.cut": ["a,b", "c"],
    }
    with pytest.raises(ConfigError) as error:
        parse_factors(["a", "b=", "c=1", "c=2"])
    assert str(error.value).count("is no setting with values") == 2
    assert "c is given twice" in str(error.value)
    with pytest.raises(ConfigError, match="varies nothing"):
        parse_factors(["rerank.final_k=3"])


def test_a_dry_run_of_vary_writes_nothing_and_says_what_runs_it(rag_lab, folder):
    before = sorted(folder.iterdir())
    status, out, err = rag_lab("vary", "rerank.final_k=5,3", "--dataset", "./small", "--dry-run", *QUICK)
    assert status == 0
    assert "2 variants (one_factor)" in out and "final_k-3" in out
    assert "the experiment will be final_k.yaml" in err
    assert "\n  rag-lab vary rerank.final_k=5,3 --dataset ./small --set query.rewrite=none" in err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("vary rerank.nmae=none,x --dataset small", "did you mean 'rerank.name'?"),
        ("vary rerank.name=none,query_likelyhood --dataset small", "query_likelihood"),
        ("vary rerank.final_k=5,3 --dataset smal", "'smal'"),
        ("vary rerank.final_k=5,3 --dataset small --base lapto", "did you mean 'laptop'?"),
        ("vary rerank.final_k=5,3 --dataset small --metrics retrieval.ndgc@10", "retrieval.ndcg@k"),
        ("vary rerank.final_k=5,3 --dataset small --design grdi", "did you mean grid?"),
        ("run --dataset small --set rerank.nmae=none", "did you mean 'rerank.name'?"),
        ("run --dataset small --metrics ragas.faithfulness", "judge"),
    ],
)
def test_a_mistake_is_a_sentence_with_a_near_name_and_nothing_is_written(rag_lab, folder, line, said):
    status, out, err = rag_lab(*line.split())
    assert (status, out) == (2, "")
    assert said in err and err.startswith("rag-lab: ") and "Traceback" not in err
    assert len(err) < 700
    assert [path.name for path in folder.iterdir()] == ["small"]


def test_sweep_tells_which_variant_is_meant(rag_lab, folder):
    (folder / "e.yaml").write_text("name: e\nquestion: q\ndataset: ./small\nfactors: {rerank.final_k: [5, 3, 2]}\n")
    status, out, err = rag_lab("sweep", "e.yaml", "--dry-run", "--only", "final_k-3", "--set", "rerank.input_limit=8")
    assert status == 0
    assert "2 variants" in out and "2 of 3 variants are run, without final_k-2. baseline runs, too" in out
    status, _, err = rag_lab("sweep", "e.yaml", "--only", "final_k-4")
    assert status == 2 and "did you mean 'final_k-2'?" in err or "did you mean 'final_k-3'?" in err


@pytest.mark.slow
def test_a_sweep_without_a_file_leaves_one_and_a_run_folder_and_says_what_next(rag_lab, folder):
    status, out, err = rag_lab("vary", "rerank.final_k=5,3", "--dataset", "./small", *QUICK)
    assert status == 0, err
    assert ExperimentConfig.load(folder / "final_k.yaml").factors == {"rerank.final_k": [5, 3]}
    assert (folder / "results/final_k/report.html").is_file()
    assert "rag-lab compare results/final_k" in err and "rag-lab open results/final_k" in err
    again = rag_lab("vary", "rerank.final_k=5,3", "--dataset", "./small", *QUICK)
    assert again[0] == 0 and not (folder / "final_k_2.yaml").exists()
    states = json.loads((folder / "results/final_k/manifest.json").read_text())["variants"]
    assert all(state["resumed"] for state in states.values())


@pytest.mark.slow
def test_one_pipeline_is_run_and_its_scores_are_printed(rag_lab, folder):
    status, out, err = rag_lab("run", "--dataset", "./small", "--questions", "3", *QUICK)
    assert status == 0, err
    assert "No answers are generated" in err
    assert "retrieval.ndcg@10" in out and " to " in out
    (folder,) = (folder / "results").iterdir()
    assert f"results/{folder.name}/report.html" in out


def sit_at_a_terminal(monkeypatch: pytest.MonkeyPatch, is_one: bool) -> None:
    stream = SimpleNamespace(isatty=lambda: is_one)
    monkeypatch.setattr(execute, "sys", SimpleNamespace(stdin=stream, stderr=stream))


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Start a sweep, which ends where it would run; return whether it came there, and what was said."""
    sit_at_a_terminal(monkeypatch, True)
    dataset = str(write_dataset(tmp_path))

    def sweep(base: dict[str, Any], *arguments: str, reply: str = "", repeats: int = 10) -> tuple[bool, str]:
        begun = []
        monkeypatch.setattr("rag_lab.experiment.run.sweep.run_plan", lambda *_: begun.append(1) or 1 / 0)
        data = {"name": "e", "question": "q", "dataset": dataset, "base": base, "repeats": repeats}
        path = tmp_path / "e.yaml"
        path.write_text(yaml.safe_dump(data | {"factors": {}, "metrics": ["retrieval.ndcg@10"]}))
        done = CliRunner().invoke(app, ["sweep", str(path), "--out", str(tmp_path / "run"), *arguments], input=reply)
        return bool(begun), done.stderr

    return sweep


SLOW = {"query": {"rewrite": "llm"}}  # forty calls that nobody has measured here


def test_it_says_how_long_and_runs_where_it_may(sweep: Any) -> None:
    begun, said = sweep(SLOW, reply="y\n")
    assert begun and "This takes about 3 minutes (understand: 40 calls, 5 s each assumed). Go on?" in said


def test_it_runs_nothing_where_it_may_not(sweep: Any) -> None:
    begun, said = sweep(SLOW, reply="n\n")
    assert not begun and "Nothing was run. --dry-run shows" in said


def test_a_reranker_counts_too(sweep: Any) -> None:
    begun, said = sweep({"rerank": {"name": "query_likelihood"}}, reply="n\n", repeats=2)
    assert not begun and "rerank: 160 pairs, 1 s each assumed" in said


def test_nothing_is_asked_with_yes_before_what_is_short_or_where_nobody_sits(
    sweep: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Go on?" not in sweep(SLOW, "--yes")[1]
    begun, said = sweep({})
    assert begun and "Go on?" not in said
    sit_at_a_terminal(monkeypatch, False)
    begun, said = sweep(SLOW)
    assert begun and "Go on?" not in said
