"""What stands behind the list of questions: in the page, or where that is too much in a page a question."""

import json
import re
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from hostile_text import EVIL, controls_in, poison_run
from html_page import Page
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.comparison.by_question import Shared, question_values, timeline
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.passages import ranking
from rag_lab.errors import RagLabError
from rag_lab.records import Evidence, Hit, Passage, Question, StageRecord, Trace
from rag_lab.report.page import question_pages
from rag_lab.report.page.report_page import to_html, write_report
from rag_lab.report.page.templates import anchors, macro


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any run have too many questions for one page."""
    monkeypatch.setattr(question_pages, "MOST_CHARS", 1000)


def pages(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "questions").glob("*"))


def test_the_values_are_those_of_the_tables(comparison: Comparison) -> None:
    found, variants = question_values(comparison), list(comparison.codes)
    for row in comparison.summary.itertuples():
        column = [one[variants.index(row.variant_id)] for one in found.values[row.metric]]
        there = [value for value in column if isinstance(value, float)]
        assert (len(there), column.count("x"), column.count(None)) == (row.scored, row.failed, row.not_applicable)
        assert not there or sum(there) / len(there) == pytest.approx(row.mean)


def test_a_card_says_what_was_sent_and_written_word_for_word(comparison: Comparison) -> None:
    text = " ".join("".join(Page(to_html(comparison)).text).split())
    assert "Answer from the passages and cite them." in text and '{"answer": "…"}' in text
    assert "The passage says 85 Nm." in text  # thinking


def test_a_passage_stands_in_full_with_the_quote_marked() -> None:
    text = "Check the seal.\n" + "More words. " * 200 + "Tighten the ram bolts to 85 Nm.\nThe end."
    start = text.index("85 Nm")
    question = Question("q", "How tight?", evidence=(Evidence("a.md", None, "85 Nm", start, start + 5),))
    hit = Hit("a.md#0", "a.md#0/0", "a.md", None, 0, len(text), 1.0)
    cut = Passage(1, "a.md#0", "a.md", None, 0, 10, text[:10], parent_text=text)
    table = ranking([("A", Trace(question, ranked=(hit,), passages=(cut,)))])
    html = macro("card.html", "ranks")(table)
    assert "bolts to <mark>85 Nm</mark>.\nThe end." in html and html.count("More words.") >= 200
    unread = ranking([("A", Trace(question, ranked=(hit,)))], {"a.md#0": text})
    assert "bolts to <mark>85 Nm</mark>.\nThe end." in macro("card.html", "ranks")(unread)


def test_stages_are_drawn_by_what_they_took_and_not_where_that_is_nothing_to_see() -> None:
    def drawn(*records: StageRecord) -> str:
        value = timeline(Trace(Question("q", "How tight?"), stages=records))
        return str(macro("card.html", "timeline")(Shared(("A", "B"), False, value)))

    quick = drawn(StageRecord("merge", seconds=0.0002), StageRecord("rerank", seconds=0.0001))
    assert "less than 0.001 s" in quick and "<i" not in quick
    assert '<b class="letter">A</b><b class="letter">B</b>' in quick
    slow = drawn(StageRecord("merge", seconds=0.0002), StageRecord("rerank", seconds=2.0))
    assert slow.count("<i") == 1 and "2.00 s" in slow  # merging took less than a thousandth
    free = drawn(StageRecord("generate", seconds=0.0, tokens_in=80, tokens_out=4))
    assert "84 tokens" in free  # of a reply that came at once


def test_a_small_run_is_one_page_and_says_nothing_of_others(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 3, 2)
    text = write_report(run.path).read_text()
    assert not (run.path / "questions").exists() and "too many" not in text


def test_questions_that_are_too_many_have_a_page_each(build: ModuleType, tmp_path: Path, many: None) -> None:
    run = build.build_run(tmp_path / "run", 5, 3)
    html = write_report(run.path).read_text()
    page = Page(html)
    assert pages(run.path) == [f"q-q00{number}.html" for number in range(1, 6)]
    links = [str(attrs["href"]) for tag, attrs in page.tags if tag == "a"]
    assert [link for link in links if link.startswith("questions/")] == [
        f"questions/{name}" for name in pages(run.path)
    ]
    assert "rag-lab report --one-file" in html and "too many to keep" in html
    for name in pages(run.path):
        text = (run.path / "questions" / name).read_text()
        one = Page(text)
        assert len(one.ids) == len(set(one.ids))
        assert f'href="../report.html#{name[:-5]}"' in text and "default-src 'none'" in text
        assert "The ram bolts take 85 Nm" in "".join(one.text)


def test_pages_of_an_earlier_report_go_and_what_is_not_ours_stays(
    build: ModuleType, tmp_path: Path, many: None
) -> None:
    run = build.build_run(tmp_path / "run", 3, 2)
    write_report(run.path)
    (run.path / "questions" / "q-gone.html").write_text("earlier")
    (run.path / "questions" / "notes.txt").write_text("mine")
    write_report(run.path)
    assert "q-gone.html" not in pages(run.path) and len(pages(run.path)) == 4
    html = write_report(run.path, one_file=True).read_text()
    assert pages(run.path) == ["notes.txt"] and "The ram bolts take 85 Nm" in html
    (run.path / "questions" / "notes.txt").unlink()
    write_report(run.path, one_file=True)
    assert not (run.path / "questions").exists()


def test_a_page_that_is_the_same_stays_and_a_damaged_one_is_written_again(tmp_path: Path) -> None:
    page = tmp_path / "q-1.html"
    page.write_bytes(b"\xff\xfe of an earlier report")
    question_pages.write_text(page, "für alle")
    assert page.read_bytes() == "für alle".encode()
    before = page.stat()
    question_pages.write_text(page, "für alle")
    assert (page.stat().st_ino, page.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_in_the_place_of_the_folder_is_named(build: ModuleType, tmp_path: Path, many: None) -> None:
    run = build.build_run(tmp_path / "run", 2, 2)
    (run.path / "questions").write_text("a file")
    with pytest.raises(RagLabError, match=r"Cannot write .*questions: File exists; make room"):
        write_report(run.path)


def test_pages_hold_no_secret_and_no_control_character(
    build: ModuleType, tmp_path: Path, many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "Tighten-the-ram")
    run = build.build_run(tmp_path / "run", 5, 2)
    poison_run(run.path)
    traces = run.variant_dir("baseline") / "traces.jsonl"
    traces.write_text(traces.read_text().replace("the ram bolts", "Tighten-the-ram bolts"))
    write_report(run.path)
    for path in [run.path / "report.html", *(run.path / "questions").iterdir()]:
        text = path.read_text()
        assert controls_in(text) == [] and "Tighten-the-ram" not in text, path
        Page(text)


def test_what_the_script_reads_holds_nothing_from_outside(build: ModuleType, tmp_path: Path) -> None:
    html = to_html_of(poison_run(build.build_run(tmp_path / "run", 5, 2).path))
    (values,) = re.findall(r'<script type="application/json" id="values">(.*?)</script>', html)
    data = json.loads(values)
    assert set(data["classes"]) <= {"specific", "fuzzy", "comparative", "procedural", "creative", "none"}
    assert "EVIL" not in values and "<" not in values


def to_html_of(run: Path) -> str:
    return write_report(run).read_text()


NAMES = st.one_of(
    st.text(max_size=90), st.sampled_from(["a b", "a-b", "a-b-c8687a08", "A-B", "../x", "..", "ä", "é", "con"])
)


def test_a_plain_id_is_kept() -> None:
    assert anchors(["pd-001", "q_2.b"]) == {"pd-001": "q-pd-001", "q_2.b": "q-q_2.b"}


@given(st.lists(NAMES, unique=True, max_size=12))
def test_no_two_are_alike_and_all_are_safe_in_addresses_and_file_names(ids: list[str]) -> None:
    found = anchors(ids)
    assert list(found) == ids
    assert len({name.lower() for name in found.values()}) == len(ids)
    assert all(re.fullmatch(r"q-[A-Za-z0-9._-]{0,90}", name) for name in found.values())


def test_ids_that_a_file_system_may_not_tell_apart_are_told_apart() -> None:
    upper, lower = anchors(["Press", "press"]).values()
    assert upper.lower() != lower.lower()


def test_a_name_does_not_depend_on_the_questions_beside_it() -> None:
    assert anchors(["a b"])["a b"] == anchors(["x", "a b", "y"])["a b"]


SUMMARY = "What was said for these scores"


def told(build: ModuleType, folder: Path, reason: str) -> tuple[str, list[str]]:
    """Return a report's page and what unfolds in its cards, where the judge said `reason` of one score."""
    run = build.build_run(folder / "run", 3, 2).path
    scores = pd.read_parquet(run / "scores.parquet")
    scores["reason"] = ""
    scored = scores[(scores["status"] == "scored") & scores["metric"].str.startswith("retrieval.")].index
    scores.loc[scored[0], "reason"] = reason
    failed = scores[(scores["status"] == "failed")].index
    scores.loc[failed, "reason"] = "no JSON came"
    scores.to_parquet(run / "scores.parquet", index=False)
    html = write_report(run).read_text()
    return html, re.findall(rf"<details[^>]*><summary>{SUMMARY}</summary>(.*?)</details>", html, re.DOTALL)


