"""A real JupyterLab on a folder of its own, with settings, kernels and data of its own, to be opened in a browser."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from browser import PATIENCE_S
from playwright.sync_api import Page

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


@contextmanager
def jupyter_lab(folder: Path, settings: Path) -> Iterator[str]:
    """Serve the notebooks of `folder` and yield the address; what JupyterLab keeps, it keeps in `settings`."""
    own = {f"JUPYTER_{name}_DIR": str(settings / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    own |= {"JUPYTERLAB_SETTINGS_DIR": str(settings / "lab"), "JUPYTERLAB_WORKSPACES_DIR": str(settings / "spaces")}
    notices = settings / "lab/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    notices.parent.mkdir(parents=True, exist_ok=True)
    notices.write_text('{"fetchNews": "false", "checkForUpdates": false}')  # or it asks whether to, over the notebook
    flags = ["--no-browser", "--expose-app-in-browser", "--allow-root", "--IdentityProvider.token=", "--port=0"]
    with (settings / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *flags, f"--notebook-dir={folder}"],
            env={**os.environ, **own},
            stdout=log,
            stderr=log,
        )
    try:
        yield _address(settings / "runtime", process)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:  # a kernel of it hangs; the next test needs another server
            process.kill()
            process.wait()


def open_notebook(page: Page, address: str, name: str) -> None:
    """Open a notebook of the server and wait until its kernel is there."""
    page.goto(f"{address}lab/tree/{name}?reset")
    page.wait_for_function("!!window.jupyterapp && !!document.querySelector('.jp-Notebook .jp-CodeCell')")
    page.wait_for_function(_IDLE)


def set_theme(page: Page, theme: str) -> None:
    """Change JupyterLab's theme to `light` or `dark`, as its menu does."""
    page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", THEMES[theme])
    page.wait_for_function(f"document.body.dataset.jpThemeLight === '{str(theme == 'light').lower()}'")
    page.wait_for_selector("#jupyterlab-splash", state="hidden")  # it fades over what is there


def run_all(page: Page) -> None:
    """Run all cells, as the menu does, and wait until they have run."""
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(_IDLE)


_IDLE = "jupyterapp.shell.currentWidget?.context?.sessionContext?.session?.kernel?.status === 'idle'"


def _address(runtime: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + PATIENCE_S
    while True:
        for file in runtime.glob("jpserver-*.json"):
            with suppress(ValueError):  # it is being written
                return str(json.loads(file.read_text())["url"])
        assert process.poll() is None and time.monotonic() < end, "JupyterLab did not start"
        time.sleep(0.2)
