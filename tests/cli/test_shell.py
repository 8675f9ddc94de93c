"""What reaches the terminal, by whatever way, goes through the door."""

import io
import logging
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout

import pytest
import typer
from tqdm import tqdm

from rag_lab.cli.shell import guarded


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(params=[Terminal, io.StringIO], ids=["terminal", "file"])
def written(request, monkeypatch):
    """Return what reaches the stream below while something is said."""

    def run(say):
        under = request.param()
        with redirect_stdout(guarded(under)), redirect_stderr(guarded(under)):
            say()
        return under.getvalue()

    run.is_terminal = request.param is Terminal
    return run


EVIL = "\x1b]0;evil\x07\rX"
SHOWN = r"\x1b]0;evil\x07\x0dX"


@pytest.mark.parametrize(
    "say",
    [
        lambda: print(EVIL),
        lambda: typer.echo(EVIL),
        lambda: typer.echo(EVIL, err=True),
        lambda: typer.secho(EVIL, fg=None),
        lambda: sys.stdout.writelines([EVIL]),
        lambda: logging.StreamHandler().emit(logging.makeLogRecord({"msg": EVIL, "levelno": logging.WARNING})),
        lambda: logging.lastResort.emit(logging.makeLogRecord({"msg": EVIL, "levelno": logging.WARNING})),
        lambda: traceback.print_exception(ValueError(EVIL)),
        lambda: tqdm.write(EVIL, file=sys.stderr),
    ],
)
def test_every_way_to_the_terminal_goes_through_the_door(written, say):
    told = written(say)
    assert SHOWN in told
    assert "\x1b" not in told


def test_a_known_secret_does_not_pass(written, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "correct-horse")
    assert written(lambda: typer.echo("the key correct-horse-battery")) == "the key [hidden]-battery\n"


def test_a_bar_is_drawn_over_itself_on_a_terminal_and_is_lines_in_a_file(written):
    def draw():
        with tqdm(total=2, desc=EVIL, mininterval=0, ascii=True) as bar:
            bar.update()
            tqdm.write("told", file=sys.stderr)
            bar.set_postfix_str(EVIL)

    told = written(draw)
    assert "\x1b" not in told
    assert "\rX" not in told
    assert ("\r" in told) == written.is_terminal
    assert "50%" in told and "told\n" in told


@pytest.mark.parametrize("move", ["\x1b[A", "\x1b[A\x1b[A", "\r    \r"])
def test_a_bar_goes_back_and_empties_its_line_on_a_terminal_alone(written, move):
    assert written(lambda: sys.stderr.write(move)) == (move if written.is_terminal else "")


def test_what_the_encoding_cannot_write_is_escaped():
    under = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    guarded(under).write("Maß \ud800")
    under.flush()
    assert under.buffer.getvalue() == rb"Ma\xdf \ud800"


def test_a_stream_is_guarded_once():
    one = guarded(io.StringIO())
    assert guarded(one) is one
    assert not hasattr(one, "buffer")
