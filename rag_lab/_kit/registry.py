"""Where a module comes from: it is built in, an entry point of an installed package, or `module:attribute`.

Every kind of module has one `Kind`; ours and a user's come in by it, and there is no other way in. What follows a `?`
are parameters: `shortest:Shortest?keep=4`. They are the fields of a frozen dataclass, checked by their annotations.
`shortest` is `shortest.py` in the experiment's folder; which files such code opens is noted, too.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module, metadata
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, get_type_hints
from urllib.parse import unquote

import yaml
from pydantic import ConfigDict, ValidationError, create_model

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.digest import source_digest
from rag_lab._kit.home import variable
from rag_lab._kit.section import complaint_and_value, key_of
from rag_lab._kit.wording import listing
from rag_lab.errors import ConfigError, RagLabError, nearest, unknown_name
from rag_lab.redaction import names_secret

FACTORY = "langchain:"  # before `module:factory`: the factory is called and returns an object of LangChain's
_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_CUSTOM = re.compile(rf"(?:langchain:)?{_DOTTED}:{_DOTTED}")
_CHECKS = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False)
_OTHER_FORMS = ("identity", "split_text", "lazy_load", "invoke")  # of a whole stage or splitter, and of LangChain's
_all_installed = cache(metadata.entry_points)  # reads a file of every package, which takes long: once for all kinds
version = cache(metadata.version)  # reads one, too, and stages and metrics say it many times
_SHAPE = """
    from dataclasses import dataclass
    from typing import ClassVar

    @dataclass(frozen=True)
    class {name}:
        version: ClassVar[int] = 1  # raise it where results change for a reason outside this file

        def {call}:
            ...
"""


def missing_package(module: str, package: str) -> str:
    """Return the sentence for a package that is not installed, or ''."""
    return "" if find_spec(module) else f"The package {module} is not installed; run: pip install {package!r}."


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A module that ships with the workbench: where it is, what it is, and what it needs to be used here."""

    target: str  # module:attribute
    summary: str
    needs: str = ""  # what must be importable
    install: str = ""  # what to give pip where it is not

    @property
    def missing(self) -> str:
        """What keeps it from being used here and what to do, as a sentence, or ''."""
        return missing_package(self.needs, self.install or self.needs) if self.needs else ""


@dataclass(frozen=True, slots=True)
class Module:
    """What a name stands for: `value` is an instance where a class was named, else what was named itself.

    `source` is the digest of its source, for the identity of whatever uses it; '' of what is built in.
    """

    name: str
    value: Any
    source: str = ""


