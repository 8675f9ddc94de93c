"""The digest of a module's source, so that an edited one is never taken for the one that was run before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from rag_lab._kit.digest import digest


def source_digest(target: Any) -> str:
    """Return the digest of the class or function `target`.

    Of a file, it covers the file and the files of the same folder that it imports; of a notebook's cell, the code and
    whatever of the notebook that code names. What is made inside a function, such as a lambda, has no name of its own
    in its file, so its code and what it closes over count as well.
    """
    module = sys.modules.get(getattr(target, "__module__", ""))
    path = _file(module)
    if module is not None and path is not None and module.__name__ != "__main__":
        files = {other.name: sha256(other.read_bytes()).hexdigest() for other in sorted(_files(module, path))}
        is_named = "<" not in getattr(target, "__qualname__", "")
        return digest(files if is_named else [files, *_cells(target, set())])
    return digest(list(_cells(target, set())))


def _file(module: ModuleType | None) -> Path | None:
    path = Path(getattr(module, "__file__", None) or "")
    return path if path.suffix == ".py" and path.is_file() else None


def _files(module: ModuleType, path: Path) -> set[Path]:
    found, waiting = {path}, [module]
    while waiting:
        for value in list(vars(waiting.pop()).values()):
            other = (
                value if isinstance(value, ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
            )
            beside = _file(other)
            if other is not None and beside is not None and beside.parent == path.parent and beside not in found:
                found.add(beside)
                waiting.append(other)
    return found


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
