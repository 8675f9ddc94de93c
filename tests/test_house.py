"""The rules of the house: which room may import which, no circles, folders and names that stay readable."""

from pathlib import Path

import pytest
from house import House, without_counterpart
from house_measures import Weight

REPOSITORY = Path(__file__).parents[1]
RAG_LAB = House(REPOSITORY / "rag_lab")

# A room imports only rooms that stand before it.
ROOMS = [
    "rich_display", "redaction", "records", "errors", "access", "_kit", "memory", "models", "stores",
    "corpus", "data", "stages", "sources", "config", "pipeline", "assistant", "statistics", "questions",
    "corpus_profile", "evaluation", "runs", "comparison", "report", "experiment", "notebook", "testing", "cli",
]  # fmt: skip

# The room that imports, the room below it that is imported: why there is no other way. At most two.
ARROWS_BACK: dict[tuple[str, str], str] = {}

# These names mean the same in every room that has one: its part of the configuration, its names.
IN_EVERY_ROOM = ("config.py", "registry.py")

in_order = pytest.mark.skipif(not (RAG_LAB.folder / "_kit").is_dir(), reason="the rooms are not in their order yet")


@in_order
def test_a_room_imports_only_rooms_that_stand_above_it():
    assert RAG_LAB.wrong_arrows(ROOMS, ARROWS_BACK) == []
    assert RAG_LAB.unused(ARROWS_BACK) == []
    assert len(ARROWS_BACK) <= 2
    assert all(ARROWS_BACK.values())


@in_order
def test_no_modules_import_each_other_in_a_circle():
    assert RAG_LAB.circle() == []


@in_order
def test_no_folder_holds_more_than_a_person_can_look_through():
    assert RAG_LAB.crowded() == []


@in_order
def test_a_name_on_the_ground_says_which_file_is_meant():
    assert RAG_LAB.twins(IN_EVERY_ROOM) == []


@in_order
def test_every_folder_says_what_lives_there_and_what_it_may_import():
    assert RAG_LAB.unexplained() == []


@in_order
def test_the_tests_mirror_the_package():
    assert without_counterpart(REPOSITORY / "tests", RAG_LAB.folder) == ["golden"]  # of whole runs


def built(folder, files):
    """A package `home` with these files, each a path and its source; every folder gets an `__init__.py`."""
    for name, source in files.items():
        path = folder / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        for parent in path.relative_to(folder).parents[:-1]:
            (folder / parent / "__init__.py").touch()
    return House(folder / "home")


@pytest.mark.parametrize(
    "source",
    [
        "import home.cellar.wine",
        "from home.cellar import wine",
        "from home.cellar.wine import RED",
        "from ..cellar import wine",
        "def later():\n    from home.cellar import wine",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from home.cellar.wine import RED",
        "try:\n    import home.cellar.wine as w\nexcept ImportError:\n    w = None",
    ],
)
def test_an_arrow_back_is_found_however_it_is_written(tmp_path, source):
    house = built(tmp_path, {"roof/tiles.py": source, "cellar/wine.py": "RED = 1"})
    (wrong,) = house.wrong_arrows(["roof", "cellar"])
    line = 1 + source[: source.index("cellar")].count("\n")
    assert wrong == f"home.roof.tiles, line {line}, imports home.cellar.wine: cellar stands below roof"
    assert house.wrong_arrows(["cellar", "roof"]) == []


def test_an_arrow_back_can_be_excepted_and_an_exception_that_nobody_needs_is_found(tmp_path):
    house = built(tmp_path, {"roof/tiles.py": "from home.cellar import wine", "cellar/wine.py": ""})
    back = {("roof", "cellar"): "rain", ("roof", "attic"): "dust"}
    assert house.wrong_arrows(["roof", "cellar"], back) == []
    assert house.unused(back) == [("roof", "attic")]


def test_a_file_on_the_ground_is_a_room_and_a_room_without_a_place_is_named(tmp_path):
    house = built(tmp_path, {"door.py": "from home.hall.lamp import ON", "hall/lamp.py": "ON = 1", "new.py": ""})
    no_place, back = house.wrong_arrows(["door", "hall"])
    assert no_place == "new has no place in the order of the rooms"
    assert back.startswith("home.door, line 1,")


def test_modules_of_one_room_import_each_other_and_others_are_nobody_s_arrow(tmp_path):
    house = built(
        tmp_path, {"hall/lamp.py": "import json\nfrom home.hall import bulb", "hall/bulb.py": "import homely"}
    )
    assert house.wrong_arrows(["hall"]) == []
    assert [(arrow.source, arrow.target) for arrow in house.arrows] == [("home.hall.lamp", "home.hall.bulb")]