def test_what_was_said_unfolds_a_line_a_judgement(build: ModuleType, tmp_path: Path) -> None:
    html, (one,) = told(build, tmp_path, "supported: The oven is hot. — It says so.\nnot supported: It beeps.")
    assert re.findall(r"<li><bdi>(.*?)</bdi></li>", one) == [
        "supported: The oven is hot. — It says so.",
        "not supported: It beeps.",
    ]
    assert "retrieval." in one and '<b class="letter">A</b>' in one
    assert "no JSON came" not in one
    assert html.index("Scores and costs") < html.index(SUMMARY)


def test_what_was_said_of_a_metric_stands_together(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 3, 2).path
    scores = pd.read_parquet(run / "scores.parquet")
    ours = (scores["status"] == "scored") & scores["metric"].str.startswith("retrieval.")
    scores["reason"] = (scores["metric"] + " in " + scores["variant_id"]).where(ours, "")
    scores.to_parquet(run / "scores.parquet", index=False)
    html = write_report(run).read_text()
    cards = re.findall(rf"<summary>{SUMMARY}</summary>(.*?)</details>", html, re.DOTALL)
    assert len(cards) == 3
    for card in cards:
        metrics = [line.split(" in ")[0] for line in re.findall(r"<li><bdi>(.*?)</bdi>", card)]
        runs = [metric for place, metric in enumerate(metrics) if metric != (metrics[place - 1] if place else "")]
        assert len(set(metrics)) > 1 and len(metrics) > len(runs) == len(set(metrics))


def test_nothing_unfolds_where_nothing_was_said(build: ModuleType, tmp_path: Path) -> None:
    html, found = told(build, tmp_path, "")
    assert not found and SUMMARY not in html


def test_what_a_judge_said_cannot_steer_the_page(build: ModuleType, tmp_path: Path) -> None:
    html, (one,) = told(build, tmp_path, f"useful — </bdi></details><script>alert(1)</script>\n{EVIL}")
    assert "&lt;/details&gt;&lt;script&gt;alert(1)" in one and "EVIL" in one
    assert controls_in(html) == [] and "<script>alert" not in html
    Page(html)
