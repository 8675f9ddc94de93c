import re
import sys
from time import time

import pytest

from rag_lab.experiment.manifest import VariantState
from rag_lab.experiment.run.progress import SweepProgress
from rag_lab.runs.run_folder import RunFolder, write_json
from rag_lab.runs.variant_files import LIVE_FILE, LiveVariant


@pytest.fixture
def run(tmp_path):
    found = RunFolder(tmp_path, "n", "q", "d", "a", (), 1, ())
    for name in "ab":
        found.variant_dir(name).mkdir(parents=True)
    return found


def tell(run, name, stage, done=0, total=None):
    write_json(run.variant_dir(name) / LIVE_FILE, LiveVariant(stage, time() - 10.0, done, total))


def go_through(run):
    with SweepProgress(run, shown=True) as progress, progress.variants(3, 1):
        tell(run, "a", "generate", 1, 4)
        for _ in range(200):
            progress.look(run, ["a", "b"])
        progress.end(VariantState("a", "ok", seconds=12.0))
        progress.end(VariantState("b", "failed", "It broke.", seconds=3.0))


def test_a_log_file_gets_one_line_a_variant(run, capsys):
    go_through(run)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["[2/3] a ok (12 s)", "[3/3] b failed: It broke. (3 s)"]


def test_a_log_file_gets_a_line_now_and_then_of_what_runs_and_what_is_left(run, capsys, monkeypatch):
    monkeypatch.setattr("rag_lab.experiment.run.progress._TELL_EVERY_S", 0.0)
    with SweepProgress(run, shown=True) as progress, progress.variants(5, 0):
        progress.end(VariantState("first", "ok", seconds=120.0))
        tell(run, "a", "generate", 1, 4)
        progress.look(run, ["a", "b"])
        progress.look(run, [])
    first, line = capsys.readouterr().err.splitlines()
    assert line.startswith("[1/5] after 0.0 min: a at generate 1/4 and b at its start; 2 waiting; ")
    assert line.endswith("; 2.0 min to 12 min left")  # four variants of 1 to 4 minutes, two at a time


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr("rag_lab.experiment.run.progress.is_watched", lambda: True)


def test_a_terminal_gets_bars_that_are_drawn_where_something_changed(run, capsys, terminal):
    go_through(run)
    out, err = capsys.readouterr()
    assert out == ""
    assert "a: generate:  25%" in err and "| 1/4 [" in err and "  b: starts [" in err
    assert err.count("\r") < 40


def test_each_variant_that_runs_has_a_line_and_leaves_one_when_it_ends(run, capsys, terminal):
    with SweepProgress(run, shown=True) as progress, progress.variants(2, 0):
        progress.look(run, ["a", "b"])
        tell(run, "a", "hyde", 2, 9)
        tell(run, "b", "index")
        progress.look(run, ["a", "b"])
        progress.end(VariantState("a", "ok", seconds=12.0))
        progress.look(run, ["b"])
    lines = screen(capsys.readouterr().err)
    assert lines[0] == "[1/2] a ok (12 s)"
    assert lines[1].startswith("variants:  50%")
    assert not any("hyde" in line for line in lines)


def test_a_variant_that_says_nothing_for_a_moment_keeps_its_stage(run, capsys, terminal):
    with SweepProgress(run, shown=True) as progress, progress.variants(2, 0):
        tell(run, "a", "hyde", 2, 9)
        progress.look(run, ["a"])
        (run.variant_dir("a") / LIVE_FILE).unlink()
        progress.look(run, ["a"])
    err = capsys.readouterr().err
    assert "a: hyde" in err and "a: starts" not in err


def test_what_a_library_says_meanwhile_stands_above_the_bars(run, capsys, terminal):
    with SweepProgress(run, shown=True) as progress, progress.variants(2, 0):
        progress.look(run, ["a"])
        print("A library warns.", file=sys.stderr)
        progress.look(run, ["a"])
    lines = screen(capsys.readouterr().err)
    assert lines[0] == "A library warns."
    assert lines[1].startswith("variants:   0%")


def screen(written):
    """What a terminal shows after all of it: `\r` and the way up move, everything else is put in place."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[A|\r|\n|[^\x1b\r\n]+", written):
        if part == "\r":
            column = 0
        elif part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[A":
            row -= 1
        else:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + part + line[column + len(part) :]
            column += len(part)
    return [line.rstrip() for line in lines if line.strip()]


def test_nothing_is_shown_where_nothing_is_asked_for(run, capsys):
    with SweepProgress(run, shown=False) as progress, progress.variants(1, 0):
        progress.look(run, ["a"])
        progress.end(VariantState("a", "failed", "It broke."))
    assert capsys.readouterr() == ("", "")
