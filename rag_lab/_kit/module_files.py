"""Files of custom modules: `shortest` is `shortest.py` in the experiment's folder; and which files such code opens."""

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
_PREFIX = "rag_lab_custom_"  # no custom file can take the place of an installed package
_HELPERS: set[str] = set()  # imported by such files from their folder: other folders, and edited files, have others
_CODE = {".py", ".pyc", ".so", ".pyd", ".dll"}
_METADATA = {".dist-info", ".egg-info"}  # of an installed package, in which libraries look entry points up
_CACHES = ("HF_HOME", "HF_HUB_CACHE", "TORCH_HOME", "XDG_CACHE_HOME")  # where libraries keep weights
_open: dict[int, set[Path]] = {}  # by `id`: equal sets are not the same
_hooked: list[bool] = []  # an audit hook cannot be taken out again, so one serves all blocks
_paused: list[bool] = []


@contextmanager
def modules_from(folder: Path) -> Iterator[None]:
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


def modules_folder() -> Path:
    """Return the folder whose files can be named: `$RAG_LAB_MODULES`, else the current one."""
    return Path(os.environ.get(VARIABLE) or Path.cwd())


def load_module_file(name: str) -> ModuleType | None:
    """Return the module in the file of this dotted name, as the file is now; None where there is no such file.

    It is loaded anew where a file of the folder has changed, so that an edited helper is never the old one.
    """
    path = modules_folder().joinpath(*name.split(".")).with_suffix(".py")
    if not path.is_file():
        return None
    state = sha256(str(path).encode())
    for file in sorted(path.parent.glob("*.py")):
        state.update(file.read_bytes())
    known_as = f"{_PREFIX}{name.replace('.', '_')}_{state.hexdigest()[:12]}"
    if known_as in sys.modules:
        return sys.modules[known_as]
    spec = spec_from_file_location(known_as, path)
    assert spec is not None and spec.loader is not None  # noqa: S101 - a .py file has both
    module, folder = module_from_spec(spec), path.parent
    for helper in _HELPERS:
        sys.modules.pop(helper, None)
    before = set(sys.modules)
    sys.modules[known_as] = module  # dataclasses look their module up
    sys.path.append(str(folder))  # last: a helper there can be imported, and hides no package
    sys.path_importer_cache.pop(str(folder), None)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[known_as]
        raise
    finally:
        sys.path.remove(str(folder))
        new = {name: getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before - {known_as}}
        _HELPERS.update(name for name, file in new.items() if file and Path(str(file)).parent == folder)
    return module


def module_file(target: Any) -> str:
    """Return the file in which a class, a function, or the class of an instance is written; '' where none is."""
    owner = target if isinstance(target, type) or hasattr(target, "__qualname__") else type(target)
    module = sys.modules.get(owner.__module__)
    return str(getattr(module, "__file__", None) or "")


@contextmanager
def opened_files() -> Iterator[set[Path]]:
    """Yield the set of files that the block opens for reading; those of libraries and caches are left out."""
    if not _hooked:
        sys.addaudithook(_note)
        _hooked.append(True)
    paths: set[Path] = set()
    _open[id(paths)] = paths
    try:
        yield paths
    finally:
        del _open[id(paths)]


@contextmanager
def unwatched() -> Iterator[None]:
    """Leave out what is opened here, by whatever thread: a model's weights are known by the model's identity."""
    _paused.append(True)
    try:
        yield
    finally:
        _paused.pop()


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    """Note a file that is opened, unless it is a library's or the system's, or weights in a cache."""
    if not _open or _paused or event != "open" or not isinstance(arguments[0], str | Path):
        return
    path = Path(arguments[0])
    if path.suffix in _CODE or path.parent.suffix in _METADATA or not str(arguments[1] or "r").startswith("r"):
        return
    caches = ("~/.cache", *(os.environ[name] for name in _CACHES if os.environ.get(name)))
    folders = (sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev", "/etc", "/usr", *caches)
    if not any(path.absolute().is_relative_to(Path(folder).expanduser()) for folder in folders):
        for each in list(_open.values()):  # other threads begin and end theirs
            each.add(path.resolve())
