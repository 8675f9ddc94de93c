"""The experiments on conversations and on rights run as they are shipped, cut to a few questions, with real models."""

from pathlib import Path

import pytest
from small_plans import run_in_process

from rag_lab._kit.config_file import read_mapping
from rag_lab.experiment.plan import plan
from rag_lab.memory.ledger import Ledger

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def ran(name, n_questions, tmp_path, monkeypatch, only=()):
    data = read_mapping(EXPERIMENTS / f"{name}.yaml")
    data["limits"] = {"questions": n_questions, "answers": 0}
    checked = plan(data, only=only, folder=EXPERIMENTS)
    return dict(run_in_process(checked, Ledger(tmp_path / "ledger.sqlite"), monkeypatch))


def means(work, metric):
    values = [score.value for score in work.scores if score.metric == metric and score.value is not None]
    return sum(values) / len(values)


@pytest.mark.slow
def test_what_was_said_is_worth_something_to_a_follow_up(tmp_path, monkeypatch):
    done = ran("conversation", 10, tmp_path, monkeypatch, ["joined_exchange", "rewritten_summary"])
    assert {"bare", "joined_exchange", "rewritten_summary"} == set(done)
    metric = "retrieval.ndcg@5"
    assert means(done["joined_exchange"], metric) > means(done["bare"], metric)
    far = [trace for trace in done["rewritten_summary"].traces if len(trace.question.history) > 6]
    assert far and all(trace.remembered.summary for trace in far)
    assert all(len(trace.remembered.turns) == 2 for trace in done["joined_exchange"].traces)


@pytest.mark.slow
def test_no_role_is_shown_what_it_may_not_see(tmp_path, monkeypatch):
    done = ran("access", 12, tmp_path, monkeypatch)
    assert set(done) == {"baseline", "mode-bm25", "mode-rrf", "level-document"}
    for work in done.values():
        leaks = [score for score in work.scores if score.metric == "access.leak"]
        assert len(leaks) == 12 and all((score.status, score.value) == ("scored", 0) for score in leaks)
        assert any(not trace.question.answerable for trace in work.traces)  # a forbidden pair was asked
