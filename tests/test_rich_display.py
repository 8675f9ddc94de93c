"""Whatever people look at shows itself: in a notebook, in IPython's terminal and by `print`."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from run_folder_fixture import build_run

import rag_lab as rl
from rag_lab.evaluation.evaluate import Scores
from rag_lab.redaction import NO_FORMULAS
from rag_lab.report.page import templates

PAGE = (Path(__file__).parents[1] / "docs/bench.md").read_text(encoding="utf-8")
QUESTION = rl.Question("q1", "How tight?")
SHOWN = {
    "Trace": rl.Trace(QUESTION),
    "questions[0]": QUESTION,
    "Pipeline": rl.Pipeline("nothing is there"),
    "base.config": rl.PipelineConfig(),
    "base.dataset": rl.Dataset.load("plant_docs"),
    "rl.evaluate": Scores([rl.Score("q1", "mine", 0.5)]),
    "rl.compare": None,
}


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return rl.compare(build_run(tmp_path_factory.mktemp("shown") / "run", 12, 6).path)


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_a_page_in_a_notebook_and_lines_in_a_terminal(name: str, comparison: Any) -> None:
    thing = SHOWN[name] if SHOWN[name] is not None else comparison
    found, _ = InteractiveShell.instance().display_formatter.format(thing)
    assert found["text/html"].lstrip().startswith(f'<div class="rl {NO_FORMULAS}">')
    assert found["text/plain"] == str(thing)
    assert max(map(len, str(thing).splitlines())) <= 100
    assert name in PAGE


def test_every_page_of_a_notebook_is_left_alone_by_what_takes_dollars_for_formulas() -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in templates.FOLDER.glob("*.html")}
    shown = {name for name, text in pages.items() if '<div class="{{ rl }}' in text}
    assert {"view.html", "trace.html", "question.html", "overview.html", "bench.html", "label.html"} <= shown
    assert not [name for name, text in pages.items() if re.search(r'<div class="rl\b', text)]


def test_a_value_keeps_the_repr_that_makes_it_again() -> None:
    assert eval(repr(QUESTION), {"Question": rl.Question}) == QUESTION


def test_every_view_that_a_class_names_is_there() -> None:
    package = Path(rl.__file__).parent
    sources = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    named = {line.split('"')[1] for text in sources for line in text.splitlines() if line.startswith("@rich_display(")}
    assert len(named) >= 7
    for name in named:
        module, _, function = name.partition(":")
        assert callable(getattr(import_module(module), function))
