import sys

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.experiment.design import Variant
from rag_lab.experiment.manifest import VariantState
from rag_lab.experiment.run.sweep_progress import SweepProgress
from rag_lab.runs.run_folder import RunFolder

VARIANTS = [Variant(name, name, {}, PipelineConfig()) for name in "ab"]


@pytest.fixture
def run(tmp_path):
    found = RunFolder(tmp_path, "n", "q", "d", "a", (), 1, ())
    for name in "ab":
        found.variant_dir(name).mkdir(parents=True)
    return found


def tell(run, name, stage):
    (run.variant_dir(name) / "live.txt").write_text(stage)


def go_through(run):
    with SweepProgress(3, 1, shown=True) as progress:
        tell(run, "a", "generate 1/4")
        for _ in range(200):
            progress.look(run, VARIANTS)
        progress.end(VariantState("a", "ok", seconds=12.0))
        progress.end(VariantState("b", "failed", "It broke.", seconds=3.0))


def test_a_log_file_gets_one_line_a_variant(run, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    go_through(run)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["[2/3] a ok (12 s)", "[3/3] b failed: It broke. (3 s)"]


def test_a_terminal_gets_a_bar_that_is_drawn_where_something_changed(run, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    go_through(run)
    out, err = capsys.readouterr()
    assert out == ""
    assert "a: generate 1/4" in err
    assert err.count("\r") < 20
    assert "b failed: It broke." in err


def test_nothing_is_shown_where_nothing_is_asked_for(run, capsys):
    with SweepProgress(1, 0, shown=False) as progress:
        progress.look(run, VARIANTS)
        progress.end(VariantState("a", "failed", "It broke."))
    assert capsys.readouterr() == ("", "")
