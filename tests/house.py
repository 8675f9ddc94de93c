"""What the imports and the folders of a package look like: read from its sources, none of which is run."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

MOST_FILES = 15


class Arrow(NamedTuple):
    """One import: which module, at which line, imports which."""

    source: str
    line: int
    target: str


@dataclass(frozen=True)
class House:
    """A package by its folder; a room is a folder or a file directly in it."""

    folder: Path

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Every module by its dotted name, a package by that of its folder."""
        return {self._dotted(path): path for path in sorted(self.folder.rglob("*.py"))}

    @cached_property
    def folders(self) -> list[Path]:
        """The folder of the package and all below it that hold a Python file."""
        return sorted({path.parent for path in self.modules.values()})

    @cached_property
    def arrows(self) -> list[Arrow]:
        """Every import of one module by another, wherever in the file it stands."""
        return [arrow for name, path in self.modules.items() for arrow in self._arrows(name, path)]

    def room(self, module: str) -> str:
        """The first part of a module's name below the package; of the package itself its own name."""
        return module.split(".")[min(1, module.count("."))]

    def wrong_arrows(self, rooms: Sequence[str], back: Iterable[tuple[str, str]] = ()) -> list[str]:
        """The imports of a room that does not stand above the importing one in `rooms`, but for those `back`."""
        back = set(back)
        order = {room: place for place, room in enumerate(rooms)}
        used = {self.room(module) for module in self.modules} - {self.folder.name}
        wrong = [f"{room} has no place in the order of the rooms" for room in sorted(used - order.keys())]
        for source, line, target in self.arrows:
            pair = (self.room(source), self.room(target))
            if self.folder.name in pair or not order.keys() >= {*pair}:
                continue
            if order[pair[0]] < order[pair[1]] and pair not in back:
                wrong.append(f"{source}, line {line}, imports {target}: {pair[1]} stands below {pair[0]}")
        return wrong

    def unused(self, back: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """The exceptions `back` that no import needs."""
        drawn = {(self.room(source), self.room(target)) for source, _, target in self.arrows}
        return [pair for pair in back if pair not in drawn]

    def circle(self) -> list[str]:
        """Modules each of which is imported by the next, the first being the last; empty where there is none."""
        graph: dict[str, set[str]] = defaultdict(set)
        for source, _, target in self.arrows:
            graph[source].add(target)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def crowded(self) -> list[str]:
        """The folders of more than `MOST_FILES` files, `__init__.py` not counted."""
        counts = {folder: len(self._files(folder)) for folder in self.folders}
        return [f"{self._shown(folder)}: {count} files" for folder, count in counts.items() if count > MOST_FILES]

    def twins(self, alike: Iterable[str] = ()) -> list[str]:
        """The files directly in the package or in a room on its ground that share a name which is not in `alike`."""
        places: dict[str, list[str]] = defaultdict(list)
        for folder in self.folders:
            if folder == self.folder or folder.parent == self.folder:
                for path in self._files(folder):
                    places[path.name].append(self._shown(path))
        return [" and ".join(paths) for name, paths in places.items() if len(paths) > 1 and name not in alike]

    def unexplained(self) -> list[str]:
        """The folders whose `__init__.py` does not say in two lines what lives there and what it may import."""
        return [self._shown(folder) for folder in self.folders if len(_docstring(folder / "__init__.py")) < 2]

    def _files(self, folder: Path) -> list[Path]:
        return [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.folder.parent).as_posix()

    def _dotted(self, path: Path) -> str:
        parts = path.relative_to(self.folder.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _arrows(self, name: str, path: Path) -> Iterator[Arrow]:
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                targets = {self._module(target) for target in _named(node, package)} - {None, name}
                yield from (Arrow(name, node.lineno, target) for target in sorted(filter(None, targets)))

    def _module(self, target: str) -> str | None:
        """`package.module.name` is the module that holds the name; None for other people's modules."""
        while target and target not in self.modules:
            target = target.rpartition(".")[0]
        return target or None


def without_counterpart(tests: Path, package: Path) -> list[str]:
    """The folders of tests that mirror neither a folder of the package nor one beside it (`notebooks`, `datasets`)."""
    folders = sorted({path.parent.relative_to(tests) for path in tests.rglob("test_*.py")})
    known = (package, package.parent)
    return [folder.as_posix() for folder in folders if not any((place / folder).is_dir() for place in known)]


def _named(node: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    module = resolve_name("." * node.level + (node.module or ""), package)
    return [f"{module}.{alias.name}" for alias in node.names]


def _docstring(path: Path) -> list[str]:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path.is_file() else None
    return [line for line in (text or "").splitlines() if line.strip()]
