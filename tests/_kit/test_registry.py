import textwrap
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from rag_lab._kit import registry
from rag_lab._kit.registry import BuiltIn, Kind, modules_from
from rag_lab.errors import ConfigError

FRUIT = Kind(
    "fruit",
    "rag_lab.fruits",
    {
        "apple": BuiltIn("collections:OrderedDict", "an apple"),
        "durian": BuiltIn("durian:Durian", "smells", "no_such_package", "durians"),
    },
)

SHORTEST = """
from dataclasses import dataclass
from typing import Annotated, ClassVar
from pydantic import Field
import helper

@dataclass(frozen=True)
class Shortest:
    keep: Annotated[int, Field(ge=1, le=9)] = 4
    word: str = ""
    version: ClassVar[int] = 1

    def __call__(self):
        return helper.NAME

def plain():
    return 1
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shortest.py").write_text(SHORTEST)
    (tmp_path / "helper.py").write_text("NAME = 'one'")
    with modules_from(tmp_path):
        yield tmp_path


def test_what_is_built_in_comes_by_its_name():
    assert FRUIT.find("apple").value.__name__ == "OrderedDict"
    assert FRUIT.find("apple").source == ""
    with pytest.raises(ConfigError, match=r"fruit durian can not be used here: .* run: pip install 'durians'"):
        FRUIT.find("durian")


def test_a_class_of_a_file_is_made_with_the_parameters_behind_its_name(folder):
    found = FRUIT.find("shortest:Shortest?keep=7&word=a%26b")
    assert (found.value.keep, found.value.word, found.value()) == (7, "a&b", "one")
    assert FRUIT.find("shortest:plain").value() == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pear", "Unknown fruit 'pear': allowed are apple, durian"),
        ("nowhere:Pear", r"put nowhere\.py into .*, or install 'nowhere'"),
        ("shortest:Longest", "'shortest' has no 'Longest'"),
        ("shortest:Shortest?kepe=3", r"Unknown parameter of the fruit 'shortest:Shortest' 'kepe'.*did you mean 'keep'"),
        ("shortest:Shortest?keep=0", r"keep: must be greater than or equal to 1, got 0"),
        ("shortest:Shortest?keep=many", r"keep: must be a valid integer.*got 'many'"),
        ("shortest:Shortest?keep=1&keep=2", "each once"),
        ("shortest:Shortest?keep", "written name=value"),
        ("shortest:Shortest?api_key=x", "must hold no secret"),
        ("shortest:plain?keep=1", "is no class, so it takes no parameters"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_sentence(folder, name, said):
    with pytest.raises(ConfigError, match=said):
        FRUIT.find(name)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("1 / 0", r"does not load \(ZeroDivisionError: division by zero\)"),
        ("import no_such_thing", r"does not load \(ModuleNotFoundError: No module named 'no_such_thing'\)"),
        ("class Bad:\n    pass", "must be a frozen dataclass"),
        ("from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Bad:\n    k: int = 1", "has no version"),
        (
            "from dataclasses import dataclass, field\n@dataclass(frozen=True)\nclass Bad:\n"
            "    names: list = field(default_factory=list)\n    version = 1",
            "has a default that can be changed, names",
        ),
    ],
)
def test_a_class_that_can_not_be_told_apart_is_refused_with_its_file(folder, source, said):
    (folder / "bad.py").write_text(source)
    with pytest.raises(ConfigError, match=said):
        FRUIT.find("bad:Bad")


def test_all_that_a_class_lacks_is_said_at_once_with_the_whole_of_its_shape(folder):
    (folder / "bad.py").write_text("class Bad:\n    def rank(self):\n        pass")
    with pytest.raises(ConfigError) as error:
        replace(FRUIT, call="__call__(self, question, passages)").find("bad:Bad")
    said, _, shape = str(error.value).partition("\n")
    assert "must be a frozen dataclass, has no version and cannot be called; it has to look like this:" in said
    code, _, instead = shape.partition("Without parameters a function will do.")
    made = {}
    exec(textwrap.dedent(code), made)
    assert made["Bad"]()("q", ["p"]) is None and instead == ""
    (folder / "good.py").write_text(textwrap.dedent(code).replace("Bad", "Good"))
    assert replace(FRUIT, call="__call__(self, question, passages)").find("good:Good").value.version == 1


def test_the_text_of_a_configuration_runs_nothing(folder):
    (folder / "trap.py").write_text("raise SystemExit('was run')")
    assert FRUIT.check("trap:Trap?keep=1") == "trap:Trap?keep=1"
    for wrong in ("pear", "a:b:c", "a b:c", "apple?keep=1", ":x", "x:"):
        with pytest.raises((ValueError, ConfigError)):
            FRUIT.check(wrong)


def test_an_edited_module_is_never_taken_for_the_old_one(folder):
    before = FRUIT.find("shortest:Shortest")
    assert FRUIT.find("shortest:Shortest").source == before.source
    (folder / "helper.py").write_text("NAME = 'two'")
    (folder / "shortest.py").write_text(SHORTEST + "\n")
    after = FRUIT.find("shortest:Shortest")
    assert after.source != before.source
    assert after.value() == "two"


def test_a_helper_beside_it_counts(folder):
    before = FRUIT.find("shortest:Shortest").source
    (folder / "helper.py").write_text("NAME = 'three'")
    assert FRUIT.find("shortest:Shortest").source != before


def test_two_packages_that_claim_a_name_are_named(monkeypatch):
    entries = tuple(EntryPoint("kiwi", value, "rag_lab.fruits") for value in ("one:Kiwi", "two:Kiwi"))
    monkeypatch.setattr(registry, "installed", lambda group: {"kiwi": entries})
    assert FRUIT.check("kiwi") == "kiwi"
    with pytest.raises(ConfigError, match=r"More than one package claims the fruit 'kiwi': .*one:Kiwi.*two:Kiwi"):
        FRUIT.find("kiwi")


def test_an_entry_point_that_does_not_import_names_its_package(monkeypatch):
    entry = EntryPoint("kiwi", "no_such_module:Kiwi", "rag_lab.fruits")
    monkeypatch.setattr(registry, "installed", lambda group: {"kiwi": (entry,)})
    with pytest.raises(ConfigError, match=r"fruit 'kiwi' does not load .*no_such_module"):
        FRUIT.find("kiwi")
