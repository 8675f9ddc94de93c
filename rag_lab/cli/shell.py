"""What a terminal adds to commands: help in groups, options before a command's name, what to type next.

Through `GuardedStream` leaves all that the command line says: no secret and no control character passes. Answers, file
names and a server's errors come from outside, and reach the terminal in many ways: by a command, a log, a progress
bar, a traceback. There they all meet.
"""

import io
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO, cast

import typer
from typer.core import TyperCommand, TyperGroup

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.observability import LEVELS, begin_logs
from rag_lab.cli.completion import DESIGNS
from rag_lab.errors import ConfigError, nearest
from rag_lab.redaction import shown

_GROUPS: dict[str, dict[str, Any]] = read_shipped(Path(__file__).with_name("groups.yaml"))
FIRST, GROUPS = _GROUPS["first"], _GROUPS["groups"]
is_whole_process = False  # whether the process is a command's and nobody else's


class GroupedCommands(TyperGroup):
    """Lists commands by group; one that is in none stands with the others of the workbench."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command; a name that is a design's, or nearly, is answered with how a design is run."""
        is_known = ctx.resilient_parsing or args[0] in self.commands or nearest(args[0], self.commands)
        if not is_known and (design := nearest(args[0], DESIGNS)):
            meant = f"rag-lab vary KEY=A,B --design {design[0]}"
            raise ConfigError(f"There is no command {args[0]!r}; did you mean `{meant}`?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first commands, then a section a group."""
        with formatter.section("Begin with"):
            formatter.write_dl(list(FIRST.items()), col_max=50)
        known = [name for names in GROUPS.values() for name in names]
        others = [name for name in self.list_commands(ctx) if name not in known]
        width = max(map(len, self.list_commands(ctx)))
        for title, names in GROUPS.items():
            names = names + others if title == "The workbench" else names
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [
                (name.ljust(width), command.get_short_help_str(formatter.width - width - 4))
                for name, command in commands
                if command is not None and not command.hidden
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


class CommandWithExamples(TyperCommand):
    """Shows what help.yaml says of it, of its arguments and options, and the examples that examples.yaml has of it."""

    def get_params(self, ctx: Any) -> Any:
        """Return its arguments and options, with their texts."""
        found, known = super().get_params(ctx), read_shipped(Path(__file__).with_name("help.yaml"))
        self.words = ctx.command_path.removeprefix(ctx.find_root().command_path).strip()
        self.texts = known["shared"] | known.get(self.words, {})
        for one in found:
            vars(one)["help"] = vars(one).get("help") or self.texts.get(one.name)
        return found

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what it does, and its examples as they stand."""
        super().format_help_text(ctx, formatter)
        examples = read_shipped(Path(__file__).with_name("examples.yaml")).get(self.words, "").split("\n\n")
        about = self.texts.get("about", "").split("\n\n")
        for block in filter(None, [*about, *(f"\b\n{one}" for one in examples if one)]):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(block)


def global_options(
    log_level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help=f"Log from this level on: {', '.join(LEVELS)}. On stderr, or in the log file.",
            autocompletion=lambda: list(LEVELS),
        ),
    ] = None,
    log_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append JSON lines to this file, kernels too: time, level, logger, message, variant, stage, question.",
        ),
    ] = None,
) -> None:
    """Begin to log where it is asked for."""
    begin_logs(log_level, log_file)


def next_steps(*steps: str) -> None:
    """Say what can be typed next, a line each."""
    typer.echo("\nNext:" + "".join(f"\n  {step}" for step in steps), err=True)


def next_steps_of_run(run: Path | str) -> None:
    """Say what can be done with a run folder."""
    folder = shlex.quote(str(run))
    next_steps(
        f"rag-lab open {folder}      its report in the browser",
        f"rag-lab compare {folder}   its scores here, as Markdown, LaTeX or CSV",
    )


def command_line(without: str = "") -> str:
    """Return the command that is running as it can be typed again, `without` one of its options."""
    return shlex.join(["rag-lab", *(word for word in sys.argv[1:] if word != without)])


@contextmanager
def stopped_in_order(ask_to_end: Callable[[], object] | None = None) -> Iterator[None]:
    """Let a request to end, or the end of the terminal, stop the block as Ctrl-C does; nohup's wish is kept.

    With `ask_to_end` these and Ctrl-C call it, so that the block ends in order; a second one ends it at once.
    """
    ends = {one: signal.SIG_DFL for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL}
    before = ends | ({signal.SIGINT: signal.getsignal(signal.SIGINT)} if ask_to_end else {})

    def stop(*_: Any) -> None:
        if ask_to_end is None:
            raise KeyboardInterrupt
        ask_to_end()
        for one, handler in before.items():
            signal.signal(one, handler)

    try:
        for one in before:
            signal.signal(one, stop)
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


_LINE_UP = re.compile(r"(?:\x1b\[A)+")  # how a progress bar goes back to its line
_CLEARED = re.compile(r"\r *\r?")  # how it empties its line


class GuardedStream:
    """Writes to `stream` what may be shown. A bar's own return to the start of its line passes on a terminal."""

    color = True  # so that click leaves escape sequences for this stream to show, and drops none in silence

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `text` as it may be shown."""
        is_terminal = self._stream.isatty()
        if _LINE_UP.fullmatch(text) or _CLEARED.fullmatch(text):
            self._stream.write(text if is_terminal else "")
        elif text.startswith("\r"):  # a file gets a line each time of a bar, which would be drawn over itself
            self._stream.write(("\r" if is_terminal else "\n") + shown(text[1:]))
        else:
            self._stream.write(shown(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write each of `lines`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # bytes written to it would go around this door
            raise AttributeError(name)
        return getattr(self._stream, name)


def guarded(stream: TextIO) -> TextIO:
    """Return `stream` behind the door, once; what its encoding cannot write is escaped there."""
    if isinstance(stream, GuardedStream):
        return cast(TextIO, stream)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return cast(TextIO, GuardedStream(stream))
