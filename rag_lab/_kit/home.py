"""Where the workbench keeps what it remembers, and keys and settings that a file named .env puts into the environment.

Of such files that of the working folder goes first, then that of the project: the nearest folder above with a .git, a
pyproject.toml or a .rag_lab. One may come from somebody else. So one that belongs to another user is not read, and only
names are taken that cannot make a program run: keys, and settings of the workbench and of its traces.
"""

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

from rag_lab._kit.machine import in_kernel, owned_by_user, read_owned
from rag_lab.errors import ConfigError

NAME = ".rag_lab"
VARIABLE = "RAG_LAB_HOME"
PRIVATE = 0o700  # the mode of folders that are made for what is remembered: documents that only their owner reads, too
_at_work: ContextVar[Path | None] = ContextVar("rag_lab_home", default=None)
_OF_CHECKOUT = "rag_lab/_kit/home.py"  # this file: a folder that holds it under this path is a checkout


def home() -> Path:
    """Return the workbench's folder: `$RAG_LAB_HOME`, else the one of where we are, the same from any folder below.

    That is the nearest `.rag_lab` from the current folder upwards; in a checkout of rag_lab the checkout's. Elsewhere
    it is that of the checkout which the package is installed from, or without one `rag_lab` in the user's data folder.
    The folder returned may not exist.
    """
    folder: Path | None
    if named := os.environ.get(VARIABLE):
        folder = Path(named).resolve()
    else:  # none from beyond a checkout
        around = [(place / NAME, (place / _OF_CHECKOUT).is_file()) for place in (Path.cwd(), *Path.cwd().parents)]
        usable = (found for found, is_checkout in around if (found.is_dir() or is_checkout) and _may_be_used(found))
        folder = next(usable, None)
        if folder is None:
            from platformdirs import user_data_path

            checkout = Path(__file__).resolve().parents[2]
            is_usable = (checkout / "pyproject.toml").is_file() and _may_be_used(checkout / NAME)
            folder = checkout / NAME if is_usable else user_data_path("rag_lab", appauthor=False)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file, where the workbench's folder should be; set RAG_LAB_HOME to a folder.")
    return folder


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment in this block, also for the processes that it starts."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def working_at(folder: Path | None) -> Iterator[None]:
    """Let models that work in the block keep what they remember in `folder`, or in `home()` where it is None."""
    token = _at_work.set(folder)
    try:
        yield
    finally:
        _at_work.reset(token)


def home_at_work() -> Path:
    """Return where a model keeps what it remembers: the home of the pipeline that it works for, else `home()`."""
    return _at_work.get() or home()


def usable_home() -> Path:
    """Return `home()`, created if it is not there; which one that is, is printed once, unless the environment names it.

    One that the environment does not name is this user's alone, unless a group may write to it.
    """
    folder = home()
    try:
        folder.mkdir(PRIVATE, parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(
            f"Cannot write to {folder}, the workbench's folder: {error.strerror}; set RAG_LAB_HOME to another."
        ) from None
    if not os.environ.get(VARIABLE):
        if owned_by_user(folder) and not folder.stat().st_mode & 0o020:
            folder.chmod(PRIVATE)  # it may have been made before all of it was
        _print_once(f"What is computed is remembered in {folder} ({VARIABLE} names another folder).", is_fault=False)
    return folder


@cache  # once a process
def _print_once(sentence: str, is_fault: bool) -> None:
    """Print it on stderr; below the cell of a notebook, where that looks like an error, only a fault."""
    print(sentence, file=sys.stderr if is_fault or not in_kernel() else sys.stdout)


def _may_be_used(folder: Path) -> bool:
    """Return whether a folder that was found, and need not be there, is not another user's."""
    if not folder.is_dir() or owned_by_user(folder):
        return True
    _print_once(f"{folder} is not used, since it belongs to another user; {VARIABLE} can name it.", is_fault=True)
    return False


_PROJECT_MARKS = (".git", "pyproject.toml", ".rag_lab")
_MAX_BYTES = 2**20
_TAKEN = re.compile(r"[A-Z0-9_]+_API_KEY|HF_TOKEN|OPENAI_BASE_URL|OLLAMA_HOST|RAG_LAB_[A-Z_]+|OTEL_[A-Z_]+")
_NOT_TAKEN = ("RAG_LAB_MODULES", "RAG_LAB_LOG_FILE", "RAG_LAB_LEDGER")  # code would run, files would be written
_KEY_SENT_TO = {
    "OPENAI_BASE_URL": "OPENAI_API_KEY",
    "OLLAMA_HOST": "OLLAMA_API_KEY",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
}


# By this process: of each file the names that were put into the environment, and those that never are; no values.
env_files_read: dict[Path, tuple[tuple[str, ...], tuple[str, ...]]] = {}


def read_env_files(folder: Path | None = None) -> None:
    """Read the files of `folder`, the working folder where None, and of its project.

    What the environment names stays as it is, and is what everything started from here inherits. Printed on stderr are
    a file that belongs to another user, and an address to which a key goes that is not from the same file.
    """
    env_files_read.clear()
    start = folder or Path.cwd()
    above = (place for place in (start, *start.parents) if any((place / name).exists() for name in _PROJECT_MARKS))
    for place in dict.fromkeys([start, next(above, start)]):
        path = place / ".env"
        if not path.is_file():
            continue
        if not owned_by_user(path):
            print(f"{path} is not read, since it belongs to another user.", file=sys.stderr)
            continue
        from dotenv import dotenv_values

        try:
            text = io.StringIO(read_owned(path, _MAX_BYTES).decode("utf-8"))
            values = {n: v for n, v in dotenv_values(stream=text, interpolate=False).items() if v is not None}
        except (OSError, ValueError) as error:
            why = error.strerror or "it is too large" if isinstance(error, OSError) else "it is not text in UTF-8"
            raise ConfigError(f"Cannot read {path}: {why}; write NAME=value lines into it, or move it away.") from None
        # a value may not contain others, as a key of another kind would leave by it
        good = {n: v for n, v in values.items() if _TAKEN.fullmatch(n) and n not in _NOT_TAKEN and "${" not in v}
        new = {name: value for name, value in good.items() if name not in os.environ}
        os.environ.update(new)
        env_files_read[path] = (tuple(sorted(new)), tuple(sorted(values.keys() - good.keys())))
    for path, (taken, _) in env_files_read.items():
        for address, key in _KEY_SENT_TO.items():
            if address in taken and key not in taken and os.environ.get(key):
                print(f"{path} names the server that {key} is sent to: {os.environ[address]}", file=sys.stderr)
