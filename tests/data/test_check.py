from __future__ import annotations

import json
from pathlib import Path

from rag_lab.data.check import check
from rag_lab.data.dataset import Dataset


def test_counts_and_text(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("Because.", encoding="utf-8")
    (tmp_path / "corpus" / "b.xyz").write_text("?", encoding="utf-8")
    (tmp_path / "dataset.yaml").write_text("name: tiny\n", encoding="utf-8")
    evidence = [{"source": "a.txt", "quote": "Because."}, {"source": "a.txt", "page": 1}]
    lines = [
        {"id": "q1", "question": "Why?", "class": "fuzzy", "tags": ["x", "y"], "evidence": evidence},
        {"id": "q2", "question": "  why? ", "class": "specific", "tags": ["x"]},
        {"id": "q3", "question": "Who?", "answerable": False},
        {"id": "q4", "question": "Where?", "class": "nowhere"},
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = check(Dataset.load(tmp_path))
    assert (found.n_files, found.n_questions, found.n_answerable) == (1, 4, 3)
    assert found.by_class == {"specific": 1, "fuzzy": 1, "unlabelled": 2}
    assert found.by_tag == {"x": 2, "y": 1}
    assert (found.n_evidence, found.n_with_page, found.n_with_quote, found.n_without_evidence) == (2, 1, 1, 2)
    assert found.duplicates == (("q1", "q2"),)
    assert len(found.problems) == 2  # the class and the file that no loader reads
    text = str(found)
    assert "tiny: 4 questions over 1 files" in text
    assert "q1, q2" in text and "'nowhere'" in text and "b.xyz" in text
