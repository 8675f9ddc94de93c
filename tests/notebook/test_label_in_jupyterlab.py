"""Preferring and labelling in a real JupyterLab: keys, clicks, and what stays where no kernel is."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from browser import PATIENCE_S, browser, needs_browser
from jupyter_lab import jupyter_lab, open_notebook, run_all
from playwright.sync_api import expect
from run_folder_fixture import build_unlabelled

from rag_lab.runs.human_input import LABELS_FILE, read_labels, read_preferences

pytestmark = [pytest.mark.slow, needs_browser]

LABEL = """\
import rag_lab as rl
from rag_lab.config import PipelineConfig
from rag_lab.notebook.judgements import label
config = PipelineConfig().override(
    {"query.rewrite": "none", "query.hyde": "none", "answer.name": "none", "retrieval.mode": "bm25"})
label(rl.Pipeline("docs", config, progress=False), "When is the oil changed?")"""


def write_drafts(folder: Path) -> Path:
    folder.mkdir()
    (folder / "oil.md").write_text("The oil is changed every 2,000 hours. It is hot then.")
    lines = [
        {"id": f"d{n}", "question": text, "answers": ["2,000 hours"], "draft": {"passage": "Every 2,000 hours."}}
        for n, text in enumerate(("When is it changed?", "How hot?"))
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_keys_choose_clicks_label_and_the_page_stays(tmp_path: Path) -> None:
    run = build_unlabelled(tmp_path / "run", 12, 3)
    books = tmp_path / "books"
    (books / "docs").mkdir(parents=True)
    (books / "docs" / "oil.md").write_text("The oil is changed every 2,000 hours. It is hot then.")
    drafted = write_drafts(books / "drafted")
    cells = [f"import rag_lab as rl\nrl.prefer({str(run.path)!r}, 'B', questions=4)", LABEL]
    cells += [f"rl.review({str(drafted)!r}, by='anna')", f"rl.rate({str(run.path)!r}, by='anna', n=6)"]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells], metadata=kernel)
    nbformat.write(book, books / "by_hand.ipynb")
    with jupyter_lab(books, tmp_path) as address, browser(1200, 2400) as page:
        open_notebook(page, address, "by_hand.ipynb")
        run_all(page)
        page.get_by_role("group", name="Which is better?").focus()
        for n, key in enumerate(("ArrowLeft", "ArrowRight", "ArrowDown"), start=1):
            page.keyboard.press(key)
            page.get_by_text(f"{n} of 4 judged").first.wait_for()
        page.keyboard.press("u")
        page.get_by_text("2 of 4 judged").first.wait_for()
        assert [one.choice for one in read_preferences(run.path)] == ["left", "right"]
        page.get_by_role("button", name="The oil is changed every 2,000 hours.").click()
        page.get_by_text("1 of 1 labelled").first.wait_for()
        assert '"quote": "The oil is changed every 2,000 hours."' in (books / "docs" / "questions.jsonl").read_text()
        review, rating = (page.locator(".jp-Cell").nth(n) for n in (2, 3))
        page.get_by_role("group", name="Verdict").focus()
        page.keyboard.press("2")  # the second class
        review.get_by_role("button", name="fuzzy", pressed=True).wait_for()
        page.keyboard.press("k")
        expect(review.locator(".so-far:visible")).to_contain_text("1 of 2 reviewed", timeout=1000 * PATIENCE_S)
        page.keyboard.press("x")
        review.get_by_text("anna: 2 of 2 reviewed (1 keep, 0 edit, 1 drop).").first.wait_for()
        page.get_by_role("group", name="Is the answer good?").focus()
        page.keyboard.press("d")
        rating.get_by_text(re.compile(r"1 of \d rated")).first.wait_for()
        assert [one.rating for one in read_labels(run.path / LABELS_FILE)[0]] == ["down"]
        (question,) = (line for line in (drafted / "questions.jsonl").read_text().splitlines())
        assert '"class": "fuzzy"' in question and '"verdict": "keep"' in question
        assert page.locator(".jp-Cell").count() == 4  # no key was taken for a command of JupyterLab
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
    outputs = [output for cell in nbformat.read(books / "by_hand.ipynb", 4).cells for output in cell.outputs]
    kept = "".join("".join(output.get("data", {}).get("text/html", "")) for output in outputs)
    assert "2 of 4 judged" in kept and "1 of 1 labelled" in kept and "rl-kept" in kept