@dataclass(frozen=True)
class Kind:
    """One kind of module: what is built in, and the group of entry points under which packages bring more."""

    name: str  # as sentences say it: `reranker`
    group: str  # `rag_lab.rerankers`
    built_in: Mapping[str, BuiltIn] = field(default_factory=dict)
    call: str = ""  # how one is called: `__call__(self, question, passages)`

    def names(self) -> list[str]:
        """Return what can be named without a colon: what is built in, then what is installed."""
        return [*self.built_in, *(name for name in installed(self.group) if name not in self.built_in)]

    def check(self, text: str) -> str:
        """Return `text` if it can name a module of this kind, else raise a ValueError; nothing is imported."""
        name, _, written = text.partition("?")
        if not _CUSTOM.fullmatch(name) and name not in self.built_in and name not in self.names():
            near = nearest(name, self.names())
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise ValueError(f"must be {', '.join(self.names())} or one of your own as module:Class{hint}")
        if name in self.built_in and written:
            raise ValueError(f"{name} takes its parameters from the configuration, not from its name")
        parse_parameters(text)
        return text

    def find(self, text: str) -> Module:
        """Import what `text` names and construct it with its parameters."""
        name, parameters = text.partition("?")[0], parse_parameters(text)
        if name in self.built_in:
            entry = self.built_in[name]
            if entry.missing:
                raise ConfigError(f"The {self.name} {name} can not be used here: {entry.missing}")
            module, _, attribute = entry.target.partition(":")
            return Module(name, getattr(import_module(module), attribute))
        target, what = self.load(name), f"{self.name} {name!r}"
        with importing(what):
            if name.startswith(FACTORY):
                return Module(text, target(**parameters), source_digest(target))
            return Module(text, construct(target, parameters, what, self.call), source_digest(target))

    def problem(self, text: str) -> str:
        """Return why what `text` names cannot be used here, in one sentence, or ''; it is imported to find out."""
        try:
            self.find(text)
        except ConfigError as error:
            return str(error)
        return ""

    def load(self, name: str) -> Any:
        """Import the class, the function or the factory that a name which is not built in stands for."""
        what = f"{self.name} {name!r}"
        with importing(what):
            if ":" in name:
                module, _, attribute = name.removeprefix(FACTORY).partition(":")
                if module == "__main__":
                    raise ConfigError(
                        f"The {what} lives in this process alone, and the kernels of a sweep cannot import it: put it "
                        f"into a file beside the experiment and name it, as in 'my_file:{attribute}'."
                    )
                try:
                    found: Any = load_module_file(module) or import_module(module)
                except ModuleNotFoundError as error:
                    if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                        raise  # it is there, and something that it imports is not
                    where = f"put {module.replace('.', '/')}.py into {modules_folder()}, or install {module!r}"
                    raise ConfigError(f"The {what} is not there: {where}.") from None
                for part in attribute.split("."):
                    if not hasattr(found, part):
                        raise ConfigError(
                            f"The {what} is not there: {module!r} has no {attribute!r}; see how it is spelt."
                        )
                    found = getattr(found, part)
                return found
            entries = installed(self.group).get(name, ())
            if not entries:
                raise ConfigError(unknown_name(self.name, name, self.names()))
            if name in self.built_in:
                raise ConfigError(
                    f"The {self.name} {name} is built in, so {package(entries[0])} can not claim its name; use another."
                )
            if len(entries) > 1:
                claims = " and ".join(f"{package(entry)} ({entry.value})" for entry in entries)
                raise ConfigError(f"More than one package claims the {what}: {claims}; uninstall all but one.")
            return entries[0].load()


def kinds_of(path: Path, package: str, make: Callable[..., BuiltIn] = BuiltIn) -> Iterator[Kind]:
    """Yield the kinds of modules that a YAML file lists, in its order; the targets there are below `package`."""
    for kind in (one for one in read_shipped(path).values() if "built_in" in one):  # others are pieces that kinds share
        made = ((name, one | {"target": f"{package}.{one['target']}"}) for name, one in kind["built_in"].items())
        yield Kind(**kind | {"built_in": {name: make(**one) for name, one in made}})


def from_object(thing: Any, kind: Kind) -> Module:
    """Return an object in memory as a module: a function, an instance, or a class, which is constructed."""
    if isinstance(thing, str):
        raise ConfigError(f"A {kind.name} is given as an object here, got {thing!r}; name one by a key, with `set`.")
    if not isinstance(thing, type) and not isinstance(thing, FunctionType):
        if not hasattr(thing, "identity"):
            check_class(type(thing), f"{kind.name} {thing!r}", kind.call)
        return Module(repr(thing), thing, source_digest(type(thing)))
    what = f"{kind.name} {thing.__name__!r}"
    return Module(thing.__name__, construct(thing, {}, what, kind.call), source_digest(thing))


