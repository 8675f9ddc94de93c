"""The folder to practise on has no labels, and what is played there says that it is."""

from __future__ import annotations

import pytest
from small_plans import EMBEDDER, install_doubles

import rag_lab
from rag_lab.config import PipelineConfig
from rag_lab.data.dataset import Dataset
from rag_lab.notebook.practice import play_labels, play_preferences, practice_folder


def test_it_can_be_gone_through_without_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    install_doubles(monkeypatch)
    folder, questions = practice_folder()
    assert Dataset.load(folder, labelled=False).questions == () and len(questions) == 6
    retrieval = {"models.embedding": EMBEDDER, "query.rewrite": "none", "query.hyde": "none", "answer.name": "none"}
    base = rag_lab.Pipeline(folder, PipelineConfig().override({**retrieval, "retrieval.mode": "bm25"}))
    both = {"base": base, "dense": base.set("retrieval.mode", "dense")}
    changed = rag_lab.compare(both, questions=questions)
    assert changed.is_unlabelled
    assert "played, not judged" in play_preferences(rag_lab.prefer(changed))
    assert play_labels(rag_lab.label(both, questions)).endswith("labelled as in the demo's own labels.")
    found = Dataset.load(folder)
    assert len(found.questions) >= 4 and found.problems == ()
    measured = rag_lab.compare(both, questions=questions)
    assert not measured.is_unlabelled and measured.main_metric == "retrieval.ndcg@10"
    assert base.locate(list(found.questions))[1] == []
