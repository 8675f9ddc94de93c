"""No control character from outside leaves any command, on a terminal, in a file, or on a page."""

import json
import os
import sys
import threading
import tty
import warnings

import pytest
import run_folder_fixture
from hostile_text import CONTROLS, EVIL, NAME_EVIL, controls_in, poison_run, write_evil_dataset
from loopback_models import Scripted, openai_server

from rag_lab import cli
from rag_lab.notebook.display import question_html
from rag_lab.report.compare_text import compare_text
from rag_lab.report.page.report_page import write_report
from rag_lab.report.shown_comparison import compare

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return poison_run(run_folder_fixture.build_run(tmp_path_factory.mktemp("outside") / "run", 10, 4).path)


@pytest.fixture
def terminal(monkeypatch):
    """Run the command line with a terminal as stdout and stderr; return what reached it, and the status."""

    def run(*arguments):
        above, below = os.openpty()
        tty.setraw(below)
        received = bytearray()

        def receive():
            while True:
                try:
                    chunk = os.read(above, 65536)
                except OSError:
                    return
                if not chunk:
                    return
                received.extend(chunk)

        reader = threading.Thread(target=receive)
        reader.start()
        with os.fdopen(below, "w", encoding="utf-8") as stream:
            monkeypatch.setattr(sys, "argv", ["rag-lab", *map(str, arguments)])
            monkeypatch.setattr(sys, "stdout", stream)
            monkeypatch.setattr(sys, "stderr", stream)
            with pytest.raises(SystemExit) as ended:
                cli.main()
        reader.join()
        os.close(above)
        return received.decode(), ended.value.code

    return run


@pytest.fixture
def evil(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_LAB_DATASETS", str(tmp_path))
    return write_evil_dataset(tmp_path)


def evil_answer(body):
    return json.dumps({"answer": f"See {EVIL}", "citations": [1], "class": "fuzzy", "hyde": True, "rewritten": EVIL})


def evil_error(body):
    return Scripted(text=f"no such thing {EVIL}", status=400)


COMMANDS = {
    "compare": ["compare", "RUN"],
    "compare all": ["compare", "RUN", "--pairs", "all", "--correction", "bh"],
    "compare two": ["compare", "RUN", "RUN"],
    "compare markdown": ["compare", "RUN", "--format", "markdown"],
    "compare latex": ["compare", "RUN", "--format", "latex"],
    "compare csv": ["compare", "RUN", "--format", "csv"],
    "compare nothing": ["compare", f"no{EVIL[:-20]}"],
    "compare format": ["compare", "RUN", "--format", EVIL],
    "report": ["report", "RUN"],
    "export": ["export", "RUN", f"out{NAME_EVIL}"],
    "datasets list": ["datasets", "list"],
    "datasets check": ["datasets", "check", "evil", "--json", "check.json", "--page", "page.html"],
    "datasets export": ["datasets", "export", "evil", f"out{NAME_EVIL}", "--format", "beir"],
    "datasets import": ["datasets", "import", f"no{NAME_EVIL}.csv", f"out{NAME_EVIL}"],
    "index": ["index", "evil", "--list"],
    "index remove": ["index", "evil", "--remove", f"press{NAME_EVIL}.md"],
    "ask": ["ask", f"Where is the evil press {EVIL}?", "--dataset", "evil", "SERVER"],
    "ask error": ["ask", "Where is the evil press?", "--dataset", "evil", "FAILING"],
    "ask passages": ["ask", "Where is the evil press?", "--dataset", "evil", "--set", "answer.name=none"],
    "ask namespace": ["ask", "Why?", "--dataset", "evil", "--namespace", EVIL],
    "sweep dry": ["sweep", "e.yaml", "--dry-run"],
    "sweep wrong": ["sweep", "wrong.yaml"],
    "sweep nothing": ["sweep", f"no{NAME_EVIL}.yaml"],
    "judge": ["judge", "check", f"openai:{EVIL}?x{EVIL}=1", "--dataset", "evil"],
    "doctor": ["doctor"],
    "no command": [f"x{EVIL}"],
    "no option": ["ask", "Why?", f"--x{EVIL}"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_control_character_reaches_a_terminal(terminal, evil, run_dir, tmp_path, command):
    (tmp_path / "e.yaml").write_text(
        f"name: e\nquestion: {json.dumps('Why ' + EVIL)}\ndataset: evil\n"
        "base: {query: {rewrite: none, hyde: none}, answer: {name: none}}\n"
    )
    (tmp_path / "wrong.yaml").write_text(f"name: {json.dumps(EVIL)}\n{json.dumps(EVIL)}: {json.dumps(EVIL)}\n")
    own = ["--set", "answer.name=llm"]
    with openai_server(evil_answer) as answering, openai_server(evil_error) as failing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        places = {"RUN": [str(run_dir)]}
        places["SERVER"] = ["--set", f"models.generation=openai:m?base_url={answering.url}", *own]
        places["FAILING"] = ["--set", f"models.generation=openai:m?base_url={failing.url}&max_attempts=1", *own]
        told, status = terminal(*(part for word in COMMANDS[command] for part in places.get(word, [word])))
    assert "Traceback" not in told
    assert status in (None, 0, 1, 2)
    assert "\rEVIL" not in told  # only a progress bar goes back to the start of its line
    assert controls_in(told.replace("\r", "").replace("\x1b[A", "")) == []
    if command == "ask error":  # what is hidden from the terminal is shown
        assert status == 1 and r"\x1b]52;c;ZXZpbA==\x07" in told and r"\u202e" in told


def test_no_control_character_stands_in_a_report(run_dir):
    write_report(run_dir)
    page, text = (run_dir / "report.html").read_bytes().decode(), (run_dir / "report.md").read_bytes().decode()
    assert controls_in(page) == controls_in(text) == []
    assert r"\x1b]52;c;ZXZpbA==\x07" in page
    assert "EVIL" in text
    assert controls_in(compare(run_dir)._repr_html_()) == []


def test_no_control_character_stands_in_a_notebook(run_dir):
    comparison = compare(run_dir)
    for traces in comparison.traces.values():
        assert [controls_in(trace._repr_html_()) for trace in traces] == [[]] * len(traces)
    for name in comparison.questions["question_id"]:
        assert controls_in(question_html(comparison, name)) == []


def test_files_of_a_check_hold_the_same_values_without_control_characters(terminal, evil, tmp_path):
    terminal("datasets", "check", "evil", "--json", "check.json", "--page", "page.html")
    counted, page = (tmp_path / "check.json").read_bytes().decode(), (tmp_path / "page.html").read_bytes().decode()
    assert controls_in(counted) == controls_in(page) == []
    assert any(character in json.dumps(json.loads(counted), ensure_ascii=False) for character in CONTROLS - {"\r"})


def test_a_table_for_latex_holds_no_bare_backslash(run_dir):
    text = compare_text(run_dir, form="latex")
    assert controls_in(text) == []
    assert r"\textbackslash{}x1b" in text
