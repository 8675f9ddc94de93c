"""`rag-lab modules`: what each part of a pipeline can be, built in, installed or custom."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_lab._kit.config_file import read_shipped
from rag_lab.cli.new import class_of, named_by
from rag_lab.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from rag_lab.cli.module_kinds import ModuleKind

_KINDS = Path(__file__).with_name("module_kinds.yaml")
_SUMMARY_AT = 25  # the column in which summaries begin
_UNUSABLE = "! "  # before what cannot be used here
_Row = tuple[str, str]  # a name, which `_UNUSABLE` may stand before, and what it is


def modules(
    kind: Annotated[str, typer.Argument(autocompletion=lambda: list(read_shipped(_KINDS)), show_default=False)] = "",
) -> None:
    """List what each part of a pipeline can be."""
    from rag_lab.cli.module_kinds import MODULE_KINDS

    kinds = {each.word: each for each in MODULE_KINDS}
    if kind and kind not in kinds:
        raise ConfigError(unknown_name("kind of module", kind, kinds))
    width = min(shutil.get_terminal_size().columns, 120)
    # A summary stands beside its name, or below one that is too long, in lines that begin in one column.
    for name, text in _detail(kinds[kind]) if kind else _overview(MODULE_KINDS):
        first, indent = f"{name:<{_SUMMARY_AT}}", " " * _SUMMARY_AT
        below = len(name) >= _SUMMARY_AT and text
        indents: dict[str, Any] = {"initial_indent": indent if below else first, "subsequent_indent": indent}
        lines = textwrap.wrap(text, width, **indents, break_long_words=False, break_on_hyphens=False)
        typer.echo("\n".join([name, *lines] if below else lines or [first.rstrip()]))


def _overview(kinds: tuple[ModuleKind, ...]) -> Iterator[_Row]:
    for each in kinds:
        yield each.word, each.keys
        yield from _inside([*_built_in(each), *_installed(each)])
        yield "", ""
    yield _UNUSABLE, "can not be used here, for the reason beside it"
    yield "rag-lab modules KIND", "one kind in detail: what a module takes and returns, and how one is named"
    yield "your own", "module:Class?parameter=value, or langchain:module:factory, as the value of the kind's key"
    yield "to begin one", "rag-lab new module reranker my_reranker"


def _detail(each: ModuleKind) -> Iterator[_Row]:
    yield each.kind.name, ""
    yield "takes and returns", each.takes
    yield "named by", each.keys
    yield "", ""
    yield "built in", ""
    if each.word == "metric":
        from rag_lab.evaluation.registry import describe

        yield from _inside([(info.name, info.sentence) for info in describe()])
    else:
        yield from _inside(_built_in(each))
    yield "", ""
    found = _installed(each)
    yield "installed", "" if found else f"nothing; packages bring more by entry points of the group {each.kind.group}"
    yield from _inside(found)
    yield "", ""
    yield "your own", ""
    file = f"my_{each.word}"
    module = f"{file}:{class_of(file)}"
    line = named_by(each.word, file)
    section, _, field = each.keys.partition(".")
    rows = [
        ("in a file", f"{module}, of {file}.py beside the experiment"),
        ("with parameters", f"{module}?parameter=value"),
        ("in an experiment", line or f"base: {{{section}: {{{field}: {module}}}}}"),
    ]
    if each.langchain:
        rows.append(("LangChain's", f"langchain:module:factory, which returns its {each.langchain}"))
    if line:
        rows.append(("to begin one", f"rag-lab new module {each.word} {file}"))
    yield from _inside(rows)


def _built_in(each: ModuleKind) -> list[_Row]:
    from rag_lab.models.providers import Provider

    measures: dict[str, list[str]] = {}  # of each family of metrics, without its name
    if each.word == "metric":
        from rag_lab.evaluation.registry import describe

        for info in describe():
            family, _, measure = info.name.partition(".")
            measures.setdefault(family, []).append(measure)
    rows = []
    for name, entry in each.kind.built_in.items():
        summary, missing = entry.summary, entry.missing
        if name in measures:
            summary += f": {', '.join(measures[name])}"
        elif isinstance(entry, Provider):
            summary += f", as {entry.example}"
        rows.append((f"{_UNUSABLE}{name}", f"{summary}. {missing}") if missing else (name, summary))
    return rows


def _installed(each: ModuleKind) -> list[_Row]:
    """Return what packages bring; each is imported, to find out whether it can be."""
    from rag_lab._kit.registry import installed, package

    rows = []
    for name, entries in installed(each.kind.group).items():
        try:
            each.kind.load(name)
            rows.append((name, " and ".join(f"{package(entry)}: {entry.value}" for entry in entries)))
        except ConfigError as error:
            rows.append((f"{_UNUSABLE}{name}", str(error)))
    return rows


def _inside(rows: list[_Row]) -> Iterator[_Row]:
    for name, text in rows:
        yield (name if name.startswith(_UNUSABLE) else f"  {name}"), text
