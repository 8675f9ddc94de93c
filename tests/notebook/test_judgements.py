"""A person clicks what answers, or judges blind, in Python as in the browser, and goes on where they were."""

from pathlib import Path
from typing import Any

import pytest
from run_folder_fixture import HOSTILE, build_unlabelled
from small_plans import CHAT, EMBEDDER, SCORER, install_doubles

import rag_lab
from rag_lab.config import PipelineConfig
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.runs.run_folder import RunFolder

CONFIG = PipelineConfig().override(
    {
        **{f"models.{role}": CHAT for role in ("generation", "understanding", "hyde")},
        **{"models.embedding": EMBEDDER, "models.likelihood": SCORER, "answer.name": "llm"},
    }
)
OIL = "When is the oil changed?"
QUESTIONS = [OIL, "Who locks the oven?", "What is for lunch?", "What is <b>A7</b>?", "Where is the key?"]


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> rag_lab.Pipeline:
    install_doubles(monkeypatch)
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "oil.md").write_text("# Oil\n\nThe oil is changed every 2,000 hours. It is <i>hot</i> then.\n")
    (folder / "oven.txt").write_text("The shift leader locks the oven. The key hangs in the office.")
    return rag_lab.Pipeline(folder, CONFIG)


def loaded(base: rag_lab.Pipeline) -> dict[str, Any]:
    return {one.text: one for one in Dataset.load(base.dataset.path).questions}


def test_a_click_is_a_label_and_a_second_click_takes_it_back(base: rag_lab.Pipeline) -> None:
    asked = rag_lab.label(base, OIL)
    number, found = next((n, one) for n, one in enumerate(asked.passages, 1) if one.hit.source == "oil.md")
    part = next(n for n, (text, _) in enumerate(found.parts) if "2,000" in text)
    page = asked.widget
    page.do({"do": "take", "value": f"{number}:{part}"})
    (evidence,) = loaded(base)[OIL].evidence
    assert (evidence.source, evidence.page, evidence.quote) == ("oil.md", None, "The oil is changed every 2,000 hours.")
    assert f'data-value="{number}:{part}" aria-pressed="true"' in page.html and "1 of 1 labelled" in page.html
    page.do({"do": "take", "value": f"{number}:{part}"})
    assert loaded(base)[OIL].evidence == ()
    page.do({"do": "undo"})
    assert len(loaded(base)[OIL].evidence) == 1


def test_parts_make_up_the_passage(base: rag_lab.Pipeline) -> None:
    for found in rag_lab.label(base, OIL).passages:
        assert "".join(text for text, _ in found.parts) == found.text


def test_words_that_the_passage_does_not_hold_are_refused(base: rag_lab.Pipeline) -> None:
    asked = rag_lab.label(base, OIL)
    with pytest.raises(ConfigError, match="does not hold 'every year'"):
        asked.take(1, "every year")
    with pytest.raises(ConfigError, match="numbered from 1"):
        asked.take(0)
    with pytest.raises(ConfigError, match="answer is empty"):
        asked.answer(" ")
    with pytest.raises(ConfigError, match="no label to undo"):
        asked.undo()


def test_after_five_labels_the_comparison_is_by_labels(base: rag_lab.Pipeline) -> None:
    both = {"base": base, "two": base.set("rerank.final_k", 2)}
    assert rag_lab.compare(both, questions=QUESTIONS).is_unlabelled
    asked = rag_lab.label(both, QUESTIONS)
    for _ in QUESTIONS:
        asked.take(1)
        asked.go(1)
    assert (asked.labelled, asked.question.text) == (5, QUESTIONS[-1])
    found = rag_lab.compare(both, questions=QUESTIONS)
    assert not found.is_unlabelled and found.quality_metrics == ("retrieval.ndcg@10",)
    cell = found.cell("base", "retrieval.ndcg@10")
    assert cell is not None and cell["scored"] == 5 and cell["mean"] > 0
    assert rag_lab.compare(both).run.questions == found.run.questions  # they are the folder's own questions now


