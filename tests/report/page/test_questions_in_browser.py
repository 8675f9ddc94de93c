"""From a number to the words in a real browser: links, filters, two variants, permalinks, keyboard, without scripts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import Watched, browser, needs_browser, watch
from hostile_text import poison_run
from playwright.sync_api import Page, expect
from scipy import stats

from rag_lab.report.page import question_pages
from rag_lab.report.page.report_page import write_report
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import RunFolder

pytestmark = [pytest.mark.slow, needs_browser]
MOST_CLICKS = 3


@pytest.fixture(scope="module")
def report(build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of 18 questions under three variants, one of them hostile."""
    return write_report(build.build_run(tmp_path_factory.mktemp("words") / "run", 18, 3).path)


@pytest.fixture(scope="module")
def apart(build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with a page for each question."""
    run = build.build_run(tmp_path_factory.mktemp("words") / "apart", 18, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question_pages, "MOST_CHARS", 1000)
        return write_report(run.path)


@pytest.fixture(scope="module")
def page(report: Path) -> Iterator[Page]:
    with browser() as page:
        page.set_default_timeout(10_000)
        yield page


@contextmanager
def fresh(page: Page, width: int = 1280, **context: Any) -> Iterator[Page]:
    """Give a page of its own in the browser of `page`; `context` takes Playwright's settings."""
    assert page.context.browser is not None
    settings = page.context.browser.new_context(viewport={"width": width, "height": 1600}, **context)
    settings.set_default_timeout(10_000)
    yield settings.new_page()
    settings.close()


def visible(page: Page) -> list[str]:
    return page.eval_on_selector_all(".q:not([hidden]) .id", "all => all.map(e => e.textContent)")


def test_from_any_number_the_words_are_at_most_three_clicks_away(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    assert page.locator("table.scores .mean").count() == page.locator("table.scores .mean a.words").count() > 0
    wanted = page.eval_on_selector_all("a.words", "all => [...new Set(all.map(e => e.dataset.words))]")
    assert len(wanted) > 60
    for words in wanted[::20]:
        page.goto("about:blank")
        page.goto(report.as_uri())
        page.evaluate("document.querySelectorAll('section:not(#questions) details').forEach(e => { e.open = true; })")
        steps = (f'a.words[data-words="{words}"]', ".q:not([hidden]) > summary", ".q[open] .passages summary")
        assert len(steps) <= MOST_CLICKS
        for step in steps:
            page.locator(step).first.click()
        assert page.locator(".q[open] .passages .text").first.is_visible(), words


def test_no_number_leads_to_an_empty_list(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    empty = """async () => { const found = [];
      for (const link of document.querySelectorAll("a.words")) {
        location.hash = link.hash;
        await new Promise((done) => setTimeout(done));
        if (!document.querySelector(".q:not([hidden])")) found.push(link.dataset.words);
      } return found; }"""
    assert page.evaluate(empty) == []


def test_a_score_opens_the_questions_behind_it(page: Page, report: Path) -> None:
    comparison = compare(report.parent)
    for variant, metric in (("rerank.name-query_likelihood", "citations.precision"), ("baseline", "retrieval.ndcg@10")):
        page.goto(report.as_uri())
        cell = comparison.cell(variant, metric)
        assert cell is not None
        code = comparison.codes[variant]
        page.locator(f'a.words[data-words^="variant={code}&metric={metric.replace("@", "%40")}"]').first.click()
        assert len(visible(page)) == cell["scored"] + cell["failed"] > 0
        assert f"each is scored in {metric} under {code}" in page.locator("#f-count").inner_text()


def test_won_lost_and_tied_are_those_of_the_table_of_differences(page: Page, report: Path) -> None:
    comparison = compare(report.parent)
    page.goto(report.as_uri() + "#questions?variant=B&against=A&metric=retrieval.ndcg%4010")
    row = comparison.difference("rerank.name-query_likelihood", "retrieval.ndcg@10")
    assert row is not None
    told = [page.locator(f"[data-show={name}]").inner_text() for name in ("won", "lost", "tied")]
    assert told == [f"Won {row['wins']}", f"Lost {row['losses']}", f"Tied {row['ties']}"]
    page.locator("[data-show=won]").click()
    assert len(visible(page)) == row["wins"]
    assert page.url.endswith("show=won")


def test_the_switch_shows_where_answers_and_evidence_differ_and_what_is_starred(page: Page, report: Path) -> None:
    comparison = compare(report.parent)
    page.goto(report.as_uri() + "#questions?variant=B&against=A")
    first, second = ({t.question.question_id: t for t in comparison.traces[one]} for one in [*comparison.codes][:2])
    both = [(first[one], second[one]) for one in first if one in second]
    answers = [a.question.question_id for a, b in both if a.answer and b.answer and a.answer.text != b.answer.text]
    assert 0 < len(answers) < len(both)
    page.locator("[data-show=answers]").click()
    assert sorted(visible(page)) == sorted(answers)
    page.locator("[data-show=evidence]").click()
    read = [[{(one.source, one.page) for one in t.passages or t.ranked[:5]} for t in pair]
            for pair in both if all(t.failure is None for t in pair)]  # fmt: skip
    assert len(visible(page)) == sum(a != b for a, b in read)

    page.locator("[data-show='']").click()
    page.locator(".q:not([hidden]) > summary").nth(2).press("s")
    starred = visible(page)[2]
    page.locator("[data-show=starred]").click()
    assert visible(page) == [starred] and page.url.endswith("show=starred")
    page.reload()
    assert visible(page) == [starred]
    page.locator(".q:not([hidden]) > summary").first.click()
    page.get_by_role("button", name="★ Starred").first.click()
    assert visible(page) == []


def test_the_reader_chooses_the_baseline(page: Page, report: Path) -> None:
    comparison, metric = compare(report.parent), "retrieval.ndcg@10"
    page.goto(report.as_uri())
    planned = page.locator("#verdict table.modules").first.inner_text()
    page.locator("[name=baseline]").select_option("B")
    scores = comparison.scores[comparison.scores["metric"] == metric].pivot_table("value", "question_id", "variant_id")
    values = (scores["baseline"] - scores["rerank.name-query_likelihood"]).dropna()
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    row = page.locator("#verdict tbody.chosen tr").first.inner_text()
    assert row.startswith("A ")
    assert [float(one.replace("−", "-")) for one in re.findall(r"[+−]\d\.\d{3}", row)] == pytest.approx(
        [values.mean(), low, high], abs=6e-4
    )
    assert f"{(values > 0).sum()} won, {(values < 0).sum()} lost" in row
    assert page.locator("#questions [name=against]").input_value() == "B"
    page.locator("[name=baseline]").select_option("")
    assert page.locator("#verdict table.modules").first.inner_text() == planned


def test_filters_are_shared_by_the_address_and_the_back_button_undoes_them(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    every = visible(page)
    page.locator("[name=class]").select_option("fuzzy")
    fuzzy = visible(page)
    assert 0 < len(fuzzy) < len(every)
    page.locator("[name=state]").select_option("fallback")
    both, address = visible(page), page.url
    assert set(both) < set(fuzzy)
    page.go_back()
    assert visible(page) == fuzzy and page.locator("[name=state]").input_value() == ""
    page.go_back()
    assert visible(page) == every
    with fresh(page) as other:
        other.goto(address)
        assert visible(other) == both
        assert other.locator("[name=class]").input_value() == "fuzzy"


def test_where_nothing_is_left_a_sentence_says_what_was_asked(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    page.locator("[name=text]").fill("no such words")
    page.locator("[name=variant]").select_option("B")
    assert visible(page) == []
    told = page.locator("#f-count").inner_text()
    assert told.startswith("No question is left: none of the 18 holds the words “no such words” and is scored in")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#f-count")).to_have_text("18 of 18 questions")


@pytest.mark.parametrize("state", ["fallback", "unscored", "answered", "abstained"])
def test_every_state_filters_or_says_that_nothing_is_left(page: Page, report: Path, state: str) -> None:
    page.goto(f"{report.as_uri()}#questions?state={state}&metric=citations.precision&class=specific&order=worst")
    told = page.locator("#f-count").inner_text()
    assert told.startswith(f"{len(visible(page))} of 18 questions: each ") if visible(page) else "No question" in told


def test_changed_most_stands_first(page: Page, report: Path) -> None:
    page.goto(report.as_uri() + "#questions?variant=B&against=A&metric=retrieval.ndcg%4010&order=changed")
    told = page.eval_on_selector_all(".q:not([hidden]) .values", "all => all.map(e => e.textContent.match(/[\\d.]+/g))")
    moved = [abs(float(after) - float(before)) for before, after in told]
    assert moved == sorted(moved, reverse=True) and moved[0] > 0


def test_two_variants_stand_against_each_other_in_a_card(page: Page, report: Path) -> None:
    page.goto(report.as_uri() + "#questions?variant=B&against=A&metric=retrieval.ndcg%4010&show=won")
    page.locator(".q:not([hidden]) > summary").first.click()
    pair = page.locator(".q[open] .pair")
    expect(pair.locator(".diff ins")).to_have_text(["Revision C applies."])  # the pair is made when its card has opened
    assert pair.locator(".diff del").count() == 0
    first = pair.locator(".slopes ol").nth(1).locator("li").first.inner_text()
    assert first.startswith("1") and "★" in first  # B found the evidence first
    assert pair.locator(".slopes line.up.holds, .slopes line.new.holds").count() == 1
    assert "→" in pair.locator("dl").inner_text()


@pytest.mark.parametrize("scripts", [True, False])
def test_an_address_opens_its_question_also_without_scripts(page: Page, report: Path, scripts: bool) -> None:
    with fresh(page, java_script_enabled=scripts) as page:
        page.goto(report.as_uri() + "#q-q012")
        assert page.locator("#q-q012").is_visible()
        assert page.locator("details.q[open]").count() == 1
        assert page.locator("#q-q012 .passages").first.is_visible()
        assert page.locator("form.filter").is_visible() is scripts


def test_without_scripts_every_question_is_there(page: Page, apart: Path, report: Path) -> None:
    with fresh(page, java_script_enabled=False) as page:
        page.goto(report.as_uri())
        assert len(visible(page)) == 18
        page.goto(apart.as_uri())
        page.locator("#q-q003 a").click()
        assert page.url.endswith("questions/q-q003.html")
        assert page.locator("h1").inner_text().startswith("Something about what to do")
        assert page.locator(".passages").first.is_visible() and not page.locator("form.filter").is_visible()
        page.get_by_role("link", name="next question").click()
        assert page.url.endswith("q-q004.html")


def test_the_keyboard_is_enough(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    page.locator("a.words").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "h-questions"
    page.locator(".q:not([hidden]) > summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".q[open]").count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.q[open]') !== null")
    page.keyboard.press("Escape")
    assert page.locator(".q[open]").count() == 0
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_a_page_of_its_own_takes_the_pair_along(page: Page, apart: Path) -> None:
    with fresh(page) as page:
        page.goto(apart.as_uri() + "#questions?variant=B&against=A&metric=retrieval.ndcg%4010&show=won")
        page.locator(".q:not([hidden]) a").first.click()
        page.wait_for_selector(".pair .slopes")
        assert page.url.endswith("#variant=B&against=A")
        page.locator("[name=against]").select_option("C")
        assert page.locator(".pair").get_attribute("aria-label") == "B against C"


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_in_an_open_card(page: Page, report: Path, apart: Path, width: int, scheme: str) -> None:
    with fresh(page, width, color_scheme=scheme) as page:
        page.goto(report.as_uri() + "#questions?variant=B&against=A&metric=retrieval.ndcg%4010")
        page.locator(".q:not([hidden]) > summary").first.click()
        page.evaluate("document.querySelectorAll('.q[open] details').forEach(e => { e.open = true; })")
        assert faults(page, "#questions") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto((apart.parent / "questions" / "q-q002.html").as_uri() + "#variant=B&against=A")
        page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        assert faults(page, "html") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def faults(page: Page, where: str) -> list[str]:
    found = Axe().run(page, context=where).response["violations"]
    return [f"{one['id']}: {[node['html'] for node in one['nodes'][:5]]}" for one in found]


def test_hostile_questions_do_nothing_wherever_they_are_shown(
    page: Page, build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = poison_run(build.build_run(tmp_path / "run", 9, 3).path)
    with fresh(page) as page:
        seen = watch(page)
        page.goto(write_report(run).as_uri() + "#questions?variant=B&against=A&text=<img src=x onerror=alert(1)>")
        page.goto("about:blank")
        page.goto((run / "report.html").as_uri() + "#questions?variant=B&against=A&metric=retrieval.ndcg%4010")
        page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        page.wait_for_selector(".pair")
        monkeypatch.setattr(question_pages, "MOST_CHARS", 1000)
        write_report(run)
        for path in sorted((run / "questions").iterdir())[:3]:
            page.goto(path.as_uri() + "#variant=B&against=A")
            page.wait_for_selector(".pair")
    assert seen == Watched()


def test_the_grid_sorts_by_a_column_and_shows_the_answer_of_a_cell(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    values = "all => all.map(e => parseFloat(e.querySelectorAll('.cells i')[2].textContent))"
    letter = page.locator(".q-head [data-column=C]")
    for is_sorted_down in (False, True):
        letter.click()
        shown = [one for one in page.eval_on_selector_all(".q:not([hidden])", values) if one == one]
        assert shown == sorted(shown, reverse=is_sorted_down) and len(set(shown)) > 1
    assert page.url.endswith("order=high%3AC")
    assert page.locator(".cells i").nth(2).get_attribute("title").startswith("C ")
    assert page.locator(".cells i[title*='The ram bolts take 85 Nm']").count() > 0


def test_from_a_difference_the_questions_stand_by_the_largest_change(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    page.locator('table.modules a.words[data-words^="variant=B&against=A"]').click()
    assert page.locator("[name=order]").input_value() == "changed"


def test_the_page_runs_without_errors_and_draws(page: Page, run: RunFolder, tmp_path: Path) -> None:
    import numpy as np
    from matplotlib.image import imread

    shot = tmp_path / "page.png"
    with fresh(page) as one:
        seen = watch(one)
        one.goto(write_report(run.path).as_uri())
        assert one.locator("#f-count").inner_text() == "12 of 12 questions"
        assert one.locator("form.filter").is_visible()
        one.screenshot(path=shot)
    assert seen == Watched()
    pixels = imread(shot)
    assert pixels.shape[1] == 1280
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 50
