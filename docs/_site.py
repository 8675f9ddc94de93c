"""What the site has beside the pages of this folder: README and its neighbours, the API, files that pages link to."""

import posixpath
import re
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from rag_lab.evaluation.registry import describe

ROOT = Path(__file__).parents[1]

# Files beside docs/ -> their pages.
BESIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

# Pages -> their titles, and the modules whose public names they show.
API = {
    "api/rag_lab.md": ("rag_lab", ["rag_lab"]),
    "api/stages.md": ("The contract of a stage", ["rag_lab.stages.stage"]),
    "api/models.md": ("The contract of a model", ["rag_lab.models.protocols"]),
    "api/testing.md": ("Contracts and doubles for tests", ["rag_lab.testing"]),
}

_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)")
_NAMED_PAGE = re.compile(r"(?<!\[)`(?:docs/)?(\w+\.md)`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in docs/, and every file of the repository that a page links to."""
    for name, page in BESIDE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for page, (title, modules) in API.items():
        files.append(File.generated(config, page, content=f"# {title}\n\n" + "\n".join(map(_documented, modules))))
    files.append(File.generated(config, "api/metrics.md", content=f"# All metrics\n\n{_metrics_table()}"))
    for file in files.documentation_pages():
        for link in _LINK.findall(file.content_string):
            place = _place(file.src_uri, link)
            if place and files.get_file_from_path(place) is None:
                files.append(File.generated(config, place, abs_src_path=str(ROOT / place)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links of the site, and pages that are named into links."""
    uri = page.file.src_uri

    def relative(place: str) -> str:
        return posixpath.relpath(place, posixpath.dirname(uri) or ".")

    def named(match: re.Match[str]) -> str:
        known = match[1] != uri and files.get_file_from_path(match[1]) is not None
        return f"[{match[0]}]({relative(match[1])})" if known else match[0]

    linked = _LINK.sub(lambda match: relative(_place(uri, match[1]) or match[1]), markdown)
    return _NAMED_PAGE.sub(named, linked)


def _place(uri: str, link: str) -> str | None:
    """Where in the site lies what the page `uri` links to; None if that is no file of the repository."""
    beside = {page: name for name, page in BESIDE.items()}
    target = posixpath.normpath(posixpath.join(posixpath.dirname(beside.get(uri, f"docs/{uri}")), link))
    if target.startswith("..") or not (ROOT / target).is_file():
        return None
    return BESIDE.get(target, target.removeprefix("docs/"))


def _documented(name: str) -> str:
    """The line for mkdocstrings of each class and function of a module: those in its `__all__`, or its own."""
    module = import_module(name)
    own = [key for key, value in vars(module).items() if key[0] != "_" and getattr(value, "__module__", "") == name]
    values = [getattr(module, key) for key in getattr(module, "__all__", own)]
    shown = [value for value in values if isclass(value) or isfunction(value)]
    return "\n".join(f"::: {value.__module__}.{value.__qualname__}\n" for value in shown)


def _metrics_table() -> str:
    """Return a Markdown table with one row a metric, in the order of `describe`."""
    lines = ["| metric | what it is | needs | range |", "|---|---|---|---|"]
    for info in describe():
        needs = ", ".join(sorted(info.needs)) or "-"
        upper = "and up" if info.high is None else f"to {info.high:g}"
        better = "" if info.higher_is_better else ", lower is better"
        lines.append(f"| `{info.name}` | {info.sentence} | {needs} | {info.low:g} {upper}{better} |")
    return "\n".join(lines) + "\n"
