"""Every technique's notebook, as stock papermill executes it with the packaged models on the demo's documents."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from pictures import assert_seen

from rag_lab.experiment.config import checkout_file

pytestmark = pytest.mark.slow
# Pictures that each shows, and what its text must say; the first embeds the documents for all.
STORIES = {
    "fusion": (3, ["rrf", "dense", "mine"]),
    "parents": (2, ["neighbours", "parent_size = 1200"]),
    "significance": (2, ["by more than 0.05", "most misleading ten"]),
    "sweeps": (2, ["4 variants (grid)", "diversity = mmr", "lost -"]),
    "judges": (1, ["swapped_entity", "model", "negation"]),
    "rewriting": (2, ["class by the model", "proposed: ", "rewrite = llm, guard = false"]),
    "hyde": (3, ["hypothetical document", "hyde = classified", "written: "]),
    "reranking": (3, ["could rise", "rerank = maxsim", "--- the search had this first"]),
    "citations": (1, ["have evidence in the context", "citations.precision", "final_k = 1"]),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for all, as a user has it."""
    return tmp_path_factory.mktemp("home")


def test_every_technique_is_executed() -> None:
    assert set(STORIES) == {path.stem for path in checkout_file("notebooks/techniques").glob("*.ipynb")}


@pytest.mark.parametrize("name", STORIES)
def test_a_technique_runs_from_its_first_cell_to_its_last(home: Path, tmp_path: Path, name: str) -> None:
    n_pictures, said = STORIES[name]
    source, output = checkout_file(f"notebooks/techniques/{name}.ipynb"), tmp_path / "out.ipynb"
    given = ["-p", "OUT", str(tmp_path / "run")] if name == "sweeps" else []
    done = subprocess.run(
        [sys.executable, "-m", "papermill", str(source), str(output), *given],
        env={**os.environ, "RAG_LAB_HOME": str(home)}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    outputs = [one for cell in nbformat.read(output, as_version=4).cells for one in cell.get("outputs", [])]
    assert [one.text for one in outputs if one.get("name") == "stderr"] == []
    shown = [one for one in outputs if "image/png" in one.get("data", {})]
    assert len(shown) == n_pictures
    for one in shown:
        assert_seen(one)
    text = "\n".join([one.get("text", "") or one.get("data", {}).get("text/html", "") for one in outputs])
    assert [words for words in said if words not in text] == []
    assert (
        re.findall(r"<td[^>]*>[^<]*\.\.\.</td>|\bnan\b", text, re.IGNORECASE) == []
    )  # nothing is cut, nothing is missing unsaid
