"""The pictures of README and docs, taken of the real things: `make pictures`, after `make demo`."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import browser  # noqa: E402 -- of the tests, as JupyterLab below
from jupyter_lab import jupyter_lab, open_notebook, run_all, set_theme  # noqa: E402
from playwright.sync_api import Page  # noqa: E402

COMPARED = "Two variants, no labels"  # the part of the notebook that its picture begins with
TALL = 1150  # pixels of the bench that a picture shows
RUN = ROOT / "results/decisive"
PAIR = "#questions?variant=B&against=A&metric=retrieval.ndcg%405&order=changed"
BENCH = """\
import rag_lab as rl

base = rl.Pipeline("plant_docs").set("answer.name", "none")
rl.Bench(base, question="pd-001")"""


def main() -> None:
    """Take each picture anew."""
    with browser(1280, 800) as page:
        page.goto((RUN / "report.html").as_uri())
        page.screenshot(path=ROOT / "docs/report.png")
    with browser(1280, 1000) as page:
        page.goto((RUN / "report.html").as_uri() + PAIR)
        page.locator("#questions .q:visible > a").first.click()
        page.wait_for_load_state()
        page.screenshot(path=ROOT / "docs/pair.png")
    in_jupyterlab({"bench": [BENCH]}, look_at_bench)
    your_documents()
    for name in ("report", "pair", "bench", "bench_dark", "your_documents"):
        path = ROOT / f"docs/{name}.png"
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


def your_documents() -> None:
    """Run the notebook of the newcomer, and look at it from its first answer on."""
    notebook, out = ROOT / "notebooks/04_your_documents.ipynb", "your_documents.html"
    with tempfile.TemporaryDirectory() as folder:
        made = [
            sys.executable,
            "-m",
            "nbconvert",
            "--execute",
            "--to",
            "html",
            f"--output-dir={folder}",
            f"--output={out}",
        ]
        subprocess.run([*made, str(notebook)], check=True)  # noqa: S603 -- our own notebook
        with browser(1280, 1800) as page:
            page.goto((Path(folder) / out).as_uri())
            page.get_by_role("heading", name=COMPARED).evaluate("heading => heading.scrollIntoView()")
            page.screenshot(path=ROOT / "docs/your_documents.png")


def look_at_bench(page: Page, name: str) -> None:
    """Switch the reranker, run, and look at both settings in both themes."""
    page.locator(".bench [data-key='rerank.name'] select").select_option("query_likelihood")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector(".bench .out >> text=What moved")
    for theme, file in (("dark", f"{name}_dark.png"), ("light", f"{name}.png")):
        set_theme(page, theme)
        box = page.locator(".jp-OutputArea-output .bench").first.bounding_box()
        page.screenshot(path=ROOT / "docs" / file, clip={**box, "height": min(box["height"], TALL)})


def in_jupyterlab(books: dict[str, list[str]], look: Callable[[Page, str], None]) -> None:
    """Open each notebook, made of the sources of its cells, in a real JupyterLab, and look at it once it has run."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as settings:
        for name, sources in books.items():
            cells = [nbformat.v4.new_code_cell(source) for source in sources]
            nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), f"{folder}/{name}.ipynb")
        with jupyter_lab(Path(folder), Path(settings)) as address, browser(1500, 2600) as page:
            for name in books:
                open_notebook(page, address, f"{name}.ipynb")
                run_all(page)
                look(page, name)


if __name__ == "__main__":
    main()
