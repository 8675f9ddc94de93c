"""A headless Chromium, driven by Playwright: one page a test, what it must never do, and the rules of accessibility."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

CHROMIUM = shutil.which("chromium")
PATIENCE_S = 120
FLAGS = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"]

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")


@contextmanager
def browser(width: int = 1280, height: int = 1600, **context: Any) -> Iterator[Page]:
    """Start a browser with one page; `context` takes Playwright's settings, as `java_script_enabled=False`."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = chromium.new_context(viewport={"width": width, "height": height}, **context).new_page()
        page.set_default_timeout(1000 * PATIENCE_S)
        yield page
        chromium.close()


@dataclass
class Watched:
    """What a page did that a report or a notebook's output must never do; all empty where all is well."""

    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)  # beyond the disk
    errors: list[str] = field(default_factory=list)  # exceptions, and errors and warnings of the console


def watch(page: Page) -> Watched:
    """Begin to record what `page` does; call it before the page is opened."""
    seen = Watched()

    def dialog(shown: Any) -> None:
        seen.dialogs.append(shown.message)
        shown.dismiss()

    def request(sent: Any) -> None:
        if not sent.url.startswith(("file:", "data:", "about:", "blob:")):
            seen.requests.append(sent.url)

    def console(message: Any) -> None:
        if message.type in ("error", "warning"):
            seen.errors.append(message.text)

    page.on("dialog", dialog)
    page.on("request", request)
    page.on("console", console)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    return seen


def axe_faults(page: Page) -> list[str]:
    """Return a line for each fault that axe-core finds: its rule, and the elements that break it."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {[node['html'] for node in one['nodes'][:5]]}" for one in found]
