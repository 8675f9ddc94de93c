"""The page in a real browser: it renders, its script runs, it reports no error and asks the network for nothing."""

from pathlib import Path

import pytest
from browser import Watched, browser, needs_browser, watch

from rag_lab.report.page.report_page import write_report
from rag_lab.runs.run_folder import RunFolder

pytestmark = [pytest.mark.slow, needs_browser]


def test_the_page_runs_without_errors_and_draws(run: RunFolder, tmp_path: Path) -> None:
    import numpy as np
    from matplotlib.image import imread

    shot = tmp_path / "page.png"
    with browser() as page:
        seen = watch(page)
        page.goto(write_report(run.path).as_uri())
        assert page.locator("#f-count").inner_text() == "12 of 12 questions"
        assert page.locator("form.filter").is_visible()
        page.screenshot(path=shot)
    assert seen == Watched()
    pixels = imread(shot)
    assert pixels.shape[1] == 1280
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 50
