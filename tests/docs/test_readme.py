"""The commands of README.md do what it says: whatever needs no hour, no GPU and no second browser is called."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from small_dataset import write_dataset
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.errors import RagLabError

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
LINES = [line for kind, text in BLOCKS if kind == "sh" for line in text.replace("\\\n", "").splitlines()]
COMMANDS = [shlex.split(line, comments=True)[1:] for line in LINES if line.startswith("rag-lab ")]
LOOKED_AT = {"sweep", "plan", "run", "vary"}  # with --dry-run: they are the same commands, and nothing is computed
OTHERWHERE = {"open"}  # tests/cli/test_run_results.py; tests/docs/test_your_documents.py follows the whole way

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with what README takes for there: documents, a data set, and the experiment that it shows."""
    place = tmp_path_factory.mktemp("readme")
    dataset = write_dataset(place)
    shutil.copytree(dataset / "corpus", place / "docs")
    shutil.copytree(dataset, place / "path/to/dataset")
    (place / "experiments").mkdir()
    shown = next(text for kind, text in BLOCKS if kind == "yaml")
    (place / shown.partition("\n")[0].removeprefix("# ")).write_text(shown)
    shutil.copytree(ROOT / "experiments/presets", place / "experiments/presets")
    return place


def call(argv):
    return CliRunner().invoke(app, [*argv, "--dry-run"] if argv[0] in LOOKED_AT and "--dry-run" not in argv else argv)


@pytest.mark.parametrize("argv", [argv for argv in COMMANDS if argv[0] not in OTHERWHERE], ids=" ".join)
def test_a_command_of_the_readme_does_what_it_says(argv, place, monkeypatch):
    monkeypatch.chdir(place)
    if "mine/experiment.yaml" in argv and not (place / "mine").exists():
        assert call(["new", "mine", "docs/"]).exit_code == 0
    done = call(argv)
    if any("unsloth:" in word for word in argv):  # one sentence says what is missing: the package, or a GPU
        assert isinstance(done.exception, RagLabError) and "unsloth" in str(done.exception)
    else:
        assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"


def test_the_first_commands_are_those_that_the_page_of_documents_tells():
    page = (ROOT / "docs/your_documents.md").read_text(encoding="utf-8")
    told = page.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert [" ".join(["rag-lab", *argv]) for argv in COMMANDS[:3]] == told


def test_the_targets_of_make_are_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [target for line in LINES for target in re.findall(r"\bmake (\w+)", line)]
    assert targets and all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_pictures_and_notebooks_that_are_named_are_there():
    named = re.findall(r"!\[.*?\]\(([^)]+)\)|`(notebooks/[\w./]+)`", README)
    assert named and all((ROOT / (picture or notebook)).exists() for picture, notebook in named)


def test_the_reranker_of_the_readme_is_one_line_and_works(place, monkeypatch):
    """As it stands, on fewer questions and documents."""
    (code,) = [text for kind, text in BLOCKS if kind == "python" and "replace(rerank=" in text]
    monkeypatch.setenv("RAG_LAB_HOME", str(place / "home"))
    code = code.replace('"plant_docs"', repr(str(place / "path/to/dataset"))).replace(
        "rl.compare", "found = rl.compare"
    )
    made = {}
    exec(code, made)
    assert [made["found"].label(v) for v in made["found"].codes] == [
        "base",
        "mine: rerank = <lambda>",
        "wider: base_k = 40",
    ]
