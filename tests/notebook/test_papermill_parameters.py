from types import ModuleType
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from rag_lab.errors import ConfigError
from rag_lab.notebook.variant import parameters

DECLARED = {"QUESTION": str, "FINAL_K": int, "THINKING": bool}
SET = {"QUESTION": "Why?", "FINAL_K": 5, "THINKING": False}


def refused(namespace: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as error:
        parameters(namespace, DECLARED)
    return str(error.value)


def test_what_is_declared_comes_back_and_nothing_else() -> None:
    others = {"metric": "m", "_PRIVATE": 1, "HTML": ModuleType, "In": ["", "FINAL_K = 5"], "Out": {}}
    assert parameters(SET | others, DECLARED) == SET


def test_every_misspelt_name_is_refused_with_the_nearest() -> None:
    said = refused(SET | {"FINALK": 3, "QUESTOIN": None})
    assert "'FINALK'" in said and "did you mean 'FINAL_K'?" in said and "`del FINALK`" in said
    assert "did you mean 'QUESTION'?" in said


def test_what_papermill_injected_is_refused_in_any_case() -> None:
    cells = ["", "QUESTION = 'a'", "# Parameters\nfinal_k = 3\nTHINKING = True\n", "parameters(globals(), DECLARED)"]
    said = refused(SET | {"final_k": 3, "In": cells})
    assert "Unknown parameter 'final_k'" in said and said.endswith("did you mean 'FINAL_K'?")


def test_a_cell_of_ones_own_may_have_names_in_small_letters() -> None:
    assert parameters(SET | {"final_k": 3, "In": ["", "final_k = 3"]}, DECLARED) == SET


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("FINAL_K", "three", "FINAL_K must be a whole number, got 'three'"),
        ("FINAL_K", 3.7, "FINAL_K must be a whole number, got 3.7"),
        ("FINAL_K", True, "FINAL_K must be a whole number, got True"),
        ("THINKING", 1, "THINKING must be true or false, got 1"),
        ("QUESTION", None, "QUESTION must be text, got None"),
        ("QUESTION", ["a"], "QUESTION must be text, got ['a']"),
    ],
)
def test_a_value_of_another_type_is_a_sentence(name: str, value: object, said: str) -> None:
    assert said in refused(SET | {name: value})


def test_a_number_given_for_text_is_its_digits() -> None:
    assert parameters(SET | {"QUESTION": 8}, DECLARED)["QUESTION"] == "8"


def test_a_cell_that_has_not_run_is_named() -> None:
    assert "QUESTION, FINAL_K must be set" in refused({"THINKING": True})


def test_a_notebook_shows_a_mistake_as_its_sentence_alone(capsys: pytest.CaptureFixture[str]) -> None:
    InteractiveShell().run_cell("from rag_lab.errors import ConfigError\nraise ConfigError('FINAL_K is impossible.')")
    assert capsys.readouterr().out.strip() == "ConfigError: FINAL_K is impossible."