def test_passages_of_several_pipelines_are_shown_once_each(base: rag_lab.Pipeline) -> None:
    alone = [one.hit.parent_id for one in rag_lab.label(base, OIL).passages]
    both = [one.hit.parent_id for one in rag_lab.label([base, base.set("retrieval.mode", "bm25")], OIL).passages]
    assert sorted(both) == sorted(set(both)) and set(alone) <= set(both)


def test_no_answer_and_an_answer_in_words(base: rag_lab.Pipeline) -> None:
    asked = rag_lab.label(base, QUESTIONS[:2])
    asked.widget.do({"do": "no_answer"})
    asked.widget.do({"do": "go", "value": "1"})
    asked.widget.do({"do": "answer", "typed": {"answer": "The shift leader"}})
    found = loaded(base)
    assert (found[OIL].answerable, found[QUESTIONS[1]].answers) == (False, ("The shift leader",))
    assert "2 of 2 labelled" in asked.widget.html


def test_texts_from_outside_are_escaped(base: rag_lab.Pipeline) -> None:
    asked = rag_lab.label(base, QUESTIONS[3])
    page = asked.to_html()
    assert "<b>A7</b>" not in page and "&lt;b&gt;A7" in page
    assert "<i>hot" not in page and "&lt;i&gt;hot" in page
    asked.widget.do({"do": "take", "value": "99:<script>"})
    assert "<script>" not in asked.widget.html and 'class="said bad"' in asked.widget.html


def test_without_a_question_there_is_nothing_to_label(base: rag_lab.Pipeline) -> None:
    with pytest.raises(RagLabError, match="has no questions"):
        rag_lab.label(base)
    with pytest.raises(ConfigError, match="Give a Pipeline"):
        rag_lab.label([])


TABLE = (
    "Stage  Torque  Tool\n1  650 Nm  TM-5\n3, final  1,980 Nm  TM-5\n\n| Part | Data |\n|---|---|\n| Heater | 2.8 kW |"
)


def test_a_passage_is_folded_to_what_is_nearest_and_a_row_of_a_table_can_be_clicked(base: rag_lab.Pipeline) -> None:
    steps = " ".join(f"Step {n} is signed by the shift." for n in range(30))
    (Path(base.dataset.path) / "rods.md").write_text(f"{steps}\n\n{TABLE}\nThe sheet is kept.")
    asked = rag_lab.label(base.set("retrieval.mode", "bm25"), "Which torque is final: 1,980 Nm?")
    number, found = next((n, one) for n, one in enumerate(asked.passages, 1) if one.hit.source == "rods.md")
    assert found.quote == "3, final  1,980 Nm  TM-5" and "| Heater | 2.8 kW |" in found.units
    page = asked.widget
    assert found.quote in page.html and "Step 3 is signed" not in page.html and "Heater" not in page.html
    assert 'class="part"' not in page.html  # which is a heading, bold and pale
    page.do({"do": "unfold", "value": str(number)})
    assert "Step 3 is signed" in page.html and "Heater" in page.html
    row = next(n for n, (text, _) in enumerate(found.parts) if text == "| Heater | 2.8 kW |")
    page.do({"do": "take", "value": f"{number}:{row}"})
    page.do({"do": "unfold", "value": str(number)})
    assert "Heater" in page.html  # a label is never folded away
    (evidence,) = loaded(base)["Which torque is final: 1,980 Nm?"].evidence
    assert evidence.quote == "| Heater | 2.8 kW |"


LIKELY = "rerank.name-query_likelihood"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return build_unlabelled(tmp_path / "run", 30, 4)


