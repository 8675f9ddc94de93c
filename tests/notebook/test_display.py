from pathlib import Path

import pandas as pd
import pytest
from run_folder_fixture import build_run

from rag_lab.errors import RagLabError
from rag_lab.notebook.display import question_html, show, show_question, texts_table
from rag_lab.records import Answer, Question, StageRecord, Trace
from rag_lab.redaction import NO_FORMULAS
from rag_lab.report.shown_comparison import compare
from rag_lab.stages.steps import stage_name


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("display") / "run").path


def test_every_stage_result_is_shown(run_dir: Path) -> None:
    trace = compare(run_dir).traces["query.hyde-always"][3]
    shown = trace._repr_html_()
    for text in ("the weather in Bonn", "refused the rewrite", "A manual would say", "cosine", "RRF", "[1]", "85 Nm"):
        assert text in shown
    assert all(stage_name(record.stage) in shown for record in trace.stages)
    assert "fallback" in shown and "the rewrite drifted" in shown


def test_a_trace_on_which_nothing_has_run_is_shown() -> None:
    assert "Why?" in (Trace(Question("q", "Why?")))._repr_html_()


def test_an_answer_of_the_packaged_model_says_that_a_toy_wrote_it() -> None:
    def shown(model: str) -> str:
        return (
            Trace(Question("q", "Why?"), answer=Answer("So."), stages=(StageRecord("generate", model=model),))
        )._repr_html_()

    assert "A toy model wrote this" in shown("llamacpp:smollm2")
    assert "toy" not in shown("gemini:gemini-2.5-flash") + shown("")


def test_a_question_stands_with_all_variants(run_dir: Path) -> None:
    comparison = compare(run_dir)
    shown = question_html(run_dir, "q002")
    assert shown == question_html(comparison, "q002")
    assert all(plan.label in shown for plan in comparison.variants)


def test_an_unknown_question_is_one_sentence(run_dir: Path) -> None:
    with pytest.raises(RagLabError, match="Unknown question 'q02'.*did you mean .*'q002'"):
        question_html(run_dir, "q02")


def test_show_displays_html(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("IPython.display.display", lambda html: shown.append(html.data))
    show(compare(run_dir).traces["baseline"][1])
    show_question(run_dir, "q001")
    assert len(shown) == 2 and all(text.lstrip().startswith(f'<div class="rl {NO_FORMULAS}">') for text in shown)


def test_texts_stand_whole_and_do_nothing() -> None:
    long, hostile = "word " * 100 + "end", "<img src=http://evil.example/x.png onerror=alert(1)>\x1b[2J"
    frame = pd.DataFrame({"text": [long, hostile, None], "<b>": [0.123456, 1.0, float("nan")]}, index=[5, 5, 7])
    page = texts_table(frame)._repr_html_()
    assert long in page
    assert "<img" not in page and "&lt;img src=http://evil.example" in page and "\x1b" not in page
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert "0.123<" in page and "0.1234" not in page
    assert page.count("–") == 2
    assert f'class="{NO_FORMULAS}"' in page