def test_a_circle_is_found_also_where_a_function_closes_it(tmp_path):
    files = {
        "a/one.py": "from home.a import two",
        "a/two.py": "from home.b.three import NAME",
        "b/three.py": "NAME = 1\ndef later():\n    import home.a.one",
    }
    assert set(built(tmp_path, files).circle()) == {"home.a.one", "home.a.two", "home.b.three"}
    assert built(tmp_path, files | {"b/three.py": "NAME = 1"}).circle() == []


def test_a_folder_of_16_files_is_crowded_and_one_of_15_is_not(tmp_path):
    files = {f"hall/file_{number}.py": "" for number in range(15)}
    assert built(tmp_path, files).crowded() == []
    assert built(tmp_path, {"hall/one_more.py": ""}).crowded() == ["home/hall: 16 files"]


def test_twins_are_found_on_the_ground_and_may_be_in_the_rooms_of_rooms(tmp_path):
    files = {"a/base.py": "", "b/other.py": "", "a/deep/base.py": "", "b/deep/base.py": ""}
    assert built(tmp_path, files).twins() == []
    assert built(tmp_path, {"b/base.py": ""}).twins() == ["home/a/base.py and home/b/base.py"]
    assert built(tmp_path, {}).twins(["base.py"]) == []


def test_a_folder_explains_itself_in_two_lines(tmp_path):
    house = built(tmp_path, {"a/one.py": "", "__init__.py": '"""A home.\n\nImports all."""'})
    (tmp_path / "home/a/__init__.py").write_text('"""One line."""')
    assert house.unexplained() == ["home/a"]


def test_a_folder_of_tests_mirrors_the_package_or_a_folder_beside_it(tmp_path):
    house = built(tmp_path, {"a/one.py": ""})
    (tmp_path / "notebooks").mkdir()
    for name in ("a", "notebooks", "gone"):
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / "tests" / name / "test_it.py").touch()
    assert without_counterpart(tmp_path / "tests", house.folder) == ["gone"]


# The weight of the package, room by room. Who raises a number lowers another in the same commit; the number in the
# comment is where the room is to come to.
MOST_LINES = {
    "ground": 1_407,  # 1_100
    "_kit": 1_945,  # 1_800
    "memory": 1_159,  # 1_300
    "models": 7_242,  # 7_300
    "stores": 1_542,  # 1_500
    "corpus": 4_833,  # 4_600
    "data": 2_166,  # 2_100
    "stages": 4_646,  # 4_100
    "sources": 1_172,  # 700
    "assistant": 594,  # 750
    "questions": 884,  # 600
    "corpus_profile": 326,  # 400
    "statistics": 3_331,  # 3_500
    "evaluation": 2_901,  # 3_300
    "runs": 1_299,  # 1_200
    "comparison": 5_153,  # 4_400
    "report": 3_265,  # 2_700
    "experiment": 8_204,  # 7_600
    "notebook": 2_729,  # 2_600
    "testing": 846,  # 1_200
    "cli": 2_352,  # 2_300
}
MOST_MODULES = 279
MOST_NAMED = 69  # classes, functions and methods for each 1,000 lines; 60
MOST_IMPORTS = 70  # of 1,000 lines; 60
MOST_SLIVERS = 3  # modules with fewer than 25 lines of code, `__init__.py` not counted
MOST_CALLED_ONCE = 16  # private functions of fewer than five statements that their file names once
MOST_DIALECT = 1  # names with a word of the table in CONTRIBUTING.md; 0
MOST_CODE = 300  # lines of a module that hold code
CIRCLES: list[str] = []  # folders of which some children import each other

WEIGHT = Weight(RAG_LAB.folder)


def test_each_room_keeps_its_budget_of_lines():
    lines = WEIGHT.lines()
    assert lines.keys() == MOST_LINES.keys()
    assert {room: n for room, n in lines.items() if n > MOST_LINES[room]} == {}


def test_modules_are_few_and_neither_slivers_nor_heaps():
    code = {path: n for path, n in WEIGHT.code().items() if path.name != "__init__.py"}
    assert len(WEIGHT.texts) <= MOST_MODULES
    assert sum(n < 25 for n in code.values()) <= MOST_SLIVERS
    assert [str(path) for path, n in code.items() if n > MOST_CODE] == []


def test_a_folder_lies_at_most_two_levels_below_its_room():
    assert [str(path) for path in WEIGHT.texts if len(path.parts) > 4] == []


def test_names_and_imports_are_a_small_part_of_the_lines():
    lines = WEIGHT.lines().total()
    assert 1000 * WEIGHT.named() <= MOST_NAMED * lines
    assert 1000 * WEIGHT.imports() <= MOST_IMPORTS * lines
    assert len(WEIGHT.called_once()) <= MOST_CALLED_ONCE


def test_children_of_a_folder_import_each_other_in_no_circle():
    assert WEIGHT.circles() == CIRCLES


def test_names_are_the_field_s_words():
    assert len(WEIGHT.dialect()) <= MOST_DIALECT, WEIGHT.dialect()
