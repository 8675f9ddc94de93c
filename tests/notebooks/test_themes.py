"""What a notebook shows can be read in a light theme and in a dark one, whatever the system prefers."""

from pathlib import Path

import nbformat
import pytest
from browser import browser, needs_browser
from jupyter_lab import jupyter_lab, open_notebook, run_all, set_theme
from playwright.sync_api import Page
from run_folder_fixture import build_run

from rag_lab import Pipeline
from rag_lab.notebook.display import question_html
from rag_lab.report.page.report_page import overview_html, write_report
from rag_lab.report.shown_comparison import compare

pytestmark = [pytest.mark.slow, needs_browser]
# What people write on a cell's last line, after a comparison.
LAST_LINES = (
    "comparison.summary",
    "comparison.differences",
    "trace = comparison.traces['query.hyde-always'][3]\ntrace",
    "trace.question",
    "from rag_lab.notebook.display import show_question\nshow_question(comparison, 'q002')",
    "rl.evaluate([trace], ['retrieval.ndcg@10', 'answer.abstention'])",
    "base = rl.Pipeline('plant_docs', rl.PipelineConfig.load('{mine}')).set('query.hyde', 'none')\nbase",
    "base.config",
    "base.dataset",
    "rl.Question('q9', 'Which of both, $ 1 and $ 2?', answers=('$ 2 and not $ 1',))",
)
READABLE = 4.5  # the contrast that WCAG asks of text

# Opens what is folded, and returns of all texts: how many there are, their least contrast, the words that have it, and
# whether all stand on dark.
LOOK = """(() => {
  document.querySelectorAll('.rl details').forEach(d => d.open = true);
  const rgba = c => { const n = c.match(/[\\d.]+/g).map(Number), most = c.startsWith('color(srgb') ? 255 : 1;
    return [n[0] * most, n[1] * most, n[2] * most, n[3] ?? 1]; };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) {
    const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > .9) return c; } return [255, 255, 255, 1]; };
  const seen = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, words = walk.currentNode.data.trim();
    if (!words || !e.closest('.rl') || e.closest('style,script,svg') || !e.checkVisibility()) continue;
    const back = light(behind(e)), ink = light(rgba(getComputedStyle(e).color));
    seen.push([(Math.max(back, ink) + .05) / (Math.min(back, ink) + .05), words, back < .2]);
  }
  seen.sort((a, b) => a[0] - b[0]);
  const [least, words] = seen[0] ?? [0, ''], dark = seen.filter(text => text[2]).length;
  return {count: seen.length, least, words, dark: dark === seen.length, bright: dark === 0};
})()"""


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("themes") / "run", 12, 6).path


def assert_readable(page: Page, is_dark: bool) -> None:
    page.wait_for_function(f"{LOOK}.count > 100")  # JupyterLab hides its cells while it lays them out
    seen = page.evaluate(LOOK)
    assert seen["least"] >= READABLE, seen
    assert seen["dark" if is_dark else "bright"], seen


def test_in_jupyterlab_its_theme_counts(run_dir: Path, tmp_path: Path) -> None:
    first = f"import rag_lab as rl\ncomparison = rl.compare({str(run_dir)!r})\ncomparison"
    (tmp_path / "mine.yaml").write_text("rerank: {name: query_likelihood}")
    sources = [first, *(source.format(mine=tmp_path / "mine.yaml") for source in LAST_LINES)]
    sources.append("from IPython.display import HTML\nHTML('<p>Elsewhere, $ 1 and $ 2 are a formula.</p>')")
    (tmp_path / "books").mkdir()
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources], metadata=kernel)
    nbformat.write(book, tmp_path / "books" / "shown.ipynb")
    with jupyter_lab(tmp_path / "books", tmp_path) as address, browser(1400, 20_000) as page:
        open_notebook(page, address, "shown.ipynb")
        run_all(page)
        page.wait_for_function(f"document.querySelectorAll('.rl').length === {len(sources) - 1}")
        cut = "[...document.querySelectorAll('.rl .scroll:has(> .modules)')].filter(e => e.scrollWidth > e.clientWidth)"
        assert page.evaluate(f"{cut}.length") == 0  # beside JupyterLab's file browser
        for theme, other in (("light", "dark"), ("dark", "light")):
            set_theme(page, theme)
            page.emulate_media(color_scheme=other)
            assert_readable(page, is_dark=theme == "dark")
            page.screenshot(path=tmp_path / f"{theme}.png")
        page.wait_for_selector("mjx-container")  # of the cell that is not ours
        assert page.locator(".rl mjx-container").count() == 0
        assert page.get_by_text("Which of both, $ 1 and $ 2?").first.is_visible()


@pytest.mark.parametrize(
    ("body", "system", "is_dark"),
    [
        ('class="vscode-dark"', "light", True),
        ('class="vscode-light"', "dark", False),
        ('class="vscode-high-contrast"', "light", True),
        ('class="vscode-high-contrast vscode-high-contrast-light"', "dark", False),
        ('data-jp-theme-light="false"', "light", True),  # nbconvert --theme dark
        ("", "dark", True),
        ("", "light", False),
    ],
)
def test_elsewhere_the_host_or_the_system_counts(
    run_dir: Path, tmp_path: Path, body: str, system: str, is_dark: bool
) -> None:
    comparison = compare(run_dir)
    trace = comparison.traces["query.hyde-always"][3]
    drawn = Pipeline("docs").set("query.hyde", "none")._repr_html_()
    shown = overview_html(comparison) + trace._repr_html_() + question_html(comparison, "q002") + drawn
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset='utf-8'><body {body}>{shown}")
    with browser(color_scheme=system) as page:
        page.goto((tmp_path / "page.html").as_uri())
        assert_readable(page, is_dark)


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_report_follows_the_system(run_dir: Path, tmp_path: Path, system: str) -> None:
    with browser(color_scheme=system) as page:
        page.goto(write_report(run_dir).as_uri())
        assert_readable(page, is_dark=system == "dark")
