"""The site that `make docs` builds: without a warning, opened from its folder, asking the network for nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser import browser, needs_browser, watch

REPOSITORY = Path(__file__).parents[2]
FETCHED = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=["']?(?:https?:)?//|url\(["']?https?://"""
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_no_page_and_no_style_fetches_from_elsewhere(site):
    files = [path for path in site.rglob("*") if path.suffix in {".html", ".css"}]
    assert {"index.html", "sweeps.html", "metrics.html", "contributing.html", "changelog.html"} <= {
        path.name for path in files
    }
    assert {path.name: found[0] for path in files if (found := FETCHED.search(path.read_text(encoding="utf-8")))} == {}


def test_links_between_files_of_the_repository_lead_to_pages_or_copies(site):
    assert 'href="sweeps.html"' in (site / "index.html").read_text(encoding="utf-8")
    copied = site / "constraints.txt"
    assert copied.read_bytes() == (REPOSITORY / "constraints.txt").read_bytes()


@needs_browser
def test_the_search_works_in_a_folder_without_a_server(site):
    with browser() as page:
        seen = watch(page)
        page.goto((site / "api/models.html").as_uri())
        page.evaluate("document.querySelector('.md-search__input').focus()")
        page.keyboard.type("randomization")
        found = "[...document.querySelectorAll('.md-search-result__link')].map((link) => link.href)"
        page.wait_for_function(f"{found}.length > 0")
        assert any("conclusions.html" in link for link in page.evaluate(found))
    assert seen.requests == []
