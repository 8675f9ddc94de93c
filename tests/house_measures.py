"""What a package weighs: lines, modules, names, imports, circles among the children of a folder."""

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

DIALECT = re.compile(
    r"(?:^|_)(?:told|said|given|own|unread|curable|narrowed|fate|lost|beside|elsewhere|unchanged_fields|apart|lack|silence)(?:_|$)"
)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


class Weight:
    """The sources of a package, parsed once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.texts = {
            path.relative_to(folder): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))
        }
        self.trees = {path: ast.parse(text) for path, text in self.texts.items()}

    def lines(self) -> Counter[str]:
        """Lines of each room; files on the ground are the room `ground`."""
        counts: Counter[str] = Counter()
        for path, text in self.texts.items():
            counts[path.parts[0] if len(path.parts) > 1 else "ground"] += text.count("\n")
        return counts

    def named(self) -> int:
        """How many classes, functions and methods there are."""
        return sum(isinstance(node, _NAMED) for tree in self.trees.values() for node in ast.walk(tree))

    def imports(self) -> int:
        """How many lines are imports."""
        found = [node for tree in self.trees.values() for node in ast.walk(tree)]
        return sum(
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in found
            if isinstance(node, ast.Import | ast.ImportFrom)
        )

    def code(self) -> dict[Path, int]:
        """Lines of each module that hold code: no comment, docstring or blank line."""
        return {path: len(_code_lines(text, self.trees[path])) for path, text in self.texts.items()}

    def called_once(self) -> list[str]:
        """The private functions of modules with fewer than five statements that are named once in their file."""
        found = []
        for path, tree in self.trees.items():
            names = Counter(
                node.id if isinstance(node, ast.Name) else node.attr
                for node in ast.walk(tree)
                if isinstance(node, ast.Name | ast.Attribute)
            )
            for node in tree.body:
                private = isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.decorator_list
                if private and names[node.name] == 1 and _statements(node) < 5:
                    found.append(f"{path}: {node.name}")
        return found

    def circles(self) -> list[str]:
        """The folders of which some children import each other, with one such circle."""
        edges = {path: set(_imported(path, tree, self.folder.name)) for path, tree in self.trees.items()}
        folders = {()} | {path.parts[:depth] for path in self.texts for depth in range(1, len(path.parts))}
        found = []
        for folder in sorted(folders):
            graph: dict[str, set[str]] = defaultdict(set)
            for path, targets in edges.items():
                parts, depth = path.with_suffix("").parts, len(folder)
                if parts[:depth] == folder and len(parts) > depth and parts[depth] != "__init__":
                    children = {to[depth] for to in targets if to[:depth] == folder and len(to) > depth}
                    graph[parts[depth]] |= {child for child in children if self._is_child(folder, child)}
            circle = _circle({child: targets - {child} for child, targets in graph.items()})
            if circle:
                found.append(f"{'/'.join(folder) or self.folder.name}: {', '.join(circle)}")
        return found

    def dialect(self) -> list[str]:
        """The names of files, classes, functions and methods that hold a word for which the field has another one."""
        found = [str(path) for path in self.texts if DIALECT.search(path.stem)]
        for path, tree in self.trees.items():
            names = (node.name for node in ast.walk(tree) if isinstance(node, _NAMED))
            found += [f"{path}: {name}" for name in names if DIALECT.search(_snake(name))]
        return found

    def holding(self, literals: Iterator[str] | set[str]) -> Mapping[str, list[str]]:
        """For each literal the modules in which it stands as a string."""
        where: dict[str, list[str]] = {literal: [] for literal in literals}
        for path, tree in self.trees.items():
            texts = {
                node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
            for literal in texts & where.keys():
                where[literal].append(path.as_posix())
        return where

    def _is_child(self, folder: tuple[str, ...], child: str) -> bool:
        place = self.folder.joinpath(*folder, child)
        return place.is_dir() or place.with_suffix(".py").is_file()


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _statements(function: ast.FunctionDef) -> int:
    body = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    return sum(isinstance(node, ast.stmt) for statement in body for node in ast.walk(statement))


def _code_lines(text: str, tree: ast.AST) -> set[int]:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, (*_NAMED, ast.Module)) and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def _imported(path: Path, tree: ast.AST, package: str) -> Iterator[tuple[str, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == package:
            yield from ((*node.module.split(".")[1:], alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                tuple(alias.name.split(".")[1:]) for alias in node.names if alias.name.startswith(f"{package}.")
            )


def _circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the children of which each can be reached from each, sorted; empty where there are none."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for child in graph.get(todo.pop(), set()) - seen:
                seen.add(child)
                todo.append(child)
        return seen

    all_reached = {child: reached(child) for child in graph}
    return sorted(child for child, seen in all_reached.items() if child in seen)
