"""What takes over two minutes is not begun unasked, where somebody sits at a terminal."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from small_dataset import write_dataset
from typer.testing import CliRunner

from rag_lab.cli import app, execute


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Start a sweep, which ends where it would run; return whether it came there, and what was said."""
    monkeypatch.setattr(execute, "_is_terminal", lambda: True)
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
    monkeypatch.setattr(execute, "_is_terminal", lambda: False)
    begun, said = sweep(SLOW)
    assert begun and "Go on?" not in said
