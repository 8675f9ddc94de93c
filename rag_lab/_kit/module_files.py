"""Files of one's own: `shortest` is `shortest.py` beside the experiment, here and in the kernels of a sweep."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

VARIABLE = "RAG_LAB_MODULES"  # the folder that is looked in; kernels inherit it, as they do the home
_PREFIX = "rag_lab_own_"  # no file of one's own can take the place of an installed package
_HELPERS: set[str] = set()  # what such files imported from beside them: other folders, and edited files, have their own


@contextmanager
def modules_beside(folder: Path) -> Iterator[None]:
    """Look for files in `folder` in this block, and in the processes that it starts."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder.resolve())
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def own_folder() -> Path:
    """Return the folder whose files can be named: `$RAG_LAB_MODULES`, else the current one."""
    return Path(os.environ.get(VARIABLE) or Path.cwd())


def load_own(name: str) -> ModuleType | None:
    """Return the module in the file of this dotted name, as the file is now; None where there is no such file.

    It is loaded anew where a file of the folder has changed, so that an edited helper is never the old one.
    """
    folder = own_folder()
    path = folder.joinpath(*name.split(".")).with_suffix(".py")
    if not path.is_file():
        return None
    state = sha256(str(path).encode())
    for file in sorted(path.parent.glob("*.py")):
        state.update(file.read_bytes())
    known_as = f"{_PREFIX}{name.replace('.', '_')}_{state.hexdigest()[:12]}"
    if known_as not in sys.modules:
        _load(path, known_as)
    return sys.modules[known_as]


def _load(path: Path, known_as: str) -> None:
    spec = spec_from_file_location(known_as, path)
    assert spec is not None and spec.loader is not None  # noqa: S101 - a .py file has both
    module = module_from_spec(spec)
    for helper in _HELPERS:
        sys.modules.pop(helper, None)
    before = set(sys.modules)
    sys.modules[known_as] = module  # dataclasses look their module up
    sys.path.append(str(path.parent))  # last: a helper beside it can be imported, and hides no package
    sys.path_importer_cache.pop(str(path.parent), None)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[known_as]
        raise
    finally:
        sys.path.remove(str(path.parent))
        _HELPERS.update(name for name in set(sys.modules) - before - {known_as} if _is_beside(path, name))


def _is_beside(path: Path, name: str) -> bool:
    file = getattr(sys.modules[name], "__file__", None)
    return bool(file) and Path(str(file)).parent == path.parent


def module_file(target: Any) -> str:
    """Return the file in which a class, a function, or the class of an instance is written; '' where none is."""
    owner = target if isinstance(target, type) or hasattr(target, "__qualname__") else type(target)
    module = sys.modules.get(owner.__module__)
    return str(getattr(module, "__file__", None) or "")