@cache
def installed(group: str) -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
    """Return the entry points of a group by name; more than one where packages claim the same name."""
    found: dict[str, tuple[metadata.EntryPoint, ...]] = {}
    for entry in _all_installed().select(group=group):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def package(entry: metadata.EntryPoint) -> str:
    """Return the name and the version of the package that an entry point comes with."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist and entry.dist.name else "an unnamed package"


@contextmanager
def importing(what: str) -> Iterator[None]:
    """Turn whatever the code of others raises, as it is imported or constructed, into a sentence."""
    try:
        yield
    except RagLabError:
        raise
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"The {what} does not load ({type(error).__name__}: {reason}); mend its file.") from error


def parse_parameters(text: str) -> dict[str, Any]:
    """Return the parameters behind the `?` of `name?key=value&key=value`, values as YAML reads them."""
    found: dict[str, Any] = {}
    for part in filter(None, text.partition("?")[2].split("&")):
        key, equals, written = part.partition("=")
        if names_secret(key):
            raise ConfigError(f"The name of a module must hold no secret ({key!r}); let it read the environment.")
        if not equals or key in found:
            raise ConfigError(f"Parameters are written name=value, each once, joined by &; got {part!r} in {text!r}.")
        value = unquote(written)
        try:
            found[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            found[key] = value
    return found


def construct(target: Any, parameters: Mapping[str, Any], what: str, call: str = "") -> Any:
    """Return an instance of the class `target` with these parameters, or `target` itself where it is a function.

    `what` is the module as sentences name it (`reranker 'shortest:Shortest'`), `call` how an instance is called.
    """
    if not isinstance(target, type):
        if parameters:
            raise ConfigError(
                f"The {what} is no class, so it takes no parameters; make it a frozen dataclass with them."
            )
        return target
    check_class(target, what, call)
    known = [each.name for each in fields(target) if each.init]
    unknown = [unknown_name(f"parameter of the {what}", key, known) for key in parameters if key not in known]
    if unknown:
        raise ConfigError(" ".join(unknown))
    hints = get_type_hints(target, include_extras=True)
    wanted: dict[str, Any] = {key: (hints[key], ...) for key in parameters}
    checked = create_model("Parameters", __config__=_CHECKS, **wanted)
    try:
        values = checked.model_validate(dict(parameters))
    except ValidationError as error:
        wrong = "; ".join(f"{key_of(detail)}: {complaint_and_value(detail)}" for detail in error.errors())
        raise ConfigError(f"The {what} can not have these parameters: {wrong}.") from None
    return target(**{key: getattr(values, key) for key in parameters})


def check_class(target: type, what: str, call: str = "") -> None:
    """Refuse a class whose instances could not be told apart, or could change; see `construct`."""
    is_frozen = is_dataclass(target) and target.__dataclass_params__.frozen  # type: ignore[attr-defined]
    faults = [] if is_frozen else ["must be a frozen dataclass"]
    faults += [] if isinstance(getattr(target, "version", None), int) else ["has no version"]
    method = call.partition("(")[0]
    if method == "__call__" and not any({method, *_OTHER_FORMS} & vars(kind).keys() for kind in target.__mro__[:-1]):
        faults.append("cannot be called")
    for each in fields(target) if is_dataclass(target) else ():
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        try:
            hash(default)
        except TypeError:
            faults.append(f"has a default that can be changed, {each.name} (a tuple or a frozenset cannot)")
    if faults:
        where = module_file(target) or target.__module__
        shape = _SHAPE.format(name=target.__name__, call=call or "__call__(self, ...)")
        instead = "Without parameters a function will do." if method == "__call__" else ""
        raise ConfigError(f"The {what} ({where}) {listing(faults)}; it has to look like this:\n{shape}{instead}")


MODULES_VARIABLE = "RAG_LAB_MODULES"  # the folder that is looked in; kernels inherit it, as they do the home
_PREFIX = "rag_lab_custom_"  # no custom file can take the place of an installed package
_HELPERS: set[str] = set()  # imported by such files from their folder: other folders, and edited files, have others
_CODE = {".py", ".pyc", ".so", ".pyd", ".dll"}
_METADATA = {".dist-info", ".egg-info"}  # of an installed package, in which libraries look entry points up
_CACHES = ("HF_HOME", "HF_HUB_CACHE", "TORCH_HOME", "XDG_CACHE_HOME")  # where libraries keep weights
_open: dict[int, set[Path]] = {}  # by `id`: equal sets are not the same
_hooked: list[bool] = []  # an audit hook cannot be taken out again, so one serves all blocks
_paused: list[bool] = []


def modules_from(folder: Path) -> AbstractContextManager[None]:
    """Look for files in `folder` in this block, and in the processes that it starts."""
    return variable(MODULES_VARIABLE, str(folder.resolve()))


def modules_folder() -> Path:
    """Return the folder whose files can be named: `$RAG_LAB_MODULES`, else the current one."""
    return Path(os.environ.get(MODULES_VARIABLE) or Path.cwd())


def load_module_file(name: str) -> ModuleType | None:
    """Return the module in the file of this dotted name, anew where a file of its folder has changed; else None."""
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
    # Old bytecode runs where a file was edited within the second and kept its size: none is written.
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[known_as]
        raise
    finally:
        sys.dont_write_bytecode = writes
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