def test_choices_are_kept_and_it_goes_on_where_it_was_left(run: RunFolder) -> None:
    first = rag_lab.prefer(run.path, "B", questions=5)
    seen = first.now
    assert seen is not None
    first.choose("left")
    first.choose("same")
    again = rag_lab.prefer(run.path, "B", questions=5)
    assert (again.done, len(again.trials)) == (2, 5)
    assert again.now is not None and again.now != seen
    again.undo()
    again.undo()
    assert again.now == seen == first.now
    with pytest.raises(ConfigError, match="no choice to undo"):
        again.undo()


def test_no_name_is_shown_before_the_end(run: RunFolder) -> None:
    asked = rag_lab.prefer(run.path, "B", questions=3)
    while asked.now:
        page = asked.to_html()
        assert not any(name in page for name in ("baseline", LIKELY, "query_likelihood", "is reliably"))
        asked.choose("right")
    assert "query_likelihood" in asked.to_html() and asked.result.difference.n == 3
    with pytest.raises(ConfigError, match="Everything is judged"):
        asked.choose("left")


def test_clicks_do_what_choose_does(run: RunFolder) -> None:
    asked = rag_lab.prefer(run.path, "B", questions=3)
    page = asked.widget
    assert 'data-do="choose" data-value="left" data-key="ArrowLeft"' in page.html and "0 of 3 judged" in page.html
    page.do({"do": "choose", "value": "right"})
    assert asked.done == 1 and "1 of 3 judged" in page.html
    page.do({"do": "undo"})
    assert asked.done == 0 and "was taken back" in page.html
    page.do({"do": "choose", "value": "<b>"})
    assert asked.done == 0 and "&lt;b&gt;" in page.html and 'class="said bad"' in page.html
    page.do({"do": "choose", "value": "skip"})
    page.do({"do": "end"})
    assert "query_likelihood" in page.html
    page.do({"do": "go on"})
    assert "query_likelihood" not in page.html


def test_a_notebook_without_a_kernel_keeps_a_page_without_buttons(run: RunFolder) -> None:
    asked = rag_lab.prefer(run.path, "B")
    page = asked.widget.still().data
    assert f'class="rl-kept" data-kept="{asked.widget.kept}"' in page and "Run the cell to judge" in page
    assert "0 of 20 judged" in page and "<button" not in page and "of 20 judged" in repr(asked)


def test_texts_of_judged_answers_are_escaped(run: RunFolder) -> None:
    asked = rag_lab.prefer(run.path, "B", questions=30)
    while asked.now and asked.now.question.text != HOSTILE:
        asked.choose("skip")
    assert asked.now is not None
    assert "<script>alert" not in asked.to_html() and "&lt;script&gt;alert" in asked.to_html()


def test_a_variant_is_named_by_letter_label_or_id_and_a_pair_by_two(run: RunFolder) -> None:
    for name in ("B", LIKELY, "rerank.name=query_likelihood"):
        assert {rag_lab.prefer(run.path, name).result.variant_id} == {LIKELY}
    pair = rag_lab.prefer(run.path, ["C", "B"]).result
    assert (pair.against, pair.variant_id) == (LIKELY, "query.hyde-always")


@pytest.mark.parametrize(
    ("variants", "questions", "reason"),
    [("Z", 5, "allowed are A baseline, B rerank"), ("A", 5, "two different variants"), ("B", 0, "1 or more")],
)
def test_what_cannot_be_judged_is_one_sentence(run: RunFolder, variants: str, questions: int, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        rag_lab.prefer(run.path, variants, questions=questions)


def test_where_both_show_the_same_the_page_says_so_and_a_notebook_goes_on(run: RunFolder) -> None:
    texts = (run.path / "variants" / "baseline" / "traces.jsonl").read_text(encoding="utf-8")
    (run.path / "variants" / LIKELY / "traces.jsonl").write_text(texts, encoding="utf-8")
    asked = rag_lab.prefer(run.path, "B")
    assert asked.now is None and not asked.trials
    assert "Both variants show the same for every question; name two others" in asked.to_html()
    assert "Nobody has judged" in asked.result.sentence
