"""Digests by which values and source code know each other again, and names that they make short and distinct."""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = 5  # one of 1.7 billion words


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, the same for any key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def digest_word(value: Any) -> str:
    """Return the digest of a JSON value as a word of five syllables, such as `bakimotura`, that people can say."""
    number, word = int(digest(value), 16), ""
    for _ in range(_SYLLABLES):
        number, consonant = divmod(number, len(_CONSONANTS))
        number, vowel = divmod(number, len(_VOWELS))
        word += _CONSONANTS[consonant] + _VOWELS[vowel]
    return word


def short_name(text: str, max_length: int, value: Any) -> str:
    """Return `text`, shortened at a word if it has more than `max_length` characters, and distinct for each `value`."""
    if len(text) <= max_length:
        return text
    word = digest_word(value)
    short = re.split(r"[^A-Za-z0-9]+(?=[A-Za-z0-9]*$)", text[: max_length - len(word) - 1])[0]
    return f"{short.removesuffix('_and')}-{word}"


def source_digest(target: Any) -> str:
    """Return the digest of the class or function `target`, so that an edited one is never taken for the one before.

    Of a file, it covers the file and the files of the same folder that it imports; of a notebook's cell, the code and
    whatever of the notebook that code names. What is made inside a function, such as a lambda, has no name in its file,
    so its code and what it closes over count as well.
    """
    module = sys.modules.get(getattr(target, "__module__", ""))
    path = _file(module)
    if module is None or path is None or module.__name__ == "__main__":
        return digest(list(_cells(target, set())))
    found, waiting = {path}, [module]
    while waiting:
        for value in list(vars(waiting.pop()).values()):
            named = sys.modules.get(getattr(value, "__module__", None) or "")
            other = value if isinstance(value, ModuleType) else named
            file = _file(other)
            if other is not None and file is not None and file.parent == path.parent and file not in found:
                found.add(file)
                waiting.append(other)
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(found)}
    is_named = "<" not in getattr(target, "__qualname__", "")
    return digest(files if is_named else [files, *_cells(target, set())])


def _file(module: ModuleType | None) -> Path | None:
    path = Path(getattr(module, "__file__", None) or "")
    return path if path.suffix == ".py" and path.is_file() else None


def _cells(target: Any, seen: set[int]) -> Iterator[Any]:
    """Yield what can change the behaviour of something that no file holds: its code, its constants, what it names."""
    if id(target) in seen:
        return
    seen.add(id(target))
    if isinstance(target, FunctionType):
        yield from (target.__qualname__, repr(target.__defaults__), repr(target.__kwdefaults__))
        yield from _code(target.__code__)
        for name in sorted(_names(target.__code__)):
            yield from _named(target.__globals__.get(name), name, target.__module__, seen)
        for cell in target.__closure__ or ():
            yield from _named(cell.cell_contents, "closure", target.__module__, seen)
    elif isinstance(target, type):
        yield target.__qualname__
        for name, value in sorted(vars(target).items()):
            inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            yield from _named(inner, name, target.__module__, seen)
        for base in target.__bases__:
            yield from _named(base, "base", target.__module__, seen)


def _named(value: Any, name: str, module: str, seen: set[int]) -> Iterator[Any]:
    if isinstance(value, FunctionType | type):
        if value.__module__ == module:
            yield from _cells(value, seen)
    elif isinstance(value, str | int | float | bool | bytes | tuple | frozenset | list | dict | set | None):
        yield [name, repr(value)]


def _code(code: CodeType) -> Iterator[Any]:
    yield code.co_code.hex()
    yield list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield repr(constant)


def _names(code: CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)
