"""Keys and settings in a file named .env, put into the environment where it does not name them already.

That of the working folder goes first, then that of the project: the nearest folder above with a .git, a pyproject.toml
or a .rag_lab. Such a file may come from somebody else. So one that belongs to another user is not read, and only names
are taken that cannot make a program run: keys, and settings of the workbench and of its traces.
"""

import io
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from rag_lab._kit.process import owned_by_user, read_owned
from rag_lab.errors import ConfigError

NAME = ".env"
_OF_PROJECT = (".git", "pyproject.toml", ".rag_lab")
_MAX_BYTES = 2**20
_TAKEN = re.compile(r"[A-Z0-9_]+_API_KEY|HF_TOKEN|OPENAI_BASE_URL|OLLAMA_HOST|RAG_LAB_[A-Z_]+|OTEL_[A-Z_]+")
_NOT_TAKEN = ("RAG_LAB_MODULES", "RAG_LAB_LOG_FILE", "RAG_LAB_LEDGER")  # code would run, files would be written
_KEY_SENT_TO = {
    "OPENAI_BASE_URL": "OPENAI_API_KEY",
    "OLLAMA_HOST": "OLLAMA_API_KEY",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
}


class EnvNames(NamedTuple):
    """The names in one file: those that were put into the environment, and those that never are."""

    taken: tuple[str, ...]
    refused: tuple[str, ...]


env_files_read: dict[Path, EnvNames] = {}  # by this process; values are not kept


def read_env_files(folder: Path | None = None) -> None:
    """Read the files of `folder`, the working folder where None, and of its project.

    What the environment names stays as it is, and is what everything started from here inherits. Printed on stderr are
    a file that belongs to another user, and an address to which a key goes that is not from the same file.
    """
    env_files_read.clear()
    start = folder or Path.cwd()
    above = (place for place in (start, *start.parents) if any((place / name).exists() for name in _OF_PROJECT))
    for place in dict.fromkeys([start, next(above, start)]):
        path = place / NAME
        if not path.is_file():
            continue
        if not owned_by_user(path):
            print(f"{path} is not read, since it belongs to another user.", file=sys.stderr)
            continue
        values = _values(path)
        # a value may not contain others, as a key of another kind would leave by it
        good = {n: v for n, v in values.items() if _TAKEN.fullmatch(n) and n not in _NOT_TAKEN and "${" not in v}
        new = {name: value for name, value in good.items() if name not in os.environ}
        os.environ.update(new)
        env_files_read[path] = EnvNames(tuple(sorted(new)), tuple(sorted(values.keys() - good.keys())))
    for path, names in env_files_read.items():
        for address, key in _KEY_SENT_TO.items():
            if address in names.taken and key not in names.taken and os.environ.get(key):
                print(f"{path} names the server that {key} is sent to: {os.environ[address]}", file=sys.stderr)


def _values(path: Path) -> dict[str, str]:
    from dotenv import dotenv_values

    try:
        text = io.StringIO(read_owned(path, _MAX_BYTES).decode("utf-8"))
        return {n: v for n, v in dotenv_values(stream=text, interpolate=False).items() if v is not None}
    except (OSError, ValueError) as error:
        why = error.strerror or "it is too large" if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ConfigError(f"Cannot read {path}: {why}; write NAME=value lines into it, or move it away.") from None
