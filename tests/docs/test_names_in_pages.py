"""What pages, notebooks and benchmarks name is there: what is imported from modules, files of the package, keys."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from rag_lab.config import PipelineConfig

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
SOURCES = [*(REPOSITORY / "benchmarks").rglob("*.py"), *(REPOSITORY / "notebooks").rglob("*.ipynb")]
IMPORT = re.compile(r"^[ \"]*from (rag_lab[\w.]*) import (\w+(?:, \w+)*)", re.MULTILINE)
FILE = re.compile(r"`((?:rag_lab|benchmarks|experiments|notebooks|datasets|tests|docs)/[\w./-]+)`")


def is_there(module, name):
    if hasattr(import_module(module), name):
        return True
    try:
        return bool(import_module(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("path", [*PAGES, *sorted(SOURCES)], ids=lambda path: path.name)
def test_what_is_imported_and_each_file_is_there(path):
    text = path.read_text(encoding="utf-8")
    imported = [(module, name) for module, names in IMPORT.findall(text) for name in names.split(", ")]
    assert [each for each in imported if not is_there(*each)] == []
    assert [name for name in FILE.findall(text) if path.suffix == ".md" and not (REPOSITORY / name).exists()] == []


def test_the_preset_of_the_assistant_has_every_key():
    text = (REPOSITORY / "experiments/presets/assistant.yaml").read_text(encoding="utf-8")
    keys = [key.partition(".")[2] for key in PipelineConfig().flat() if "." in key]
    assert [key for key in keys if not re.search(rf"^ +{key}:", text, re.MULTILINE)] == []
