"""The part of the page on your documents that compares without labels: its code runs, with models that cost nothing."""

from pathlib import Path

import pytest
from small_dataset import DOCUMENTS
from small_plans import EMBEDDER, SCORER, install_doubles

import rag_lab
from rag_lab.comparison.comparison import Comparison
from rag_lab.config import PipelineConfig

PAGE = Path(__file__).parents[2] / "docs" / "your_documents.md"
CHEAP = {"models.embedding": EMBEDDER, "query.rewrite": "none", "query.hyde": "none", "answer.name": "none"}


def test_the_way_from_a_folder_to_a_comparison_by_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_doubles(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for name, text in DOCUMENTS.items():
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text(text)
    code = PAGE.read_text().split("## Without labels")[1].split("```python\n")[1].split("```")[0]
    cheap = PipelineConfig().override({**CHEAP, "models.likelihood": SCORER})
    seen: dict[str, object] = {"rl": rag_lab}
    begin, compare, prefer, label, again = _steps(code)
    exec(begin.replace("progress=False", "cheap, progress=False"), {**seen, "cheap": cheap}, seen)  # noqa: S102
    exec(compare, seen)  # noqa: S102
    changed = seen["changed"]
    assert isinstance(changed, Comparison) and changed.is_unlabelled
    assert "judged" in repr(eval(prefer, seen))  # noqa: S307
    labelling = eval(label, seen)  # noqa: S307
    labelling.take(1)
    labelling.go(1)
    labelling.take(1)
    measured = eval(again, seen)  # noqa: S307
    assert not measured.is_unlabelled and measured.main_metric == "retrieval.ndcg@10"


def _steps(code: str) -> list[str]:
    begin, _, rest = code.partition("changed = ")
    return [begin, *("changed = " + rest).strip().splitlines()]
